#include "core/nn/models/moe/model.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/scaling/side_cast.h"

namespace fp8lab {
namespace {

constexpr std::array<std::string_view, 3> kBalances = {"bias", "loss", "none"};
constexpr std::array<std::string_view, 2> kEmpty = {"roll", "keep"};
constexpr int kMillion = 1'000'000;

constexpr std::array kOwnOptions = {
    ModelOption{"experts", "feed-forward parts to choose from", 8, 1, 256},
    ModelOption{"active", "experts of a token, at most experts", 2, 1, 256},
    ModelOption{"shared", "width of a part that every token passes, in ffn; 0: none", 0, 0, 64},
    ModelOption{"balance", "what keeps experts equally busy: bias, loss or none", 0, 0, 2, kBalances},
    ModelOption{"bias-rate", "how much a bias changes in a step", 2000, 0, kMillion, {}, kMillion},
    ModelOption{"loss-weight", "of the loss that balances", 10000, 0, kMillion, {}, kMillion},
    ModelOption{"empty", "delayed scales of an expert without tokens: roll sees a 0, keep nothing", 0, 0, 1,
                kEmpty},
    ModelOption{"starve-from", "first step in which expert 1 gets no token", 0, 0, 1'000'000'000},
    ModelOption{"starve-to", "first step in which it may again; 0: it always may", 0, 0, 1'000'000'000},
};

constexpr int kExpertFfn = 96;

std::span<const ModelOption> options() {
    static const auto all = [] {
        std::array<ModelOption, std::tuple_size_v<decltype(decoder_options(0))> + kOwnOptions.size()> out;
        const auto rest = std::ranges::copy(decoder_options(kExpertFfn), out.begin()).out;
        std::ranges::copy(kOwnOptions, rest);
        return out;
    }();
    return all;
}

ModelPlan moe_plan(const MoeShape& s) {
    return decoder_plan(s, [&](ModelPlan& plan, int block) {
        plan_linear(plan, GemmRole::router, block, "router", s.experts, s.d);
        plan.parameters.push_back({fmt::format("{}.router.bias", block), {s.experts}, {}, false});
        for (std::size_t e = 0; e < s.experts; ++e)
            plan_gated_mlp(plan, block, fmt::format("e{}.", e), s.d, s.ffn);
        if (s.shared > 0) plan_gated_mlp(plan, block, "shared.", s.d, s.shared * s.ffn);
    });
}

void check_moe(const TrainSpec& spec) {
    const MoeShape shape = moe_shape(spec);
    for (const Recipe& arm : spec.arms)
        if (arm.loss_scale > 0 && shape.balance == Balance::loss)
            throw usage_error("--balance", "loss has no loss scale; recipe " + arm.name + " has one");
    for (const Recipe& arm : spec.arms)
        if (spec.ranks.count > 1 && has_delayed_scale(arm))
            throw usage_error("--ranks",
                              "experts have no delayed scales on several ranks, whose tokens choose "
                              "different experts; recipe " +
                                  arm.name + " has them");
}

template <class T>
std::unique_ptr<Model<T>> make(const TrainSpec& spec) {
    return std::make_unique<Moe<T>>(moe_shape(spec));
}

}  // namespace

MoeShape moe_shape(const TrainSpec& spec) {
    const auto at = [&](const char* name) { return spec.sizes.at(name); };
    MoeShape s{transformer_shape(spec)};
    s.experts = static_cast<std::size_t>(at("experts"));
    s.active = static_cast<std::size_t>(at("active"));
    s.shared = static_cast<std::size_t>(at("shared"));
    s.balance = static_cast<Balance>(at("balance"));
    s.bias_rate = static_cast<double>(at("bias-rate")) / kMillion;
    s.loss_weight = static_cast<double>(at("loss-weight")) / kMillion;
    s.empty_rolls = at("empty") == 0;
    s.starve_from = at("starve-from"), s.starve_to = at("starve-to");
    if (s.active > s.experts)
        throw usage_error("--active", fmt::format("{} is more than --experts {}", s.active, s.experts));
    if (s.starve_to > s.starve_from && s.active == s.experts)
        throw usage_error("--starve-to",
                          fmt::format("with --active {} every expert gets every token", s.active));
    constexpr std::size_t kMostGemms = 4095;  // core/nn/streams.h
    const std::size_t gemms = s.blocks * (4 + 2 * (s.experts + (s.shared > 0 ? 1 : 0))) + 1;
    if (gemms > kMostGemms)
        throw usage_error("--experts", fmt::format("{} in {} blocks are {} GEMMs; the most are {}", s.experts,
                                                   s.blocks, gemms, kMostGemms));
    return s;
}

template <class T>
Moe<T>::Moe(const MoeShape& shape)
    : Decoder<T>(shape, moe_plan(shape), [&](const ModelPlan& plan, std::size_t block) {
          return std::make_unique<Experts<T>>(shape, plan, block);
      }) {
    for (Block<T>& block : this->blocks())
        experts_.push_back(static_cast<Experts<T>*>(block.feed_forward.get()));
}

template <class T>
void Moe<T>::begin_step(int step) {
    for (Experts<T>* each : experts_) each->begin_step(step);
}

template <class T>
void Moe<T>::after_update() {
    for (Experts<T>* each : experts_) each->after_update();
}

template <class T>
std::optional<std::uint16_t> Moe<T>::undecided() const {
    for (const Experts<T>* each : experts_)
        if (const auto gemm = each->undecided()) return gemm;
    return std::nullopt;
}

template class Moe<float>;
template class Moe<double>;

ModelEntry moe_model() {
    return {.id = "moe",
            .summary = "the transformer with experts, of which a router chooses some for each token",
            .task = "text",
            .tokens = true,
            .on_gpu = false,
            .options = options(),
            .check = check_moe,
            .plan = [](const TrainSpec& spec) { return moe_plan(moe_shape(spec)); },
            .make = make<float>,
            .make_reference = make<double>};
}

}  // namespace fp8lab
