// bench cast: how near the cast from float32 to E4M3 comes to the speed of memory. One thread; the ceiling is a
// memcpy of 2.5 bytes per element, which reads and writes the same 5 bytes per element as the cast does (4 in, 1
// out).
#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "app/cli/bench/bench.h"
#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/files/progress_line.h"
#include "core/formats/codec.h"
#include "core/threads/parallel.h"

namespace fp8lab::cli {
namespace {

constexpr std::size_t kElements = std::size_t{64} << 20;
constexpr std::size_t kCopyBytes = kElements * 5 / 2;
constexpr int kCastRepeats = 11;
constexpr std::uint64_t kSeed = 1;

// The budget of a cast to E4M3 against a copy of as many bytes, for the vector targets that have one, on an Intel
// Xeon; an AMD EPYC keeps 1.1 and 1.4. The others are measured for the record.
struct Budget {
    std::string_view target;
    double ratio;
};
constexpr Budget kBudgets[] = {{"AVX3", 1.3}, {"AVX2", 1.8}};

// On huge pages for both contestants, so that neither measures the page tables.
template <class T>
class HugeArray {
  public:
    explicit HugeArray(std::size_t size) : size_(size), data_(allocate(size * sizeof(T)), std::free) {}
    std::span<T> span() { return {data_.get(), size_}; }

  private:
    static T* allocate(std::size_t bytes) {
        constexpr std::size_t kHugePage = std::size_t{2} << 20;
        void* memory = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
        if (memory == nullptr) throw std::bad_alloc();
        madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: the bench is as honest without
        std::memset(memory, 1, bytes);          // the pages exist before the clock runs
        return static_cast<T*>(memory);
    }
    std::size_t size_;
    std::unique_ptr<T, void (*)(void*)> data_;
};

void fill_normal(std::span<float> values) {
    constexpr std::size_t kPart = std::size_t{1} << 20;
    parallel_for(values.size() / kPart, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t part = begin; part < end; ++part)
            Rng(kSeed, part).fill_normal(values.subspan(part * kPart, kPart));
    });
}

// ", budget 1.1 kept", and the budget in the row; empty where the target has none.
std::string held_to_budget(std::string_view target, double ratio, nlohmann::json& row) {
    for (const Budget& budget : kBudgets) {
        if (budget.target != target) continue;
        row["budget"] = budget.ratio;
        return fmt::format(", budget {} {}", budget.ratio, ratio <= budget.ratio ? "kept" : "missed");
    }
    return {};
}

}  // namespace

nlohmann::json bench_cast(const BenchOptions& options, const Globals&, bool json) {
    if (options.backend == "cuda") return bench_gpu_casts(options, *choose_backend("cuda").backend, json);
    if (!options.shape.empty()) throw usage_error("--shape", "bench cast takes it with --backend cuda only");
    HugeArray<float> values(kElements);
    HugeArray<std::uint8_t> codes(kElements);
    HugeArray<char> copy_from(kCopyBytes), copy_to(kCopyBytes);
    fill_normal(values.span());
    const FormatInfo& e4m3 = find_format("e4m3");
    const int repeats = options.repeat > 0 ? options.repeat : kCastRepeats;

    nlohmann::json out = json_header(cpu_backend()->device(), kSeed);
    out["bench"] = "cast";
    out["threads"] = 1;
    out["elements"] = kElements;
    out["bytes"] = kElements * 5;
    out["ceiling"] = "memcpy of 2.5 bytes an element";
    if (!json) fmt::print("float32 to E4M3, {} Mi elements N(0,1), one thread\n", kElements >> 20);
    const Interruptible keeps;
    ProgressLine progress;
    const auto copy = [&] { std::memcpy(copy_to.span().data(), copy_from.span().data(), kCopyBytes); };
    for (const char* target : vector_targets()) {
        if (interrupted()) break;
        force_vector_target(target);
        const auto told = [&](int done) {
            progress.at(fmt::format("bench cast: {}, {} of {} measurements", target, done, repeats));
        };
        const Compared result = time_against(
            repeats, [&] { encode(e4m3, values.span(), codes.span()); }, copy, told);
        const Compared moved = time_against(
            repeats, [&] { read_4_write_1(values.span(), codes.span()); }, copy, told);
        progress.erase();
        if (moved.work.repeats == 0) break;
        const double to_moved = result.ratio / moved.ratio;  // compared with alternating copies
        nlohmann::json row = {{"target", target},
                              {"cast", to_json(result.work)},
                              {"memcpy", to_json(result.ceiling)},
                              {"ratio", result.ratio},
                              {"read_4_write_1", to_json(moved.work)},
                              {"ratio_to_read_4_write_1", to_moved}};
        const std::string verdict = held_to_budget(target, result.ratio, row);
        out["targets"].push_back(row);
        if (json) continue;
        fmt::print(
            "{:<8} cast {:>8} ms (IQR {}), memcpy {:>8} ms (IQR {}), ratio {}, {} to read 4 write 1, {} "
            "GB/s{}\n",
            target, format_number(result.work.median_ms),
            format_number(result.work.q3_ms - result.work.q1_ms, 2), format_number(result.ceiling.median_ms),
            format_number(result.ceiling.q3_ms - result.ceiling.q1_ms, 2), format_number(result.ratio, 3),
            format_number(to_moved, 3),
            format_number(5e-6 * static_cast<double>(kElements) / result.work.median_ms, 3), verdict);
        flush_stdout();
    }
    force_vector_target("");
    return out;
}

}  // namespace fp8lab::cli
