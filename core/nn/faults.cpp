#include "core/nn/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/read_number.h"
#include "core/base/units.h"
#include "core/scaling/recipe_keys.h"

namespace fp8lab {

Poison parse_poison(const std::string& text) {
    const std::vector<std::string_view> parts = split(text, ':');
    Poison out;
    const bool ok = (parts.size() == 2 || parts.size() == 3) && read_number(parts[0], out.step) &&
                    read_number(parts[1], out.factor) &&
                    (parts.size() == 2 || read_number(parts[2], out.rows));
    if (!ok || out.step < 0)
        throw usage_error("--poison", fmt::format("'{}' is not STEP:FACTOR[:ROWS]", text));
    if (!(out.factor > 0) || !std::isfinite(static_cast<float>(out.factor)))
        throw usage_error("--poison", fmt::format("factor {} is not finite and above 0", out.factor));
    if (parts.size() == 3 && out.rows < 1) throw usage_error("--poison", fmt::format("{} rows", out.rows));
    return out;
}

bool parse_init(const std::string& text) {
    if (text.empty() || text == "zero-last") return !text.empty();
    throw usage_error("--init", fmt::format("'{}' is not zero-last", text));
}

void check_faults(const TrainSpec& spec) {
    const bool tokens = find_model(spec.model).tokens;
    if (const auto& p = spec.poison) {
        if (p->step >= spec.steps)
            throw usage_error("--poison", fmt::format("step {} is not in 0..{}", p->step, spec.steps - 1));
        if (p->rows > spec.batch)
            throw usage_error("--poison", fmt::format("{} rows; the batch has {}", p->rows, spec.batch));
        if (p->rows > 0 && tokens)
            throw usage_error("--poison", "of --model transformer takes the whole batch: STEP:FACTOR");
    }
    if (!spec.zero_last) return;
    if (tokens) throw usage_error("--init", "zero-last is of --model mlp");
    if (!spec.init_from.empty())
        throw usage_error("--init", "zero-last: the weights are those of --init-from");
}

std::string faults_text(const TrainSpec& spec) {
    std::string text;
    if (const auto& p = spec.poison)
        text += fmt::format(" --poison {}:{}{}", p->step, shortest(p->factor),
                            p->rows ? fmt::format(":{}", p->rows) : "");
    if (spec.zero_last) text += " --init zero-last";
    return text;
}

float poison_factor(const TrainSpec& spec, int step) {
    return spec.poison && spec.poison->step == step ? static_cast<float>(spec.poison->factor) : 1.0F;
}

void initialise(Model<float>& model, const TrainSpec& spec) {
    model.initialise(spec.seed);
    if (!spec.zero_last) return;
    const auto& parameters = model.plan().parameters;
    for (std::size_t i = parameters.size(); i-- > 0;)
        if (parameters[i].operand) return void(std::ranges::fill(model.parameters()[i].value, 0.0F));
}

}  // namespace fp8lab
