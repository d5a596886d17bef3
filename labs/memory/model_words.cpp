// What L10 says about its result.
#include <fmt/format.h>

#include <cmath>

#include "core/base/units.h"
#include "labs/memory/model.h"

namespace fp8lab::memory {
namespace {

double adam(const Account& account) { return account[Row::master] + account[Row::m] + account[Row::v]; }

bool copies_whole(const Outcome& o) {
    const bool copies = o.own.account[Row::copy] + o.own.account[Row::copy_t] > 0;
    return o.load.gpus > 1 && (o.load.zero == 1 || o.load.zero == 2) && copies;
}

// What the numbers of a comparison do not say by themselves.
std::string what_counts(const Outcome& o) {
    if (o.leaves_out_activations()) return ", activations counted in neither";
    const double more = o.own.account.on_cpu() - o.other.account.on_cpu();
    if (more == 0) return {};
    return fmt::format(" on the GPU, {} {} in CPU memory", gb_text(std::fabs(more)),
                       more > 0 ? "more" : "less");
}

}  // namespace

std::pair<std::string, std::string> names(const Outcome& o) {
    if (o.own.plan.infers() != o.other.plan.infers())
        return {std::string(o.own.plan.name), std::string(o.other.plan.name)};
    if (o.own.plan.brief != o.other.plan.brief)
        return {std::string(o.own.plan.brief), std::string(o.other.plan.brief)};
    return {std::string(o.own.plan.label), std::string(o.other.plan.label)};
}

std::string finding(const Outcome& o) {
    const auto [own, other] = names(o);
    const double difference = o.difference(), total = o.own.account.on_gpu();
    const std::string size = gb_text(std::fabs(difference));
    if (!o.ours() && total > o.gpu_bytes)
        return fmt::format("{}: {} too much for {} {}", own, gb_text(total - o.gpu_bytes),
                           o.gpu_name.starts_with('H') ? "an" : "a", o.gpu_name);
    if (o.ours() && o.trainer[1].saved > 0)
        return fmt::format("{} takes {} less than {}; sharing memory saves {} and {}", own, size, other,
                           gb_text(o.trainer[1].saved), gb_text(o.trainer[0].saved));
    if (o.ours())
        return fmt::format("{} takes only {} less than {}: it keeps two copies of each input", own, size,
                           other);
    const std::string compared = (difference == 0 ? fmt::format("{} takes as much as {}", own, other)
                                                  : fmt::format("{} takes {} {} than {}", own, size,
                                                                difference > 0 ? "more" : "less", other)) +
                                 what_counts(o);
    if (copies_whole(o) && difference > 0)
        return fmt::format("On {:.0f} GPUs {}: its copies are not sharded", o.load.gpus, compared);
    const double own_adam = adam(o.own.account), other_adam = adam(o.other.account);
    const bool wide = o.own.plan[Row::m] == Keep::fp32 && own_adam == other_adam && own_adam > 0;
    if (wide) return fmt::format("{}; both keep {} GB in FP32", compared, gb_short(own_adam));
    return compared;
}

std::string cause(const Outcome& o) {
    if (o.ours() && o.trainer[1].saved > 0)
        return fmt::format(
            "{} bytes per parameter, {} in BF16, without gradients: they share the memory of x, dy and "
            "outputs "
            "of {} tokens.",
            screen_number(o.own.per_parameter), screen_number(o.other.per_parameter),
            group_thousands(std::llround(o.load.sequence)));
    if (o.ours())
        return fmt::format(
            "{} bytes per parameter, {} in BF16. The rest are x, dy and outputs of a batch of {}.",
            screen_number(o.own.per_parameter), screen_number(o.other.per_parameter),
            group_thousands(std::llround(o.load.sequence)));
    const auto [own, other] = names(o);
    const double more = o.own.per_parameter - o.other.per_parameter;
    std::string out = more == 0
                          ? fmt::format("As many bytes per parameter as {}.", other)
                          : fmt::format("{} bytes per parameter {} than {}", screen_number(std::fabs(more)),
                                        more > 0 ? "more" : "fewer", other);
    const double copies = bytes_of(o.own.plan[Row::copy]) + bytes_of(o.own.plan[Row::copy_t]);
    if (more != 0) out += more > 0 && more == copies ? ": the FP8 copy and its transpose." : ".";
    if (!o.own.plan.activations_counted && !o.own.plan.infers())
        out += " The total has no activations and no workspace.";
    if (o.own.account.offload_s > 0)
        out += fmt::format(" Each step moves gradients and weights over PCIe: {} s.",
                           screen_number(o.own.account.offload_s, 2));
    return out;
}

std::string tokens_title(const Outcome& o) {
    if (o.ours())
        return fmt::format("{}: {}", o.own_model->label,
                           o.own_model->id == "mlp" ? "no tokens" : "its tokens are fixed");
    const auto [own, other] = names(o);
    const double even = o.break_even;
    const bool more = o.difference() > 0;
    if (o.leaves_out_activations())
        return fmt::format("{}, whatever the length: activations are counted in neither",
                           o.difference() == 0 ? fmt::format("{} is as large as {}", own, other)
                           : more              ? fmt::format("{} is larger", own)
                                               : fmt::format("{} is smaller", own));
    if (std::isnan(even) || even < kFewestTokens || even > kAxisTokens) {
        if (o.difference() == 0) return fmt::format("{} is as large as {} at any length", own, other);
        if (!more) return fmt::format("{} is smaller here at any length", own);
        if (o.load.recompute == Recompute::full)
            return fmt::format("{} is larger at any length: checkpointing keeps no linear input", own);
        return fmt::format("{} is larger here at any length", own);
    }
    const bool saves = o.load.tokens() < even ? more : !more;
    return fmt::format("{} is {} from {} tokens per GPU", own, saves ? "smaller" : "larger",
                       tokens_text(even));
}

}  // namespace fp8lab::memory
