// Sections of the grid that are no layers: number formats, zeros, and copies to the host.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/base/error.h"
#include "kernels/bench/grid_units.h"
#include "kernels/device/random_fill.h"

namespace fp8lab::cuda {
namespace {

// ---- formats ----

struct FormatRow {
    std::string_view kind;
    cudaDataType_t operand, out;
    double operand_bytes;  // of an element
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    int scale = -1;
    int per_scale = 0;  // elements that share one; 0: one or none in all
    bool fast = false;
};

// FP8 and FP4 to BF16, as training takes them; with 16-bit accumulation the output is FP16.
FormatRow format_row(std::string_view kind) {
    constexpr int kOne = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
    if (kind == "fp32") return {kind, CUDA_R_32F, CUDA_R_32F, 4};
    if (kind == "tf32") return {kind, CUDA_R_32F, CUDA_R_32F, 4, CUBLAS_COMPUTE_32F_FAST_TF32};
    if (kind == "fp16") return {kind, CUDA_R_16F, CUDA_R_16F, 2};
    if (kind == "bf16") return {kind, CUDA_R_16BF, CUDA_R_16BF, 2};
    if (kind == "fp8-16f") return {kind, CUDA_R_8F_E4M3, CUDA_R_16F, 1, CUBLAS_COMPUTE_16F, kOne};
    if (kind == "mxfp8")
        return {kind, CUDA_R_8F_E4M3,     CUDA_R_16BF,
                1,    CUBLAS_COMPUTE_32F, CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0,
                32};
    if (kind == "nvfp4")
        return {kind, CUDA_R_4F_E2M1,     CUDA_R_16BF,
                0.5,  CUBLAS_COMPUTE_32F, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3,
                16};
    return {kind, CUDA_R_8F_E4M3, CUDA_R_16BF, 1, CUBLAS_COMPUTE_32F, kOne, 0, kind == "fp8-fast"};
}

double square_bytes(const FormatRow& row, int n) {
    const auto count = static_cast<double>(matrix_elements(n, n));
    const double out = row.out == CUDA_R_32F ? 4 : 2;
    const double scales = row.per_scale > 0 ? 2 * count / row.per_scale : 0;
    return count * (2 * row.operand_bytes + out) + scales;
}

Memory random_operand(const FormatRow& row, int n, std::uint32_t seed, cudaStream_t stream) {
    Memory memory(static_cast<std::size_t>(static_cast<double>(matrix_elements(n, n)) * row.operand_bytes));
    if (row.operand == CUDA_R_16F)
        fill_random_fp16(memory.get(), memory.bytes(), seed, stream);
    else if (row.operand == CUDA_R_4F_E2M1)
        fill_random_bytes(memory.get(), memory.bytes(), seed, stream);
    else
        fill_random(memory.get(),
                    row.operand == CUDA_R_32F    ? Element::f32
                    : row.operand == CUDA_R_16BF ? Element::bf16
                                                 : Element::e4m3,
                    memory.bytes(), seed, stream);
    return memory;
}

// Scales that are 1 in the mode's own code.
Memory ones_of(const FormatRow& row, int n) {
    constexpr std::size_t kPadding = 65536;
    constexpr unsigned char kOneE8m0 = 0x7F, kOneE4m3 = 0x38;
    if (row.per_scale == 0) {
        const std::vector<float> one(4, 1.0F);
        Memory memory(one.size() * sizeof(float));
        copy_to_device(memory.get(), one.data(), memory.bytes());
        return memory;
    }
    const std::size_t count = matrix_elements(n, n / row.per_scale) + kPadding;
    const std::vector<unsigned char> codes(
        count, row.scale == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0 ? kOneE8m0 : kOneE4m3);
    Memory memory(count);
    copy_to_device(memory.get(), codes.data(), count);
    return memory;
}

void measure_formats(GridBench& bench, int n) {
    struct Operands {
        Memory a, b, d, scales;
    };
    std::vector<GridFormat> formats(kGridFormats.size());
    std::vector<Operands> operands;
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < kGridFormats.size(); ++i) {
        const FormatRow row = format_row(kGridFormats[i]);
        operands.push_back({random_operand(row, n, 1, bench.stream), random_operand(row, n, 2, bench.stream),
                            Memory(matrix_elements(n, n) * sizeof(float)), ones_of(row, n)});
        const Operands& o = operands.back();
        formats[i].kind = row.kind;
        formats[i].n = n;
        formats[i].bytes = square_bytes(row, n);
        Entry entry;
        entry.time = &formats[i];
        entry.spec = {Product::nt, n,         n,         n,        row.operand, row.operand,
                      row.out,     row.scale, row.scale, row.fast, row.compute};
        const void* scales = row.scale < 0 ? nullptr : o.scales.get();
        entry.on = {o.a.get(), o.b.get(), o.d.get(), scales, scales};
        entries.push_back(entry);
    }
    time_entries(entries, bench.lt, bench.repeats, bench.stream, bench.after);
    for (const GridFormat& format : formats)
        if (format.ran() || format.status != 0) bench.grid.formats.push_back(format);
}

// ---- zeros ----

// Power settles in tens of milliseconds, so zeros and random values alternate in rounds of that length.
void measure_zeros(GridBench& bench, std::string_view kind) {
    constexpr int kSize = kCeilingSize, kTurns = 2;
    constexpr double kWarmSeconds = 0.15;
    const GemmSpec spec = layer_product("fprop", {kSize, kSize, kSize}, kind);
    OperandPool zeros(bench.stream, true);
    const LtOperands random = bench.pool.of(spec), none = zeros.of(spec);
    LtProduct product(bench.lt, lt_spec(spec), kContestants);
    GridZeros line;
    line.kind = kind;
    line.n = kSize;
    Answer refused = product.answer();
    const auto ms =
        refused.status == 0 ? short_contest(product, random, bench.stream, refused) : std::nullopt;
    if (!ms) throw Error(ErrorKind::backend, "zeros", refused.words);
    GridTime of_random, of_zeros;
    std::vector<GridTime> randoms(kTurns), zero_times(kTurns);
    for (int turn = 0; turn < kTurns; ++turn)
        for (const bool zero : {false, true}) {
            const LtOperands& on = zero ? none : random;
            const auto launch = [&](cudaStream_t s) { product.run(on, s); };
            const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kWarmSeconds);
            while (std::chrono::steady_clock::now() < end) {
                for (int i = 0; i < 8; ++i) launch(bench.stream);
                check(cudaStreamSynchronize(bench.stream), "cudaStreamSynchronize");
            }
            GridTime& time = (zero ? zero_times : randoms)[static_cast<std::size_t>(turn)];
            if (!time_turns({{&time, launch, *ms}}, bench.repeats, bench.stream, bench.after)) return;
        }
    // The later turn is the warmer one; both are in the recording's repeats.
    static_cast<GridTime&>(line) = zero_times.back();
    line.random_ms = randoms.back().median_ms;
    bench.grid.zeros.push_back(line);
}

