#include "kernels/infer/decode_memory.h"

#include "core/nn/ops/rope.h"

namespace fp8lab::cuda {
namespace {

std::size_t times(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

}  // namespace

DecodeWeights decode_weights(const ServedFormats& formats) {
    return formats.weights == ServedWeights::bf16 ? DecodeWeights::bf16 : DecodeWeights::e4m3;
}
DecodeInputs decode_inputs(const ServedFormats& formats) {
    return formats.weights == ServedWeights::e4m3       ? DecodeInputs::e4m3_tensor
           : formats.weights == ServedWeights::e4m3_row ? DecodeInputs::e4m3_row
                                                        : DecodeInputs::bf16;
}
DecodeCache decode_cache(const ServedFormats& formats) {
    return formats.cache == ServedCache::bf16 ? DecodeCache::bf16 : DecodeCache::e4m3;
}

DecodeMemory::DecodeMemory(const DecodeShape& shape, const ServedFormats& formats) : formats_(formats) {
    model_.layers = shape.layers, model_.batch = shape.batch, model_.d = shape.d;
    model_.heads = shape.heads, model_.kv_heads = shape.kv_heads;
    model_.head_size = shape.d / shape.heads;
    model_.ffn = shape.ffn, model_.capacity = shape.capacity;
    model_.head = shape.vocabulary > 0;
    model_.inputs = decode_inputs(formats);
    const auto sizes = [&](DecodeMatrixName name, int rows, int cols) {
        model_.matrix[name].rows = rows, model_.matrix[name].cols = cols;
    };
    sizes(kQkv, (shape.heads + 2 * shape.kv_heads) * model_.head_size, shape.d);
    sizes(kOut, shape.d, shape.d);
    sizes(kGateUp, 2 * shape.ffn, shape.d);
    sizes(kDown, shape.d, shape.ffn);
    sizes(kHead, shape.vocabulary, shape.d);
    plan_ = plan_decode(model_, decode_weights(formats), {multiprocessors(), shared_memory()});
    make_weights(shape);
    make_cache(shape);
    make_rows(shape);
}

Memory DecodeMemory::zeros(std::size_t bytes) {
    Memory memory(bytes);
    fill_zeros(memory.get(), bytes);
    bytes_ += static_cast<double>(bytes);
    return memory;
}

template <class T>
Buffer<T> DecodeMemory::buffer(std::size_t count, T value) {
    Buffer<T> made(zeros(count * sizeof(T)));
    if (value != T{}) made.upload(std::vector<T>(count, value));
    return made;
}

void DecodeMemory::make_weights(const DecodeShape& shape) {
    const DecodeMatrix& head = model_.matrix[kHead];
    const auto layers = static_cast<std::size_t>(shape.layers);
    // Rows and columns that fill up the last tiles and blocks are read and must be finite.
    weights_ = zeros(layers * model_.layer_bytes +
                     (model_.head ? times(head.tiles, head.blocks) * kDecodeBlockBytes : 0));
    scales_ =
        buffer(times(shape.layers, model_.layer_scales) + static_cast<std::size_t>(shape.vocabulary), 1.0F);
    gains_ = buffer((2 * layers + 1) * static_cast<std::size_t>(shape.d), 1.0F);
    model_.weights = static_cast<const std::uint8_t*>(weights_.get());
    model_.scales = scales_.get(), model_.gains = gains_.get();
}

void DecodeMemory::make_cache(const DecodeShape& shape) {
    const auto capacity = static_cast<std::size_t>(shape.capacity),
               head_size = static_cast<std::size_t>(model_.head_size);
    const RotaryTable<float> angles(capacity, head_size);
    cos_ = Buffer<float>(std::span(angles.cos().values));
    sin_ = Buffer<float>(std::span(angles.sin().values));
    bytes_ += static_cast<double>((cos_.size() + sin_.size()) * sizeof(float));
    const std::size_t heads = times(shape.layers, shape.kv_heads),
                      values = heads * static_cast<std::size_t>(shape.batch) * capacity * head_size;
    const std::size_t wide = formats_.cache == ServedCache::bf16 ? 2 : 1;
    k_ = zeros(values * wide), v_ = zeros(values * wide);
    k_scales_ = buffer(heads, 1.0F), v_scales_ = buffer(heads, 1.0F);
    length_ = buffer<std::int32_t>(1);
    model_.cos = cos_.get(), model_.sin = sin_.get();
    model_.k = k_.get(), model_.v = v_.get();
    model_.k_scales = k_scales_.get(), model_.v_scales = v_scales_.get();
    model_.length = length_.get();
}

void DecodeMemory::make_rows(const DecodeShape& shape) {
    const int batch = shape.batch;
    stream_ = buffer<float>(times(batch, shape.d));
    qkv_ = buffer<float>(times(batch, model_.matrix[kQkv].rows));
    attended_ = buffer<float>(times(batch, shape.d));
    hidden_ = buffer<float>(times(batch, shape.ffn));
    logits_ = buffer<float>(times(batch, shape.vocabulary));
    partials_ = buffer<float>(decode_partials(model_, plan_.blocks));
    constexpr std::size_t kBarrier = 2, kAmaxes = 2 * kMostDecodeTokens;
    counts_ = buffer<std::uint32_t>(kBarrier + kAmaxes + times(batch, shape.heads));
    model_.stream = stream_.get(), model_.qkv = qkv_.get();
    model_.attended = attended_.get(), model_.hidden = hidden_.get();
    model_.logits = logits_.get(), model_.partials = partials_.get();
    model_.barrier = counts_.get();
    model_.amaxes = counts_.get() + kBarrier;
    model_.arrived = counts_.get() + kBarrier + kAmaxes;
}

std::uint8_t* DecodeMemory::matrix_at(DecodeMatrixName name, int layer) const {
    return static_cast<std::uint8_t*>(weights_.get()) + static_cast<std::size_t>(layer) * model_.layer_bytes +
           model_.matrix[name].at;
}
float* DecodeMemory::scales_at(DecodeMatrixName name, int layer) const {
    return scales_.get() + times(layer, model_.layer_scales) + model_.matrix[name].scales_at;
}

void DecodeMemory::enqueue(cudaStream_t stream) const {
    decode(model_, plan_, decode_weights(formats_), decode_cache(formats_), stream);
}

}  // namespace fp8lab::cuda
