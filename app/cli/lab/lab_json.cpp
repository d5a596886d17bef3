#include "app/cli/lab/lab_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/cli/verb.h"

namespace fp8lab::cli {
namespace {

nlohmann::json metric_json(const Metric& metric) {
    if (!metric.text.empty()) return metric.text;
    nlohmann::json value = nullptr;  // NaN and Inf have no JSON spelling
    if (std::isfinite(metric.value)) value = metric.value;
    if (metric.unit.empty()) return value;
    return {{"value", value}, {"unit", metric.unit}};
}

}  // namespace

nlohmann::json lab_json(Lab& lab) {
    const std::string device = lab.device().empty() ? cpu_backend()->device().name : lab.device();
    nlohmann::json out = json_header({device, lab.provenance()});
    out["lab"] = lab.info().id;
    out["state"] = fields_to_json(lab.fields());
    if (out["state"].contains("seed")) out["seed"] = out["state"]["seed"];
    for (const Metric& metric : lab.metrics()) out["metrics"][metric.name] = metric_json(metric);
    return out;
}

}  // namespace fp8lab::cli
