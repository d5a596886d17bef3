#include "core/nn/memory_plan.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "core/nn/model.h"
#include "core/scaling/block_scales.h"

namespace fp8lab::cuda {
namespace {

std::size_t size(int n) { return static_cast<std::size_t>(n); }
std::size_t elements(int rows, int cols) { return size(padded(rows)) * size(padded(cols)); }
std::size_t stats_blocks(int rows, int cols) {
    return size(tiles_down(padded(rows))) * size(tiles_across(padded(cols)));
}

std::size_t gradient_bytes(const TrainSpec& spec, const Recipe& recipe, Engine engine) {
    if (spec.state == StateType::bf16) return 2;
    return engine == Engine::emulated || recipe.wgrad == OutType::fp32 ? 4 : 2;
}

}  // namespace

ScaleMode scale_mode_of(const CastPlan& plan) {
    if (plan.granularity == Granularity::row) return ScaleMode::row;
    if (plan.granularity == Granularity::block128)
        return plan.square_blocks ? ScaleMode::square128 : ScaleMode::block128;
    if (plan.granularity == Granularity::block32) return ScaleMode::block32;
    return ScaleMode::tensor;
}

namespace {

// The linear layers of a model of tokens.
template <class Visit>
void for_each_weight(const TrainSpec& spec, const Visit& visit) {
    const ModelPlan plan = model_plan(spec);
    for (const ParameterSpec& p : plan.parameters)
        if (p.operand) visit(static_cast<double>(p.shape[0]), static_cast<double>(p.shape[1]));
}

double token_flop(const TrainSpec& spec, int batch) {
    const double context = spec.sizes.at("context"), rows = padded(batch * spec.sizes.at("context"));
    double flop = 0;
    for_each_weight(spec, [&](double out, double in) { flop += 3 * 2 * rows * out * in; });
    // Two products forward and four backward, each over the positions up to the row's own.
    return flop + spec.sizes.at("blocks") * 6 * 2 * rows * context / 2 * spec.sizes.at("d");
}

}  // namespace

double step_elements(const TrainSpec& spec) {
    double total = 0;
    if (spec.model != "mlp") {
        const double rows = spec.batch * static_cast<double>(spec.sizes.at("context"));
        for_each_weight(spec, [&](double out, double in) { total += out * in + rows * (out + in); });
        return total;
    }
    for (std::size_t l = 0; l + 1 < spec.layers.size(); ++l)
        total += static_cast<double>(spec.layers[l]) * spec.layers[l + 1] +
                 static_cast<double>(spec.batch) * (spec.layers[l] + spec.layers[l + 1]);
    return total;
}

double step_flop(const TrainSpec& spec, int batch) {
    if (spec.model != "mlp") return token_flop(spec, batch);
    double flop = 0;
    for (std::size_t l = 0; l + 1 < spec.layers.size(); ++l)  // no gradient of the network's input
        flop += (l > 0 ? 3 : 2) * 2.0 * padded(batch) * padded(spec.layers[l]) * padded(spec.layers[l + 1]);
    return flop;
}

int steps_per_launch(const TrainSpec& spec, int batch) {
    constexpr double kShort = 2e10;  // below, a step takes less than about 0.1 ms
    return step_flop(spec, batch) <= kShort ? kStepsPerLaunch : 1;
}

int data_slots(const TrainSpec& spec) { return spec.task == TaskKind::noise ? 1 : kInputSlots; }

bool multiplies_in_update(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch) {
    const auto fits = [&](TensorClass tensor) {
        const ScaleMode scaling = scale_mode_of(cast_plan(recipe, tensor));
        return scaling == ScaleMode::tensor || scaling == ScaleMode::row || scaling == ScaleMode::block128;
    };
    return engine != Engine::emulated && gradient_bytes(spec, recipe, engine) == 4 && fits(TensorClass::x) &&
           fits(TensorClass::dy) && padded(batch) <= kMostFusedBatch;
}

std::size_t emulation_scratch_bytes(const CastPlan& plan, int rows, int cols) {
    std::size_t blocks = 0;
    for (const Along along : {Along::cols, Along::rows})
        blocks = std::max(blocks, block_grid(plan, size(rows), size(cols), along).count());
    // The amaxes, before them the tensor's, after them what each block's becomes.
    const bool chooses = plan.granularity == Granularity::block16 && plan.target == Nvfp4Target::four_or_six;
    return ((chooses ? 2 : 1) * blocks + 1) * sizeof(float);
}

namespace {

class ArmList {
  public:
    ArmList(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch);
    std::vector<Allocation> list;

