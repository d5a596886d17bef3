#include "kernels/bench/layer_operands.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "core/base/error.h"
#include "kernels/bench/copy.h"
#include "kernels/device/random_fill.h"
#include "kernels/gemm/engine.h"

namespace fp8lab::cuda {
namespace {

constexpr int kSlotA = 0, kSlotB = 1, kSlotCastFrom = 2, kSlotCastRows = 3, kSlotCastColumns = 4;

bool is_bf16_kind(std::string_view kind) { return kind == "bf16"; }

// The scales of an operand, whatever their mode; with room for padding.
std::size_t most_scales(const GemmSpec& s) {
    return matrix_elements(std::max(s.m, s.n), s.k / kBlock + 4) + 1024;
}

std::vector<GemmSpec> ceiling_specs(const std::vector<std::string_view>& kinds) {
    std::vector<GemmSpec> out;
    for (const std::string_view kind : kinds)
        out.push_back(layer_product("fprop", {kCeilingSize, kCeilingSize, kCeilingSize}, kind));
    return out;
}

}  // namespace

std::size_t matrix_elements(int rows, int cols) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}

GemmSpec layer_product(std::string_view product, const GridLayer& layer, std::string_view recipe,
                       FastAccum fast_accum) {
    Recipe parsed = parse_recipe(recipe);
    parsed.fast_accum = fast_accum;
    const LayerProducts all =
        products_of(parsed, is_bf16_kind(recipe) ? Engine::bf16 : Engine::fp8, layer.m, layer.k, layer.n);
    return product == "fprop" ? all.fprop : product == "dgrad" ? all.dgrad : all.wgrad;
}

GemmSpec layer_product(std::string_view product, const GridLayer& layer, std::string_view kind) {
    if (kind == "tensor-fast") return layer_product(product, layer, "delayed", FastAccum::all);
    if (kind == "tensor") return layer_product(product, layer, "delayed", FastAccum::none);
    if (kind == "fp8") return layer_product(product, layer, "delayed", FastAccum::fprop);
    return layer_product(product, layer, kind == "row" ? "rowwise" : kind, FastAccum::fprop);
}

void OperandPool::grow(Memory& memory, std::size_t bytes) {
    memory = Memory();  // before the new one is asked for
    memory = Memory(bytes);
}

void* OperandPool::operand(int slot, Element element, std::size_t elements) {
    constexpr std::size_t kRound = 256;
    const std::size_t bytes =
        (elements * static_cast<std::size_t>(bytes_of(element)) + kRound - 1) / kRound * kRound;
    Memory& memory = operands_[{slot, element}];
    if (memory.bytes() < bytes) {
        grow(memory, bytes);
        if (zeros_)
            check(cudaMemsetAsync(memory.get(), 0, bytes, stream_), "cudaMemsetAsync");
        else
            fill_random(memory.get(), element, bytes, static_cast<std::uint32_t>(slot) + 1, stream_);
    }
    return memory.get();
}

void* OperandPool::output(std::size_t bytes) {
    if (output_.bytes() < bytes) grow(output_, bytes);
    return output_.get();
}

const float* OperandPool::ones(std::size_t count) {
    if (ones_.bytes() < count * sizeof(float)) {
        grow(ones_, count * sizeof(float));
        const std::vector<float> values(count, 1.0F);
        copy_to_device(ones_.get(), values.data(), ones_.bytes());
    }
    return static_cast<const float*>(ones_.get());
}

LtOperands OperandPool::of(const GemmSpec& s, int groups) {
    const auto count = static_cast<std::size_t>(groups);
    const float* scales = s.a_scale == ScaleMode::none ? nullptr : ones(most_scales(s));
    return {operand(kSlotA, s.a, count * matrix_elements(s.m, s.k)),
            operand(kSlotB, s.b, count * matrix_elements(s.n, s.k)),
            output(count * matrix_elements(s.m, s.n) * static_cast<std::size_t>(bytes_of(s.d))), scales,
            scales};
}

// ---- casts ----

TensorCast::TensorCast(std::string_view recipe, const GridTensor& tensor, OperandPool& pool)
    : recipe_(recipe),
      shape_{tensor.rows, tensor.cols, padded(tensor.rows), padded(tensor.cols)},
      element_(tensor.what == "dy" && recipe != "block128" ? Element::e5m2 : Element::e4m3),
      scaling_(recipe == "rowwise"                          ? ScaleMode::row
               : recipe == "block128" && tensor.what == "w" ? ScaleMode::square128
               : recipe == "block128"                       ? ScaleMode::block128
                                                            : ScaleMode::tensor),
      scales_(scaling_ == ScaleMode::tensor ? ScaleBuffers() : ScaleBuffers(scaling_, shape_)) {
    const std::size_t count = matrix_elements(shape_.padded_rows, shape_.padded_cols);
    in_ = pool.operand(kSlotCastFrom, Element::bf16, count);
    rows_ = pool.operand(kSlotCastRows, Element::e4m3, count);
    columns_ = pool.operand(kSlotCastColumns, Element::e4m3, count);
    ScaleState state;
    constexpr float kScale = 8, kLargestE5m2 = 57344;
    state.scale = kScale;
    if (element_ == Element::e5m2) state.max_finite = kLargestE5m2;
    state_.upload({&state, 1});
    const ScaleControls controls;
    controls_.upload({&controls, 1});
}

