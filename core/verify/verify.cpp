#include "core/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/inspect/report.h"
#include "core/json/read_json.h"
#include "core/tensors/scales/quantization_config.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

// The rows of a head, as the model's configuration or that of the original says; 0: neither does.
std::size_t head_dim_beside(const TensorStore& model, const TensorStore& original) {
    for (const TensorStore* store : {&model, &original}) try {
            const auto config = quantization_config_in(store->path().parent_path());
            if (config && config->head_dim > 0) return config->head_dim;
        } catch (const Error&) {  // said where the file is opened
        }
    return 0;
}

std::int64_t count_not_finite(const TensorStore& store, const StoredTensor& tensor) {
    constexpr std::size_t kAtOnce = std::size_t{1} << 18;  // values
    const MatrixShape shape = tensor.matrix();
    if (shape.cols == 0 || shape.rows == 0) return 0;
    const std::size_t band = std::max<std::size_t>(1, kAtOnce / shape.cols);
    std::vector<std::int64_t> counts((shape.rows + band - 1) / band);
    parallel_for(counts.size(), 1, [&](std::size_t begin, std::size_t end) {
        std::vector<float> rows;
        for (std::size_t i = begin; i < end; ++i) {
            rows.resize(std::min(band, shape.rows - i * band) * shape.cols);
            store.read_rows(tensor, i * band, rows);
            counts[i] = std::ranges::count_if(rows, [](float value) { return !std::isfinite(value); });
        }
    });
    std::int64_t out = 0;
    for (const std::int64_t each : counts) out += each;
    return out;
}

bool is_weight(const StoredTensor& tensor) {
    return tensor.is_judged(true) || tensor.role == TensorRole::refused;
}

nlohmann::json number_or_null(double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

}  // namespace

bool Verified::is_fault() const {
    if (tensor->role == TensorRole::refused) return true;
    if (diagnosis) return diagnosis->is_fault();
    return tensor->role == TensorRole::unscaled || not_finite > 0 ||
           scales.nan + scales.inf + scales.negative > 0;
}

std::string Verified::sentence() const {
    std::vector<std::string> parts;
    if (tensor->role == TensorRole::refused) parts.push_back("not read: " + tensor->why);
    if (diagnosis) parts.push_back(diagnosis->sentence());
    if (tensor->role == TensorRole::unscaled) parts.emplace_back("codes without a scale, none found");
    if (not_finite > 0)
        parts.push_back(with_commas(static_cast<std::size_t>(not_finite)) + " values are NaN or Inf");
    if (!scales.is_usual()) parts.push_back("among its scales: " + scales.words());
    if (parts.empty()) parts.emplace_back("fine");
    std::string out = parts.front();
    for (std::size_t i = 1; i < parts.size(); ++i) out += "; " + parts[i];
    return out;
}

std::size_t Verification::faults() const {
    return static_cast<std::size_t>(std::ranges::count_if(tensors, &Verified::is_fault));
}

std::string Verification::foot() const {
    const std::size_t with_fault = faults();
    std::size_t apart = 0;
    if (original)
        for (const Verified& each : tensors) apart += !each.diagnosis && !each.is_fault();
    std::string out = fmt::format("{} tensor{}: {} fine, {} with a fault", with_commas(tensors.size()),
                                  tensors.size() == 1 ? "" : "s",
                                  with_commas(tensors.size() - with_fault - apart), with_commas(with_fault));
    if (apart > 0) out += fmt::format(", {} not compared", with_commas(apart));
    return out;
}