// ---- copies to and from the host ----

void measure_host_copy(GridBench& bench) {
    constexpr std::size_t kBytes = std::size_t{1} << 30;
    constexpr int kRepeats = 5;
    const Pinned<char> up_from(kBytes), down_to(kBytes);
    const Memory up_to(kBytes), down_from(kBytes);
    std::memset(up_from.values().data(), 0x5A, kBytes);
    fill_random(down_from.get(), Element::bf16, kBytes, 1, bench.stream);
    const Stream other;
    Event begin, up_done, down_done;
    const auto up = [&](cudaStream_t s) {
        check(cudaMemcpyAsync(up_to.get(), up_from.values().data(), kBytes, cudaMemcpyHostToDevice, s),
              "copy up");
    };
    const auto down = [&](cudaStream_t s) {
        check(cudaMemcpyAsync(down_to.values().data(), down_from.get(), kBytes, cudaMemcpyDeviceToHost, s),
              "copy down");
    };
    const auto both = [&] {
        begin.record(bench.stream);
        check(cudaStreamWaitEvent(other.get(), begin.get(), 0), "cudaStreamWaitEvent");
        up(bench.stream);
        down(other.get());
        up_done.record(bench.stream);
        down_done.record(other.get());
        up_done.wait();
        down_done.wait();
        return static_cast<double>(std::max(elapsed_ms(begin, up_done), elapsed_ms(begin, down_done)));
    };
    constexpr double kRough = 20;
    GridHostCopy copy;
    copy.bytes = static_cast<double>(kBytes);
    if (!time_turns({{nullptr, up, kRough, &copy.up_ms}, {nullptr, down, kRough, &copy.down_ms}},
                    2 * kRepeats, bench.stream, bench.after))
        return;
    check(cudaStreamSynchronize(bench.stream), "cudaStreamSynchronize");
    both();
    std::vector<double> ms;
    for (int i = 0; i < kRepeats; ++i) ms.push_back(both());
    std::ranges::nth_element(ms, ms.begin() + kRepeats / 2);
    copy.both_ms = ms[kRepeats / 2];
    bench.grid.host_copy = copy;
}

}  // namespace

void add_formats(GridBench& bench, std::vector<GridUnit>& units) {
    for (const int n : kGridFormatSizes) {
        constexpr double kSecondsPerFlop = 2e-12;  // FP32 takes most of it
        units.push_back({"formats", fmt::format("n={}", n), 0.2 + kSecondsPerFlop * 2.0 * n * n * n,
                         [&bench, n] { measure_formats(bench, n); }});
    }
}

void add_zeros(GridBench& bench, std::vector<GridUnit>& units) {
    for (const std::string_view kind : {"bf16", "fp8"})
        units.push_back(
            {"zeros", fmt::format("8192^3, {}", kind), 1, [&bench, kind] { measure_zeros(bench, kind); }});
}

void add_host_copy(GridBench& bench, std::vector<GridUnit>& units) {
    units.push_back({"host_copy", "1 GiB", 2, [&bench] { measure_host_copy(bench); }});
}

}  // namespace fp8lab::cuda
