#include "core/verify/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
#include "core/verify/readings.h"

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

// Reads the values where `values` asks for those that are not finite, or where scales are so small that codes may be lost.
void count_odd(const TensorStore& store, Verified& out, bool values) {
    constexpr std::size_t kAtOnce = std::size_t{1} << 18;  // values
    const MatrixShape shape = out.tensor->matrix();
    const bool codes = out.scales.zero + out.scales.subnormal > 0;
    if (shape.cols == 0 || shape.rows == 0 || !(values || codes)) return;
    const std::size_t band = std::max<std::size_t>(1, kAtOnce / shape.cols);
    const StoredMatrix matrix(store, *out.tensor);
    struct Counts {
        std::int64_t not_finite = 0, under_zero = 0;
    };
    std::vector<Counts> counts((shape.rows + band - 1) / band);
    parallel_for(counts.size(), 1, [&](std::size_t begin, std::size_t end) {
        std::vector<float> rows, stored;
        for (std::size_t i = begin; i < end; ++i) {
            rows.resize(std::min(band, shape.rows - i * band) * shape.cols);
            matrix.read_values(i * band, rows);
            counts[i].not_finite =
                std::ranges::count_if(rows, [](float value) { return !std::isfinite(value); });
            if (!codes) continue;
            stored.resize(rows.size());
            matrix.read_codes(i * band, stored);
            for (std::size_t k = 0; k < rows.size(); ++k)
                counts[i].under_zero += static_cast<int>(rows[k] == 0 && stored[k] != 0);
        }
    });
    for (const Counts& each : counts) {
        if (values) out.not_finite += each.not_finite;
        out.under_zero += each.under_zero;
    }
}

nlohmann::json number_or_null(double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

}  // namespace

std::string_view to_string(VerifiedAs verdict) {
    switch (verdict) {
        case VerifiedAs::fault:
            return "fault";
        case VerifiedAs::not_read:
            return "not read";
        case VerifiedAs::not_compared:
            return "not compared";
        case VerifiedAs::fine:
            break;
    }
    return "fine";
}

bool is_weight(const StoredTensor& tensor) {
    return tensor.is_judged(true) || tensor.role == TensorRole::refused;
}

VerifiedAs Verified::verdict() const {
    if (tensor->role == TensorRole::refused)
        return tensor->is_broken ? VerifiedAs::fault : VerifiedAs::not_read;
    if (!apart.empty() && !other_order) return VerifiedAs::fault;
    const bool unknown = !diagnosis && (tensor->role == TensorRole::unscaled || scales.nan + scales.inf > 0);
    if ((diagnosis && diagnosis->is_fault()) || unknown || scales.negative + not_finite + under_zero > 0)
        return VerifiedAs::fault;
    return apart.empty() ? VerifiedAs::fine : VerifiedAs::not_compared;
}

std::string Verified::sentence() const {
    std::vector<std::string> parts;
    if (tensor->role == TensorRole::refused)
        parts.push_back((tensor->is_broken ? "" : "not read: ") + tensor->why);
    else if (!apart.empty())
        parts.push_back((other_order ? "not compared: " : "") + apart);
    if (diagnosis) parts.push_back(diagnosis->sentence());
    if (tensor->role == TensorRole::unscaled) parts.emplace_back("codes without a scale, none found");
    if (not_finite > 0) parts.push_back(not_finite_words(not_finite));
    if (under_zero > 0)
        parts.push_back(under_zero == 1 ? "1 code that is not 0 becomes 0 under its scale"
                                        : with_commas(static_cast<std::size_t>(under_zero)) +
                                              " codes that are not 0 become 0 under their scales");
    if (!scales.is_usual()) parts.push_back("among its scales: " + scales.words());
    if (parts.empty()) parts.emplace_back("nothing wrong found");
    if (!tensor->note.empty()) parts.push_back(tensor->note);
    return fmt::format("{}", fmt::join(parts, "; "));
}

std::size_t Verification::count(VerifiedAs verdict) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(tensors, [&](const Verified& each) { return each.verdict() == verdict; }));
}