nlohmann::json Verification::json() const {
    nlohmann::json out = {{"file", model->path().string()}, {"tensors", nlohmann::json::array()}};
    if (original) {
        out["against"] = original->path().string();
        out["unmatched"] = unmatched;
        out["unmatched_there"] = unmatched_there;
    }
    out["faults"] = faults();
    for (const Verified& each : tensors) {
        nlohmann::json row = {{"name", each.tensor->name},
                              {"dtype", each.tensor->dtype},
                              {"fault", each.is_fault()},
                              {"says", each.sentence()}};
        if (const std::string words = each.tensor->scale_words(); !words.empty()) row["scales"] = words;
        if (!each.scales.is_usual()) row["odd_scales"] = to_json(each.scales);
        if (each.not_finite > 0) row["not_finite"] = each.not_finite;
        if (const auto& diagnosis = each.diagnosis) {
            row["cause"] = diagnosis->is_fault() ? nlohmann::json(diagnosis->fault) : nullptr;
            row["rel_l2"] = number_or_null(diagnosis->rel_l2);
            row["rel_l2_mended"] = number_or_null(diagnosis->mended);
            row["limit"] = number_or_null(diagnosis->limit);
        }
        out["tensors"].push_back(std::move(row));
    }
    return out;
}

Verifier::Verifier(const TensorStore& model, const TensorStore& original)
    : model_(model),
      original_(original),
      counterparts_(model, original),
      head_dim_(head_dim_beside(model, original)) {}

std::optional<Diagnosis> Verifier::diagnose(const StoredTensor& tensor) const {
    if (!tensor.is_judged(true)) return std::nullopt;
    std::vector<RowsOf> rows = counterparts_.of(tensor);
    if (rows.empty()) return std::nullopt;
    const auto others = [&] {
        std::vector<Question::Other> out;
        for (const StoredTensor& other : model_.tensors()) {
            if (&other == &tensor || !other.is_judged(true) || other.shape != tensor.shape) continue;
            if (auto there = counterparts_.of(other); !there.empty())
                out.push_back({other.own_name(), std::move(there)});
        }
        return out;
    };
    return fp8lab::diagnose({.model = model_,
                             .tensor = tensor,
                             .original = original_,
                             .rows = std::move(rows),
                             .head_dim = head_dim_,
                             .others = others});
}

Verified Verifier::verify(const StoredTensor& tensor) const {
    return {.tensor = &tensor, .scales = model_.scale_health(tensor), .diagnosis = diagnose(tensor)};
}

Verification verify(std::shared_ptr<const TensorStore> model, std::shared_ptr<const TensorStore> original,
                    const std::function<void(const VerifyProgress&)>& between) {
    Verification out{.model = std::move(model), .original = std::move(original)};
    std::vector<const StoredTensor*> weights;
    for (const StoredTensor& tensor : out.model->tensors())
        if (is_weight(tensor)) weights.push_back(&tensor);
    std::optional<Verifier> verifier;
    std::set<const StoredTensor*> used;
    if (out.original) {
        verifier.emplace(*out.model, *out.original);
        for (const StoredTensor* const tensor : weights) {
            const auto rows =
                tensor->is_judged(true) ? verifier->counterparts().of(*tensor) : std::vector<RowsOf>{};
            for (const RowsOf& part : rows) used.insert(part.tensor);
            if (rows.empty() && tensor->is_judged(true)) out.unmatched.push_back(tensor->name);
        }
        if (used.empty())
            throw input_error(out.original->files().front().where(),
                              "has none of the tensors of " + quote_from(out.model->path().string()) +
                                  ", by name and shape");
        for (const auto& [name, tensor] : verifier->counterparts().of_original())
            if (!used.contains(tensor)) out.unmatched_there.push_back(tensor->name);
    }
    for (const StoredTensor* const tensor : weights) {
        if (between) between({out.tensors.size(), weights.size()});
        if (verifier) {
            out.tensors.push_back(verifier->verify(*tensor));
            continue;
        }
        out.tensors.push_back({.tensor = tensor, .scales = out.model->scale_health(*tensor)});
        if (tensor->is_judged(true)) out.tensors.back().not_finite = count_not_finite(*out.model, *tensor);
    }
    return out;
}

}  // namespace fp8lab
