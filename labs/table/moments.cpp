#include "labs/table/moments.h"

#include <algorithm>

#include "labs/table/training_rows.h"

namespace fp8lab::table {
namespace {

const std::vector<Choice>& roundings() {
    static const std::vector<Choice> kAll = {{"nearest", "nearest"}, {"stochastic", "stochastic"}};
    return kAll;
}

std::vector<MomentControl> make_controls() {
    const std::vector<Choice> formats = {
        {"fp32", "FP32"}, {"bf16", "BF16"}, {"fp16", "FP16"}, {"e5m2", "E5M2"}, {"e4m3", "E4M3"}};
    return {
        {{.name = "m",
          .label = "Adam\u2019s m",
          .te_name = "exp_avg_dtype",
          .help = "What the first moment of the weights is kept in between two updates, in 8 bits with FP32 "
                  "scales. Biases keep FP32."},
         formats},
        {{.name = "v",
          .label = "Adam\u2019s v",
          .te_name = "exp_avg_sq_dtype",
          .help =
              "What the second moment is kept in, the mean of the squared gradients: the update is divided "
              "by its root."},
         formats},
        {{.name = "moment_block",
          .label = "Scales of moments",
          .help = "One FP32 scale, max / amax, per 128 values or per tensor. Transformer Engine\u2019s "
                  "FusedAdam has "
                  "one per tensor."},
         {{"128", "per 128 values"}, {"tensor", "per tensor"}}},
        {{.name = "round_m",
          .label = "Rounding of m",
          .help = "stochastic: up or down by chance, so that the mean is right."},
         roundings()},
        {{.name = "round_v",
          .label = "Rounding of v",
          .help = "stochastic: up or down by chance, so that the mean is right."},
         roundings()}};
}

bool in_8_bits(const std::string& format) { return format.starts_with("e"); }

// Of m, v, moment_block, round_m, round_v, master, round_update.
std::array<bool, 7> shown(const Moments& p) {
    return {
        true, true, in_8_bits(p.m) || in_8_bits(p.v), p.m != "fp32", p.v != "fp32", true, p.master != "fp32"};
}

}  // namespace

const std::vector<MomentControl>& moment_controls() {
    static const std::vector<MomentControl> kAll = make_controls();
    return kAll;
}

void add_moments(Moments& p, std::vector<Row>& out) {
    const Adder add{out, true, kActsAtNextStep};
    const std::array<bool, 7> is_shown = shown(p);
    const std::array<std::string*, 5> values = {&p.m, &p.v, &p.block, &p.round_m, &p.round_v};
    for (std::size_t i = 0; i < values.size(); ++i) {
        const MomentControl& control = moment_controls()[i];
        add(choice(control.info, values[i], control.choices)).shown = is_shown[i];
    }
    add(choice(
        {.name = "master",
         .label = "Master weights",
         .help = "FP32: FP32 weights beside the copy that GEMMs read. BF16: the weights are BF16 numbers. "
                 "none: they are E4M3 codes."},
        &p.master, {{"fp32", "FP32"}, {"bf16", "BF16"}, {"none", "none"}}));
    add(choice({.name = "round_update",
                .label = "Weight update",
                .help = "How the update is rounded where there are no FP32 master weights."},
               &p.round_update, roundings()))
        .shown = is_shown[6];
}

std::string moment_options(const Moments& p) {
    const Moments usual;
    const std::array<bool, 7> is_shown = shown(p);
    struct Option {
        std::string_view name;
        std::string Moments::*value;
    };
    constexpr std::array<Option, 7> kOptions = {{{"m", &Moments::m},
                                                 {"v", &Moments::v},
                                                 {"moment_block", &Moments::block},
                                                 {"round_m", &Moments::round_m},
                                                 {"round_v", &Moments::round_v},
                                                 {"master", &Moments::master},
                                                 {"round_update", &Moments::round_update}}};
    std::string text;
    for (std::size_t i = 0; i < kOptions.size(); ++i)
        if (is_shown[i] && p.*kOptions[i].value != usual.*kOptions[i].value)
            text.append(":").append(kOptions[i].name).append("=").append(p.*kOptions[i].value);
    return text;
}

}  // namespace fp8lab::table
