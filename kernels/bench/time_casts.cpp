// Timings of the case table against the copy of the same card.
#include <cmath>

#include "core/base/error.h"
#include "kernels/bench/cases.h"
#include "kernels/bench/copy.h"
#include "kernels/bench/measure.h"
#include "kernels/bench/transformer_cases.h"
#include "kernels/device/random_fill.h"
#include "kernels/scaling/scale_buffers.h"

namespace fp8lab::cuda {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{1} << 30;               // read, and as many written
constexpr double kMovedBytes = 2.0 * static_cast<double>(kCopyBytes);  // by every measurement, at least
Timed line_of(std::string name, double bytes, std::string kernel) {
    Timed line;
    line.name = std::move(name);
    line.bytes = bytes;
    line.kernel = std::move(kernel);
    return line;
}

// A stream with its two events: how long what `enqueue` puts there takes.
class Stopwatch {
  public:
    template <class Enqueue>
    double ms(Enqueue&& enqueue) {
        start_.record(stream_.get());
        enqueue(stream_.get());
        end_.record(stream_.get());
        end_.wait();
        return static_cast<double>(elapsed_ms(start_, end_));
    }
    cudaStream_t stream() const { return stream_.get(); }

  private:
    Stream stream_;
    Event start_, end_;
};

// The two contestants for the ceiling.
class Copies {
  public:
    explicit Copies(cudaStream_t stream) : from_(kCopyBytes), to_(kCopyBytes) {
        fill_random(from_.get(), Element::bf16, kCopyBytes, 1, stream);
    }
    void measure(Stopwatch& watch) {
        memcpy_ms_.push_back(watch.ms([&](cudaStream_t stream) {
            check(cudaMemcpyAsync(to_.get(), from_.get(), kCopyBytes, cudaMemcpyDeviceToDevice, stream),
                  "cudaMemcpyAsync");
        }));
        kernel_ms_.push_back(
            watch.ms([&](cudaStream_t stream) { copy_kernel(from_.get(), to_.get(), kCopyBytes, stream); }));
    }
    Timed faster() const {
        Timed by_library = line_of("copy of 1 GiB", kMovedBytes, "cudaMemcpyAsync"),
              by_kernel = line_of("copy of 1 GiB", kMovedBytes, "copy_kernel");
        summarise(by_library, memcpy_ms_);
        summarise(by_kernel, kernel_ms_);
        return by_kernel.median_ms < by_library.median_ms ? by_kernel : by_library;
    }

