#include "labs/memory/model_own.h"

#include <algorithm>
#include <limits>

#include "core/backend/recording.h"
#include "core/base/error.h"
#include "core/nn/model.h"

namespace fp8lab::memory {
namespace {

using cuda::ArmPart;

constexpr std::array kRecipes = {"bf16", "delayed"};

// Null where it was not measured.
const RecordedStep* recorded_step(const Recording& recording, std::string_view model) {
    static const TrainSpec kNetwork = own_network(), kTransformer = own_transformer();
    if (model != "transformer") return recording.step(kNetwork.layers, kNetwork.batch);
    const auto is_it = [&](const RecordedBlocks& one) {
        return one.vocabulary == kTransformer.vocabulary && one.step.batch == kTransformer.batch &&
               std::ranges::all_of(one.sizes, [](const auto& size) {
                   const auto own = kTransformer.sizes.find(size.first);
                   return own != kTransformer.sizes.end() && own->second == size.second;
               });
    };
    const auto found = std::ranges::find_if(recording.blocks, is_it);
    return found == recording.blocks.end() ? nullptr : &found->step;
}

// The row of the table that an allocation belongs to.
Row row_of(const cuda::Allocation& one, bool fp8) {
    switch (one.part) {
        case ArmPart::first:
        case ArmPart::second:
            if (one.tensor != TensorClass::w) return Row::activations;
            return !fp8 ? Row::weights : one.part == ArmPart::first ? Row::copy : Row::copy_t;
        case ArmPart::output:
        case ArmPart::input_gradient:
        case ArmPart::stream:
        case ArmPart::stream_gradient:
            return Row::activations;
        case ArmPart::master:
            return Row::master;
        case ArmPart::m:
            return Row::m;
        case ArmPart::v:
            return Row::v;
        case ArmPart::weight_gradient:
            return Row::gradients;
        default:  // biases, scales, statistics, records
            return Row::workspace;
    }
}

}  // namespace

TrainSpec own_network() {
    TrainSpec spec;
    spec.task = TaskKind::noise;
    spec.layers = {4096, 16384, 4096};
    spec.activation = Activation::gelu;
    spec.batch = 8192;
    for (const char* recipe : kRecipes) spec.arms.push_back(parse_recipe(recipe));
    return spec;
}

TrainSpec own_transformer() {
    TrainSpec spec;
    spec.model = "transformer";
    spec.task = TaskKind::text;
    spec.vocabulary = 50257;
    spec.sizes = {{"d", 768},     {"heads", 12},     {"kv-heads", 12}, {"ffn", 2048},
                  {"blocks", 12}, {"context", 1024}, {"tie", 1}};
    spec.loss = LossKind::cross_entropy;
    spec.batch = 8;
    for (const char* recipe : kRecipes) spec.arms.push_back(parse_recipe(recipe));
    return spec;
}

const OwnModel* find_own_model(std::string_view id) {
    const auto found = std::ranges::find(kOwnModels, id, &OwnModel::id);
    return found == kOwnModels.end() ? nullptr : &*found;
}

TrainSpec own_model(std::string_view id) { return id == "transformer" ? own_transformer() : own_network(); }

double OwnArm::off_pct() const {
    return allocated ? 100 * (calculated / *allocated - 1) : std::numeric_limits<double>::quiet_NaN();
}

double own_weights(const TrainSpec& spec) {
    double weights = 0;
    for (const ParameterSpec& p : model_plan(spec).parameters)
        if (p.shape.size() == 2) weights += static_cast<double>(p.elements());
    return weights;
}

OwnArm own_arm(std::string_view model, const std::string& recipe) {
    const TrainSpec spec = own_model(model);
    const bool fp8 = recipe != "bf16", tokens = model == "transformer";
    const auto memory_of = [&](cuda::Sharing sharing) {
        return cuda::ArmMemory(
            spec, parse_recipe(recipe), fp8 ? cuda::Engine::fp8 : cuda::Engine::bf16, spec.batch,
            tokens ? cuda::flash_attention(spec, spec.batch) : cuda::AttentionBytes{}, sharing);
    };
    const cuda::ArmMemory memory = memory_of(cuda::Sharing::by_size);
    OwnArm out{.recipe = recipe, .calculated = static_cast<double>(memory.device_bytes())};
    out.saved = static_cast<double>(memory_of(cuda::Sharing::none).device_bytes()) - out.calculated;
    // What shares memory: activations, and gradients that come when those are done with.
    out.account.gpu[index(Row::activations)] = static_cast<double>(memory.pool_bytes());
    for (const cuda::Allocation& one : memory.allocations()) {
        if (!one.life.always()) continue;
        // A linear that stays in BF16 has one copy of its weights, of two bytes.
        const bool wide = tokens && !memory.find(ArmPart::second, one.layer, one.tensor);
        const Row row = row_of(one, fp8 && !wide);
        const auto bytes = static_cast<double>(one.bytes);
        out.account.gpu[index(row)] += bytes;
        const bool operand = one.part == ArmPart::first || one.part == ArmPart::second;
        if (fp8 && row == Row::activations && operand) out.account.fp8_activations += bytes;
        if (row == Row::master || row == Row::m || row == Row::v || row == Row::gradients)
            out.account.fp32 += bytes;
    }
    out.account.gpu[index(Row::workspace)] +=  // the rest of the pages
        out.calculated - static_cast<double>(memory.requested_bytes());
    out.per_weight = out.account.states() / own_weights(spec);
    return out;
}

const Card& find_card(std::string_view id) {
    constexpr std::size_t kUsual = 2;
    const auto found = std::ranges::find(kCards, id, &Card::id);
    return found == kCards.end() ? kCards[kUsual] : *found;
}

Allocated recorded_bytes(std::string_view model, std::string_view card) {
    const auto all = shipped();
    Allocated out;
    out.problem = all->problem;
    if (all->recordings.empty()) {
        if (out.problem.empty()) out.problem = "There is no recording.";
        return out;
    }
    const Recording* of_card = all->find(find_card(card).recording);
    const Recording& recording = of_card ? *of_card : all->recordings.front();
    out.gpu = recording.gpu;
    if (recording.grid && recording.grid->host_copy.up_ms > 0 && recording.grid->host_copy.down_ms > 0) {
        const GridHostCopy& copy = recording.grid->host_copy;
        out.host_copy = 1e3 * copy.bytes / std::max(copy.up_ms, copy.down_ms);
    }
    if (const RecordedStep* step = recorded_step(recording, model))
        for (std::size_t i = 0; i < kRecipes.size(); ++i)
            if (const RecordedArm* arm = step->find(kRecipes[i]); arm && arm->memory_bytes > 0)
                out.bytes[i] = arm->memory_bytes;
    return out;
}

Allocated measured_bytes(const Backends& backends, const std::string& arms) {
    Backend& gpu = backends.get("cuda");
    const DeviceInfo device = gpu.device();
    Allocated out{.gpu = device.name, .memory = device.memory_bytes, .live = true};
    if (arms.empty()) return out;
    const std::vector<double> bytes = gpu.allocated_bytes(own_model(arms));
    for (std::size_t i = 0; i < std::min(bytes.size(), out.bytes.size()); ++i) out.bytes[i] = bytes[i];
    return out;
}

}  // namespace fp8lab::memory
