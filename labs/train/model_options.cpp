#include "labs/train/model_options.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "core/base/error.h"
#include "labs/table/moments.h"
#include "labs/table/training_rows.h"

namespace fp8lab::train {
namespace {

constexpr std::string_view kNothing = "none";  // the recipe's text has no word for it

// Of casts and their scales.
std::vector<OptionSwitch> cast_switches() {
    return {
        {{.name = "w2d",
          .label = "Weight scales",
          .help = "1×16: along a row. 16×16: W and its transpose have the same scales. In Transformer Engine "
                  "disable_2d_quantization=True chooses 1×16. A change acts at the next step."},
         {{"0", "1×16"}, {"1", "16×16"}}},
        {{.name = "rht",
          .label = "Random Hadamard",
          .help = "The rotation of both operands of wgrad along the batch. on, BF16: the rotated tensor is "
                  "rounded to BF16 before its amaxes and scales, as in Transformer Engine, where "
                  "disable_rht=True chooses off. A change acts at the next step."},
         {{"0", "off"}, {"1", "on"}, {"bf16", "on, BF16"}}},
        {{.name = "target",
          .label = "Block amax becomes",
          .te_name = "4over6",
          .help = "What the amax of a block becomes before the cast. 4 or 6: block by block the one with the "
                  "smaller squared error. Transformer Engine takes 4 or 6 only with disable_rht=True, and "
                  "never for dy. A change acts at the next step."},
         {{"6", "6"}, {"4", "4"}, {"4or6", "4 or 6"}}},
        {{.name = "wide",
          .label = "Layers kept in BF16",
          .help =
              "In Transformer Engine such a layer runs outside te.autocast. A change acts at the next step."},
         {{std::string(kNothing), "none"}, {"first", "first"}, {"last", "last"}, {"first+last", "both"}}},
        {{.name = "amax",
          .label = "Amax of current scaling",
          .help = "max: the largest |x|. A percentile: what so many percent of the elements do not exceed; "
                  "those above saturate. A change acts at the next step."},
         {{"max", "max"}, {"p99.99", "99.99 %"}, {"p99.9", "99.9 %"}, {"p99", "99 %"}}},
        {{.name = "algo",
          .label = "Amax of the history",
          .help =
              "The largest amax; the exponential moving average of the amaxes; or the largest of a "
              "percentile of |x|. Transformer Engine has only the first, and the newest. A change acts at "
              "the next step."},
         {{"max", "largest"}, {"ema0.9", "average, 0.9"}, {"p99.99", "99.99 %"}}},
    };
}

std::vector<OptionSwitch> loss_scale_switches() {
    return {
        {{.name = "loss_scale",
          .label = "Loss scale",
          .help = "As torch.amp.GradScaler: dy is multiplied, weight gradients are divided; a step with an "
                  "Inf or NaN among them is left out and halves the scale. A change acts at the next step."},
         {{std::string(kNothing), "none"}, {"256", "2^8"}, {"65536", "2^16"}}},
        {{.name = "growth_interval",
          .label = "Loss scale doubles",
          .te_name = "growth_interval",
          .help =
              "After so many steps in a row without an Inf or NaN. GradScaler’s default is 2000. A change "
              "acts at the next step."},
         {{"0", "never"}, {"20", "20 steps"}, {"2000", "2000 steps"}}},
    };
}

std::vector<OptionSwitch> make_switches() {
    std::vector<OptionSwitch> all = cast_switches();
    std::ranges::move(loss_scale_switches(), std::back_inserter(all));
    for (const table::MomentControl& control : table::moment_controls()) {
        all.push_back({control.info, control.choices});
        all.back().info.help += table::kActsAtNextStep;
    }
    for (const table::GemmInputRow& row : table::kGemmInputs)
        all.push_back({{.name = std::string(row.name),
                        .label = std::string(row.label),
                        .help = std::string(row.help) + std::string(table::kActsAtNextStep)},
                       table::input_choices(std::string(kNothing))});
    return all;
}

const std::vector<OptionSwitch>& all_switches() {
    static const std::vector<OptionSwitch> kAll = make_switches();
    return kAll;
}

std::string without(std::string_view options, std::string_view key) {
    std::string out;
    while (!options.empty()) {
        const std::string_view part = options.substr(0, options.find(':'));
        options.remove_prefix(std::min(options.size(), part.size() + 1));
        if (part.substr(0, part.find('=')) == key) continue;
        out += (out.empty() ? "" : ":") + std::string(part);
    }
    return out;
}

// The value of the key; nothing: it is not there.
std::optional<std::string> value_of(std::string_view options, std::string_view key) {
    while (!options.empty()) {
        const std::string_view part = options.substr(0, options.find(':'));
        options.remove_prefix(std::min(options.size(), part.size() + 1));
        if (part.substr(0, part.find('=')) == key)
            return std::string(part.substr(std::min(part.size(), key.size() + 1)));
    }
    return std::nullopt;
}

std::string with(const std::string& options, std::string_view key, std::string_view value) {
    const std::string rest = without(options, key);
    if (value == kNothing) return rest;
    return rest + (rest.empty() ? "" : ":") + std::string(key) + "=" + std::string(value);
}

// The whole recipe of arm B with these options, as its shortest text. Nothing: it has no such option.
std::optional<std::string> recipe_with(const Params& params, const std::string& options) {
    try {
        return recipe_text(parse_recipe(params.arm_b + (options.empty() ? "" : ":" + options)));
    } catch (const Error&) {
        return std::nullopt;
    }
}

// Without those options that have an effect beside another one only, where that is gone.
std::string valid_part(const Params& params, const std::string& options) {
    if (recipe_with(params, options)) return options;
    constexpr std::array<std::string_view, 4> kDependent = {"growth_interval", "moment_block", "round_m",
                                                            "round_v"};
    std::string out = options;
    for (const std::string_view key : kDependent) out = without(out, key);
    for (const std::string_view key : kDependent)
        if (const auto value = value_of(options, key))
            if (const std::string more = with(out, key, *value); recipe_with(params, more)) out = more;
    return out;
}

}  // namespace

std::vector<OptionSwitch> option_switches(const Params& params) {
    std::vector<OptionSwitch> out;
    if (!recipe_with(params, params.options)) return out;
    for (const OptionSwitch& option : all_switches())
        if (recipe_with(params, with(params.options, option.info.name, option.choices.back().id)))
            out.push_back(option);
    return out;
}

std::string chosen_option(const Params& params, const OptionSwitch& option) {
    const auto now = recipe_with(params, params.options);
    for (const Choice& choice : option.choices)
        if (now && recipe_with(params, with(params.options, option.info.name, choice.id)) == now)
            return choice.id;
    return "";
}

std::string options_with(const Params& params, const OptionSwitch& option, std::string_view choice) {
    const std::string plain = valid_part(params, without(params.options, option.info.name)),
                      named = valid_part(params, with(params.options, option.info.name, choice));
    return recipe_with(params, plain) == recipe_with(params, named) ? plain : named;
}

}  // namespace fp8lab::train