void TensorCast::launch(bool both, cudaStream_t stream) const {
    CastTarget target;
    target.element = element_;
    target.rows = rows_;
    if (both) target.columns = columns_;
    target.state = state_.get();
    target.scaled = true;
    target.scaling = scaling_;
    target.vectors = scales_.vectors(controls_.get());
    const bool twice = recipe_ == "current" || recipe_ == "rowwise";
    if (twice) cast_matrix(in_, Element::bf16, shape_, target, Pass::amax_only, stream);
    if (recipe_ == "current") scale_from_amax(state_.get(), controls_.get(), stream);
    if (recipe_ == "rowwise") scale_vectors_from_amaxes(target.vectors, shape_, state_.get(), stream);
    cast_matrix(in_, Element::bf16, shape_, target, Pass::cast, stream);
}

double TensorCast::bytes() const {
    const auto count = static_cast<double>(matrix_elements(shape_.rows, shape_.cols));
    const double reads = recipe_ == "current" || recipe_ == "rowwise" ? 2 : 1;
    return count * (reads * bytes_of(Element::bf16) + 1);
}

bool time_casts_of(const GridTensor& tensor, const std::vector<std::string_view>& recipes, OperandPool& pool,
                   int repeats, cudaStream_t stream, const AfterRound& after, std::vector<GridCast>& out) {
    std::vector<std::unique_ptr<TensorCast>> casts;
    const std::size_t first = out.size();
    for (const std::string_view recipe : recipes) {
        casts.push_back(std::make_unique<TensorCast>(recipe, tensor, pool));
        GridCast& cast = out.emplace_back();
        cast.what = tensor.what;
        cast.recipe = recipe;
        cast.rows = tensor.rows;
        cast.cols = tensor.cols;
        cast.bytes = casts.back()->bytes();
    }
    std::vector<Turn> turns;
    for (std::size_t i = 0; i < casts.size(); ++i)
        for (const bool both : {false, true}) {
            const auto launch = [cast = casts[i].get(), both](cudaStream_t s) { cast->launch(both, s); };
            turns.push_back({both ? nullptr : &out[first + i], launch, rough_ms(launch, stream),
                             both ? &out[first + i].both_ms : nullptr});
        }
    const bool whole = time_turns(turns, repeats, stream, after);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");  // before their scales are freed
    return whole;
}

// ---- ceilings ----

Ceilings::Ceilings(const Lt& lt, cudaStream_t stream, std::vector<std::string_view> kinds)
    : lt_(lt),
      stream_(stream),
      kinds_(std::move(kinds)),
      specs_(ceiling_specs(kinds_)),
      pool_(stream, false),
      from_(static_cast<std::size_t>(kCopyMovedBytes / 2)),
      to_(from_.bytes()) {
    fill_random(from_.get(), Element::bf16, from_.bytes(), 1, stream);
    for (const GemmSpec& spec : specs_) pool_.of(spec);  // all grow before the first address counts
    for (const GemmSpec& spec : specs_) {
        on_.push_back(pool_.of(spec));
        LtProduct product(lt_, lt_spec(spec), kContestants);
        Answer refused = product.answer();
        const auto ms =
            refused.status == 0 ? short_contest(product, on_.back(), stream, refused) : std::nullopt;
        refused_.push_back(refused);
        ms_.push_back(ms.value_or(0));
        products_.emplace_back();
        if (ms) products_.back() = std::move(product);
    }
}

void Ceilings::load(double seconds) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
        constexpr int kAtOnce = 8;
        for (int i = 0; i < kAtOnce; ++i)
            for (std::size_t p = 0; p < products_.size(); ++p)
                if (products_[p]) products_[p]->run(on_[p], stream_);
        check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    }
}

bool Ceilings::measure(std::string_view when, int repeats, const AfterRound& after,
                       std::vector<GridCeiling>& out) {
    std::vector<GridCeiling> measured(products_.size());
    GridCeiling by_library, by_kernel;
    by_library.kernel = "cudaMemcpyAsync";
    by_kernel.kernel = "copy_kernel";
    constexpr double kCopyMs = 0.5;
    std::vector<Turn> turns = {
        {&by_library,
         [this](cudaStream_t s) {
             check(cudaMemcpyAsync(to_.get(), from_.get(), from_.bytes(), cudaMemcpyDeviceToDevice, s),
                   "cudaMemcpyAsync");
         },
         kCopyMs},
        {&by_kernel, [this](cudaStream_t s) { copy_kernel(from_.get(), to_.get(), from_.bytes(), s); },
         kCopyMs}};
    for (std::size_t p = 0; p < products_.size(); ++p) {
        measured[p].what = kinds_[p];
        if (!products_[p]) {
            measured[p].status = refused_[p].status;
            measured[p].from = refused_[p].from;
            measured[p].words = refused_[p].words;
            continue;
        }
        turns.push_back({&measured[p], [this, p](cudaStream_t s) { products_[p]->run(on_[p], s); }, ms_[p]});
    }
    const bool whole = time_turns(turns, repeats, stream_, after);
    measured.insert(measured.begin(), by_kernel.median_ms < by_library.median_ms ? by_kernel : by_library);
    measured.front().what = "copy";
    for (GridCeiling& ceiling : measured) {
        ceiling.when = when;
        if (ceiling.ran() || ceiling.status != 0) out.push_back(ceiling);
    }
    return whole;
}

}  // namespace fp8lab::cuda