  private:
    Memory from_, to_;
    std::vector<double> memcpy_ms_, kernel_ms_;
};

// Memory for `sets` repetitions of a case, so that none finds its data in a cache.
class Bench {
  public:
    Bench(const KernelCase& kernel, Shape shape, cudaStream_t stream)
        : kernel_(kernel),
          shape_(shape),
          elements_(static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.cols)) {
        const double bytes = bytes_per_element(kernel) * static_cast<double>(elements_);
        sets_ = static_cast<int>(std::ceil(kMovedBytes / bytes));
        for (int set = 0; set < sets_; ++set) {
            for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
                inputs_.emplace_back(elements_ * static_cast<std::size_t>(bytes_of(kernel.inputs[i])));
                fill(inputs_.back(), i, static_cast<std::uint32_t>(set * kCaseInputs) + 2, stream);
            }
            for (int layout = 0; layout < (!kernel.stores ? 0 : kernel.transposed ? 2 : 1); ++layout)
                outputs_.emplace_back(elements_ * static_cast<std::size_t>(bytes_of(kernel.payload)));
        }
        ScaleState state;
        state.scale = 8;
        state_.upload({&state, 1});
        const StepInput input = case_input();
        input_.upload({&input, 1});
        const ArmState arm;
        arm_.upload({&arm, 1});
        bias_ = Buffer<float>(static_cast<std::size_t>(shape.cols));
        fill_random(bias_.get(), Element::f32, bias_.size() * sizeof(float), 99, stream);
        bias_partials_ = Buffer<float>(static_cast<std::size_t>(tiles_down(shape)) * bias_.size());
        loss_partials_ = Buffer<double>(static_cast<std::size_t>(stats_blocks(shape)));
        stats_ = Buffer<CastSums>(static_cast<std::size_t>(stats_blocks(shape)));
    }

    void enqueue(cudaStream_t stream) const {
        const std::size_t in = kernel_.inputs.size(), out = outputs_.size() / static_cast<std::size_t>(sets_);
        for (std::size_t set = 0; set < static_cast<std::size_t>(sets_); ++set) {
            CaseMemory memory{{},           bias_.get(), bias_partials_.get(), loss_partials_.get(),
                              input_.get(), arm_.get(),  finite_.get()};
            for (std::size_t i = 0; i < in; ++i) memory.matrices[i] = inputs_[set * in + i].get();
            CastTarget target;
            target.element = kernel_.payload;
            if (out > 0) target.rows = outputs_[set * out].get();
            if (out > 1) target.columns = outputs_[set * out + 1].get();
            target.state = state_.get();
            target.scaled = bytes_of(kernel_.payload) == 1;
            if (kernel_.statistics) target.stats_partials = stats_.get();
            target.scaling = kernel_.scaling;
            target.vectors = scales_.vectors(controls_.get());
            run(kernel_, memory, shape_, target, stream);
        }
    }
    double bytes() const { return bytes_per_element(kernel_) * static_cast<double>(elements_); }
    int sets() const { return sets_; }

  private:
    // Moments start at 0: random second moments would have roots of negative numbers. The first update makes
    // them what they are in training.
    void fill(const Memory& memory, std::size_t input, std::uint32_t seed, cudaStream_t stream) const {
        if (input >= 2)
            check(cudaMemsetAsync(memory.get(), 0, memory.bytes(), stream), "cudaMemsetAsync");
        else
            fill_random(memory.get(), kernel_.inputs[input], memory.bytes(),
                        seed + static_cast<std::uint32_t>(input), stream);
    }

    const KernelCase& kernel_;
    Shape shape_;
    std::size_t elements_;
    int sets_ = 1;
    std::vector<Memory> inputs_, outputs_;
    ScaleBuffers scales_{kernel_.scaling, shape_};
    Buffer<ScaleControls> controls_{1};
    Buffer<ScaleState> state_{1};
    Buffer<StepInput> input_{1};
    Buffer<ArmState> arm_{1};
    Buffer<std::int32_t> finite_{1};
    Buffer<float> bias_, bias_partials_;
    Buffer<double> loss_partials_;
    Buffer<CastSums> stats_;
};

}  // namespace

std::vector<Timed> time_casts(std::array<int, 2> shape, int repeats) {
    const auto [rows, cols] = shape;
    if (rows < 16 || cols < 16 || rows % 16 != 0 || cols % 16 != 0)
        throw usage_error("--shape", "rows and columns of a cast are multiples of 16, at least 16");
    Stopwatch watch;
    Copies copies(watch.stream());
    std::vector<Timed> lines(1);
    const auto time = [&](std::string_view name, std::string_view by, const auto& bench) {
        const auto work = [&](cudaStream_t stream) { bench.enqueue(stream); };
        watch.ms(work);
        watch.ms(work);
        std::vector<double> ms;
        for (int i = 0; i < repeats; ++i) {
            ms.push_back(watch.ms(work) / bench.sets());
            copies.measure(watch);
        }
        Timed line = line_of(std::string(name), bench.bytes(), std::string(by));
        summarise(line, std::move(ms));
        lines.push_back(std::move(line));
    };
    const Shape whole{rows, cols, rows, cols};
    for (const KernelCase& kernel : kernel_cases())
        time(kernel.name,
             kernel.scaling == ScaleMode::tensor    ? "tile_cast"
             : kernel.scaling == ScaleMode::block32 ? "mx_cast"
             : kernel.scaling == ScaleMode::row     ? "row_cast"
                                                    : "block_cast",
             Bench(kernel, whole, watch.stream()));
    for (const TransformerCase& kernel : transformer_cases())
        if (kernel.widest == 0 || cols <= kernel.widest)
            time(kernel.name, kernel.kernel, TransformerBench(kernel, whole, kMovedBytes, watch.stream()));
    lines[0] = copies.faster();
    return lines;
}

}  // namespace fp8lab::cuda