  private:
    void add(ArmPart part, std::size_t bytes, int layer = 0, TensorClass tensor = TensorClass::x);
    void add_tensor(TensorClass tensor, int layer, int rows, int cols);
    void add_layer(int layer, int in, int out);
    void add_arm();
    int layers() const { return static_cast<int>(spec_.layers.size()) - 1; }
    CastPlan plan_of(TensorClass tensor, int layer) const {
        return cast_plan(recipe_, tensor, std::max(layer, 1), layers());
    }

    const TrainSpec& spec_;
    const Recipe& recipe_;
    Engine engine_;
    int batch_;
};

ArmList::ArmList(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch)
    : spec_(spec), recipe_(recipe), engine_(engine), batch_(batch) {
    for (std::size_t l = 0; l + 1 < spec.layers.size(); ++l)
        add_layer(static_cast<int>(l) + 1, spec.layers[l], spec.layers[l + 1]);
    if (engine != Engine::emulated &&
        steps_per_launch(spec, batch) > 1) {  // steps overlap: two inputs at once
        add_tensor(TensorClass::x, 0, batch, spec.layers.front());
        if (scale_mode_of(cast_plan(recipe, TensorClass::x)) == ScaleMode::tensor)
            add(ArmPart::next_scale_inv, sizeof(float));
    }
    add_arm();
}

void ArmList::add(ArmPart part, std::size_t bytes, int layer, TensorClass tensor) {
    if (bytes > 0) list.push_back({part, layer, tensor, bytes});
}

void ArmList::add_tensor(TensorClass tensor, int layer, int rows, int cols) {
    const auto of = [&](ArmPart part, std::size_t bytes) { add(part, bytes, layer, tensor); };
    const CastPlan plan = plan_of(tensor, layer);
    const std::size_t n = elements(rows, cols);
    // No dgrad into the network's input: nobody reads w1 along its rows or dy1 along its columns.
    const bool both = layer > 1 || tensor == TensorClass::x;
    if (engine_ == Engine::emulated) {
        const bool cast = plan.format->name != "fp32";
        if (tensor != TensorClass::w) of(ArmPart::value, 4 * n);
        if (cast) of(ArmPart::first, 4 * n);
        // 16x16 blocks are the same along both dimensions: one cast.
        const bool one_cast = plan.granularity == Granularity::tensor ||
                              (plan.granularity == Granularity::block16 && plan.square_blocks);
        if (cast && both && !one_cast) of(ArmPart::second, 4 * n);
    } else if (engine_ == Engine::bf16) {
        // Weights that are kept in BF16 are read where they are.
        if (spec_.state == StateType::fp32 || tensor != TensorClass::w) of(ArmPart::first, 2 * n);
    } else {
        if (both || tensor == TensorClass::w) of(ArmPart::first, n);
        if (both || tensor == TensorClass::dy) of(ArmPart::second, n);
        const ScaleMode mode = scale_mode_of(plan);
        const int r = padded(rows), c = padded(cols);
        const std::size_t scales =
            sizeof(float) * size(scale_inv_count(mode, r, c) + scale_inv_count(mode, c, r));
        of(ArmPart::scale_inv, scales);
        if (mode == ScaleMode::row) of(ArmPart::amaxes, scales + sizeof(std::uint32_t));
        if (mode == ScaleMode::block32 && tensor != TensorClass::w) of(ArmPart::value, 4 * n);
    }
    of(ArmPart::stats, stats_blocks(rows, cols) * kCastSumsBytes);
}

void ArmList::add_layer(int layer, int in, int out) {
    const auto of = [&](ArmPart part, std::size_t bytes) { add(part, bytes, layer); };
    add_tensor(TensorClass::x, layer, batch_, in);
    add_tensor(TensorClass::w, layer, out, in);
    add_tensor(TensorClass::dy, layer, batch_, out);
    const std::size_t result = engine_ == Engine::emulated || recipe_.out == OutType::fp32 ? 4 : 2,
                      kept = spec_.state == StateType::bf16 ? 2 : 4, weights = elements(out, in),
                      biases = sizeof(float) * size(padded(out));
    of(ArmPart::output, result * elements(batch_, out));
    if (layer > 1) of(ArmPart::input_gradient, result * elements(batch_, in));
    of(ArmPart::master, kept * weights);
    if (!multiplies_in_update(spec_, recipe_, engine_, batch_))
        of(ArmPart::weight_gradient, gradient_bytes(spec_, recipe_, engine_) * weights);
    of(ArmPart::bias, biases);
    of(ArmPart::bias_before, biases);
    of(ArmPart::bias_gradient, biases);
    if (spec_.optimizer == OptimizerKind::adamw) {
        of(ArmPart::m, kept * weights);
        of(ArmPart::v, kept * weights);
        of(ArmPart::bias_m, biases);
        of(ArmPart::bias_v, biases);
    }
    of(ArmPart::bias_partials, size(tiles_down(padded(batch_))) * biases);
}

void ArmList::add_arm() {
    const auto of = [&](ArmPart part, std::size_t bytes) { add(part, bytes); };
    const std::size_t tensors = 3 * (spec_.layers.size() - 1), rows = size(batch_);
    of(ArmPart::states, tensors * kScaleStateBytes);
    of(ArmPart::history, tensors * kHistoryCapacity * sizeof(float));
    of(ArmPart::controls, kScaleControlsBytes);
    of(ArmPart::steps, kStepsPerLaunch * kArmStateBytes);
    of(ArmPart::finite, sizeof(std::int32_t));
    of(ArmPart::results, kRecordSlots * kStepResultBytes);
    of(ArmPart::tensor_results, kRecordSlots * tensors * kTensorResultBytes);
    of(ArmPart::loss_partials, sizeof(double) * std::max(stats_blocks(batch_, spec_.layers.back()), rows));
    of(ArmPart::row_stats, 2 * sizeof(float) * rows);
    of(ArmPart::row_correct, rows);
    if (engine_ != Engine::emulated) return;
    std::size_t scratch = 1, rotated = 0;
    for (std::size_t l = 0; l + 1 < spec_.layers.size(); ++l) {
        const int in = spec_.layers[l], out = spec_.layers[l + 1], layer = static_cast<int>(l) + 1;
        const bool rotates = recipe_of_layer(recipe_, layer, layers()).rht;
        if (rotates) rotated = std::max(rotated, 4 * elements(batch_, std::max(in, out)));
        // What is rotated has its padding too.
        const int batch = rotates ? padded(batch_) : batch_;
        for (const auto& [tensor, r, c] : {std::tuple{TensorClass::x, batch, in},
                                           {TensorClass::w, out, in},
                                           {TensorClass::dy, batch, out}})
            scratch = std::max(scratch, emulation_scratch_bytes(plan_of(tensor, layer), r, c));
    }
    of(ArmPart::scratch, scratch);
    of(ArmPart::rotated, rotated);
}

}  // namespace

ArmMemory::ArmMemory(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch)
    : list_(std::move(ArmList(spec, recipe, engine, batch).list)) {}

std::size_t ArmMemory::bytes(ArmPart part, int layer, TensorClass tensor) const {
    for (const Allocation& one : list_)
        if (one.part == part && one.layer == layer && one.tensor == tensor) return one.bytes;
    return 0;
}

std::size_t ArmMemory::requested_bytes() const {
    std::size_t sum = 0;
    for (const Allocation& one : list_) sum += one.bytes;
    return sum;
}

std::size_t ArmMemory::device_bytes() const {
    constexpr std::size_t kPage = 2 << 20, kSmall = 1 << 20, kAligned = 512;
    const auto up = [](std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; };
    std::size_t pages = 0, packed = 0;
    for (const Allocation& one : list_)
        (one.bytes > kSmall ? pages : packed) += up(one.bytes, one.bytes > kSmall ? kPage : kAligned);
    return pages + up(packed, kPage);
}

std::size_t ring_bytes(const TrainSpec& spec, int batch) {
    return sizeof(float) * size(data_slots(spec)) * size(batch) *
               size(spec.layers.front() + spec.layers.back()) +
           kInputSlots * kStepInputBytes;
}

}  // namespace fp8lab::cuda