std::string Verification::foot() const {
    std::string out = fmt::format("{} tensor{}: {} {}, {} with a fault", with_commas(tensors.size()),
                                  tensors.size() == 1 ? "" : "s", with_commas(count(VerifiedAs::fine)),
                                  original ? "fine" : "with nothing wrong found", with_commas(faults()));
    for (const VerifiedAs each : {VerifiedAs::not_read, VerifiedAs::not_compared})
        if (count(each) > 0) out += fmt::format(", {} {}", with_commas(count(each)), to_string(each));
    return original ? out : out + "; without an original the values are not checked";
}

nlohmann::json Verification::json() const {
    nlohmann::json out = {{"file", model->path().string()}, {"tensors", nlohmann::json::array()}};
    if (original) {
        out["against"] = original->path().string();
        out["unmatched"] = nlohmann::json::array(), out["unmatched_there"] = nlohmann::json::array();
    }
    out["faults"] = faults();
    out["not_read"] = count(VerifiedAs::not_read), out["not_compared"] = count(VerifiedAs::not_compared);
    for (const Verified& each : tensors) {
        nlohmann::json row = {{"name", each.tensor->name},
                              {"dtype", each.tensor->dtype},
                              {"fault", each.is_fault()},
                              {"verdict", to_string(each.verdict())},
                              {"says", each.sentence()}};
        if (!each.apart.empty()) {
            const bool own = model->find(each.tensor->name) == each.tensor;
            out[own ? "unmatched" : "unmatched_there"].push_back(each.tensor->name);
        }
        if (const std::string words = each.tensor->scale_words(); !words.empty()) row["scales"] = words;
        if (!each.scales.is_usual()) row["odd_scales"] = to_json(each.scales);
        if (each.not_finite > 0) row["not_finite"] = each.not_finite;
        if (each.under_zero > 0) row["under_zero"] = each.under_zero;
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
      head_dim_(head_dim_beside(model, original)) {
    std::set<const StoredTensor*> used;
    for (const StoredTensor& tensor : model.tensors()) {
        if (!is_weight(tensor)) continue;
        const auto named = counterparts_.find(tensor).named;
        used.insert(named.begin(), named.end());
    }
    shares_names_ = !used.empty();
    for (const auto& [name, tensor] : counterparts_.of_original())
        if (!used.contains(tensor))
            missing_.push_back({.tensor = tensor, .apart = "in the original, not in the model"});
}

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
    Verified out{.tensor = &tensor, .scales = model_.scale_health(tensor), .diagnosis = diagnose(tensor)};
    if (!tensor.is_judged(true)) return out;
    if (!out.diagnosis) {
        Counterpart found = counterparts_.find(tensor);
        out.apart = std::move(found.why), out.other_order = found.other_order;
    }
    count_odd(model_, out, !out.diagnosis);
    return out;
}

Verification verify(std::shared_ptr<const TensorStore> model, std::shared_ptr<const TensorStore> original,
                    const std::function<void(const VerifyProgress&)>& between) {
    Verification out{.model = std::move(model), .original = std::move(original)};
    std::vector<const StoredTensor*> weights;
    for (const StoredTensor& tensor : out.model->tensors())
        if (is_weight(tensor)) weights.push_back(&tensor);
    std::optional<Verifier> verifier;
    if (out.original) {
        verifier.emplace(*out.model, *out.original);
        if (!verifier->shares_names() && !weights.empty())
            throw input_error(
                out.original->files().front().where(),
                "has none of the tensors of " + quote_from(out.model->path().string()) + ", by name");
    }
    for (const StoredTensor* const tensor : weights) {
        if (between) between({out.tensors.size(), weights.size()});
        if (verifier) {
            out.tensors.push_back(verifier->verify(*tensor));
            continue;
        }
        out.tensors.push_back({.tensor = tensor, .scales = out.model->scale_health(*tensor)});
        if (tensor->is_judged(true)) count_odd(*out.model, out.tensors.back(), true);
    }
    if (verifier)
        out.tensors.insert(out.tensors.end(), verifier->missing().begin(), verifier->missing().end());
    return out;
}

}  // namespace fp8lab
