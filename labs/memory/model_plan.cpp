#include "labs/memory/model_plan.h"

#include <algorithm>

namespace fp8lab::memory {
namespace {

constexpr std::array<RowInfo, kRows> kRowInfos = {{
    {Row::weights, "w", "weights", "Weights"},
    {Row::copy, "copy", "copy", "FP8 copy"},
    {Row::copy_t, "copy_t", "copy_t", "Its transpose"},
    {Row::gradients, "g", "gradients", "Gradients"},
    {Row::accumulator, "acc", "accumulator", "Accumulator"},
    {Row::master, "master", "master", "Master weights"},
    {Row::m, "m", "m", "Adam m"},
    {Row::v, "v", "v", "Adam v"},
    {Row::activations, "act", "activations", "Activations"},
    {Row::kv, "kv", "kv", "KV cache"},
    {Row::workspace, "", "workspace", "Workspace"},
}};

struct KeepInfo {
    Keep format;
    std::string_view id, label;
    double bytes;
};
constexpr std::array<KeepInfo, 5> kKeeps = {{{Keep::none, "none", "none", 0},
                                             {Keep::fp32, "fp32", "FP32", 4},
                                             {Keep::bf16, "bf16", "BF16", 2},
                                             {Keep::fp16, "fp16", "FP16", 2},
                                             {Keep::e4m3, "e4m3", "E4M3", 1}}};
const KeepInfo& info_of(Keep format) { return *std::ranges::find(kKeeps, format, &KeepInfo::format); }

constexpr Keep kNo = Keep::none, k32 = Keep::fp32, k16 = Keep::bf16, kHalf = Keep::fp16, k8 = Keep::e4m3;
constexpr Place kGpu = Place::gpu, kCpu = Place::cpu;
constexpr std::array<Place, kStates> kOnGpu = {},
                                     kOffloaded = {kGpu, kGpu, kGpu, kGpu, kGpu, kCpu, kCpu, kCpu};

// weights, copy, transpose, gradients, accumulator, master, m, v
const std::array kPlans = {
    Plan{.id = "te",
         .label = "FP8, TE default on Hopper",
         .name = "FP8, Transformer Engine’s default",
         .brief = "FP8",
         .role = Role::e4m3,
         .states = {k16, k8, k8, k16, kNo, k32, k32, k32},
         .inputs = Inputs::fp8},
    Plan{.id = "te-primary",
         .label = "FP8 weights, TE",
         .name = "FP8 weights, Transformer Engine",
         .brief = "FP8",
         .role = Role::e4m3,
         .states = {k8, kNo, k8, k16, kNo, k32, k32, k32},
         .inputs = Inputs::fp8},
    Plan{.id = "bf16",
         .label = "BF16 mixed",
         .name = "BF16 mixed",
         .brief = "BF16",
         .states = {k16, kNo, kNo, k16, kNo, k32, k32, k32}},
    Plan{.id = "bf16-megatron",
         .label = "BF16, FP32 gradients",
         .name = "BF16 with FP32 gradients",
         .brief = "BF16",
         .states = {k16, kNo, kNo, k32, kNo, k32, k32, k32}},
    Plan{.id = "bf16-pure",
         .label = "BF16, no FP32",
         .name = "BF16 without FP32",
         .brief = "BF16",
         .states = {k16, kNo, kNo, k16, kNo, kNo, k16, k16}},
    Plan{.id = "fp32",
         .label = "FP32",
         .name = "FP32",
         .brief = "FP32",
         .role = Role::truth,
         .states = {k32, kNo, kNo, k32, kNo, kNo, k32, k32}},
    Plan{.id = "fp8-lm",
         .label = "FP8-LM",
         .name = "FP8-LM (MS-AMP O2)",
         .brief = "FP8-LM",
         .role = Role::e4m3,
         .states = {kHalf, k8, k8, k8, kNo, kNo, k8, kHalf},
         .inputs = Inputs::fp8},
    Plan{.id = "seed-printed",
         .label = "Tutorial, as printed",
         .name = "FP8 tutorial, as printed",
         .brief = "Tutorial",
         .role = Role::e4m3,
         .states = {k16, kNo, kNo, k16, k32, k32, k32, k32},
         .inputs = Inputs::fp8,
         .activations_counted = false},
    Plan{.id = "seed",
         .label = "Tutorial, corrected",
         .name = "FP8 tutorial, corrected",
         .brief = "Tutorial",
         .role = Role::e4m3,
         .states = {k8, kNo, kNo, k8, k32, k32, k32, k32},
         .inputs = Inputs::fp8,
         .activations_counted = false},
    Plan{.id = "seed-offload",
         .label = "Tutorial, offloaded",
         .name = "FP8 tutorial, offloaded",
         .brief = "Tutorial",
         .role = Role::e4m3,
         .states = {k8, kNo, kNo, k8, kNo, k32, k32, k32},
         .places = kOffloaded,
         .inputs = Inputs::fp8,
         .activations_counted = false},
    Plan{.id = "inference-bf16",
         .label = "Inference, BF16",
         .name = "Inference in BF16",
         .brief = "BF16",
         .states = {k16},
         .kv = k16,
         .activations_counted = false},
    Plan{.id = "inference-fp8",
         .label = "Inference, FP8",
         .name = "Inference in FP8",
         .brief = "FP8",
         .role = Role::e4m3,
         .states = {k8},
         .inputs = Inputs::fp8,
         .kv = k8,
         .activations_counted = false},
};

}  // namespace

std::span<const RowInfo> rows() { return kRowInfos; }

double bytes_of(Keep format) { return info_of(format).bytes; }
std::string_view id_of(Keep format) { return info_of(format).id; }
std::string_view label_of(Keep format) { return info_of(format).label; }

Keep keep_of(std::string_view id) {
    const auto found = std::ranges::find(kKeeps, id, &KeepInfo::id);
    return found == kKeeps.end() ? Keep::none : found->format;
}

std::vector<Choice> keep_choices() {
    std::vector<Choice> out;
    for (const KeepInfo& keep : kKeeps) out.push_back({std::string(keep.id), std::string(keep.label)});
    return out;
}

double Plan::bytes(Place place) const {
    double sum = 0;
    for (std::size_t i = 0; i < kStates; ++i) sum += places[i] == place ? bytes_of(states[i]) : 0;
    return sum;
}

bool Plan::infers() const {
    return std::ranges::all_of(std::span(states).subspan(index(Row::gradients)),
                               [](Keep format) { return format == Keep::none; });
}

std::span<const Plan> plans() { return kPlans; }

const Plan& find_plan(std::string_view id) { return *std::ranges::find(kPlans, id, &Plan::id); }

std::vector<Choice> plan_choices() {
    std::vector<Choice> out;
    for (const Plan& plan : kPlans) out.push_back({std::string(plan.id), std::string(plan.label)});
    return out;
}

std::string_view update_path(const Plan& plan) {
    if (plan.infers()) return "inference";
    for (const Keep wide : {plan[Row::weights], plan[Row::master]})
        if (wide == Keep::fp32) return "master";
    for (const Keep narrow : {plan[Row::weights], plan[Row::master]})
        if (narrow == Keep::bf16 || narrow == Keep::fp16) return "bf16";
    return "none";
}

}  // namespace fp8lab::memory
