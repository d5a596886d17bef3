#include "core/inspect/against.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/base/names.h"
#include "core/json/read_json.h"
#include "core/tensors/scales/layouts.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

constexpr std::size_t kComparedAtOnce =
    128 * 1024;  // values that one thread reads and compares at a time, at least

// A fused matrix and its parts, in the order of their rows.
struct Fused {
    std::string_view whole;
    std::array<std::string_view, 3> parts;  // the last one may be empty
};
constexpr std::array kFused = {Fused{"qkv_proj", {"q_proj", "k_proj", "v_proj"}},
                               Fused{"gate_up_proj", {"gate_proj", "up_proj", ""}}};

std::string replaced(std::string_view name, std::string_view part, std::string_view by) {
    const std::size_t at = name.find(part);
    return std::string(name.substr(0, at)).append(by).append(name.substr(at + part.size()));
}

Counterparts::Names names_of(const TensorStore& store) {
    Counterparts::Names out;
    for (const StoredTensor& tensor : store.tensors())
        if (tensor.is_judged(true)) out.emplace(bare_name(tensor.own_name()), &tensor);
    return out;
}
const StoredTensor* find(const Counterparts::Names& names, const std::string& name) {
    const auto found = names.find(name);
    return found == names.end() ? nullptr : found->second;
}

// The rows of a fused matrix in the parts of the original.
std::vector<RowsOf> whole(const StoredTensor& tensor, const std::string& name, const Fused& fused,
                          const Counterparts::Names& original) {
    std::vector<RowsOf> out;
    std::size_t rows = 0;
    for (const std::string_view part : fused.parts) {
        if (part.empty()) continue;
        const StoredTensor* const there = find(original, replaced(name, fused.whole, part));
        if (!there || there->matrix().cols != tensor.matrix().cols) return {};
        out.push_back({there, 0, there->matrix().rows});
        rows += there->matrix().rows;
    }
    return rows == tensor.matrix().rows && tensor.shape.size() <= 2 ? out : std::vector<RowsOf>{};
}
// Where the part begins in the fused matrix of the original: behind those of this model that stand before it.
std::vector<RowsOf> one_part(const StoredTensor& tensor, const std::string& name, const Fused& fused,
                             std::string_view part, const Counterparts::Names& model,
                             const Counterparts::Names& original) {
    const StoredTensor* const there = find(original, replaced(name, part, fused.whole));
    if (!there || there->matrix().cols != tensor.matrix().cols || tensor.shape.size() > 2) return {};
    std::size_t first = 0, rows = 0;
    bool before = true;
    for (const std::string_view each : fused.parts) {
        if (each.empty()) continue;
        const StoredTensor* const own = find(model, replaced(name, part, each));
        if (!own) return {};
        before = before && each != part;
        if (before) first += own->matrix().rows;
        rows += own->matrix().rows;
    }
    if (rows != there->matrix().rows) return {};
    return {{there, first, tensor.matrix().rows}};
}

struct Sums {
    double signal = 0, error = 0, product = 0, own = 0;
    std::size_t worst_row = 0;
    double worst_db = std::numeric_limits<double>::infinity();
    void add(const Sums& other) {
        signal += other.signal, error += other.error, product += other.product, own += other.own;
        if (other.worst_db < worst_db) worst_db = other.worst_db, worst_row = other.worst_row;
    }
};

double decibels(double signal, double error) { return 10 * std::log10(signal / error); }

Sums compare_rows(std::span<const float> x, std::span<const float> w, std::size_t cols, std::size_t first) {
    const auto value = [](float v) { return std::isfinite(v) ? static_cast<double>(v) : 0.0; };
    Sums out;
    for (std::size_t at = 0; at < x.size(); at += cols) {
        Sums row;
        for (std::size_t i = at; i < at + cols; ++i) {
            const double a = value(x[i]), b = value(w[i]);
            row.signal += b * b;
            row.error += (a - b) * (a - b);
            row.product += a * b;
            row.own += a * a;
        }
        if (row.signal > 0) row.worst_db = decibels(row.signal, row.error), row.worst_row = first + at / cols;
        out.add(row);
    }
    return out;
}

}  // namespace

std::vector<std::string> Against::notes() const {
    return counterpart_notes(unmatched, unmatched_there, *original);
}

std::vector<std::string> counterpart_notes(const std::vector<std::string>& unmatched,
                                           const std::vector<std::string>& unmatched_there,
                                           const TensorStore& original) {
    std::vector<std::string> out;
    const auto add = [&](const std::vector<std::string>& names, const std::string& where) {
        if (names.empty()) return;
        out.push_back(
            fmt::format("{} not in {}, by name and shape: {}",
                        names.size() == 1 ? "1 tensor is" : with_commas(names.size()) + " tensors are", where,
                        some_names(names, quote_from)));
    };
    add(unmatched, original.path().filename().string());
    add(unmatched_there, "this model");
    return out;
}

std::string bare_name(std::string_view name) {
    constexpr std::array<std::string_view, 2> kPrefixes = {"model.", "language_model."};
    for (bool more = true; more;) {
        more = false;
        for (const std::string_view prefix : kPrefixes)
            if (name.starts_with(prefix)) name.remove_prefix(prefix.size()), more = true;
    }
    for (const Layout& layout : layouts())
        if (layout.codes != ".weight" && !layout.codes.empty() && name.ends_with(layout.codes)) {
            name.remove_suffix(layout.codes.size());
            break;
        }
    std::string out(name);
    // torchao's attribute "._weight" of ".weight".
    constexpr std::string_view kAttribute = "._weight";
    if (out.ends_with(kAttribute)) out.erase(out.size() - kAttribute.size() + 1, 1);
    return out;
}

Counterparts::Counterparts(const TensorStore& model, const TensorStore& original)
    : model_(names_of(model)), original_(names_of(original)) {}

std::vector<RowsOf> Counterparts::of(const StoredTensor& tensor) const {
    const std::string name = bare_name(tensor.own_name());
    std::vector<RowsOf> out;
    if (const StoredTensor* const same = find(original_, name)) {
        if (same->shape == tensor.shape) out = {{same, 0, same->matrix().rows}};
        return out;
    }
    for (const Fused& fused : kFused) {
        if (name.find(fused.whole) != name.npos) return whole(tensor, name, fused, original_);
        for (const std::string_view part : fused.parts)
            if (!part.empty() && name.find(part) != name.npos)
                return one_part(tensor, name, fused, part, model_, original_);
    }
    return out;
}

AgainstOriginal against_original(const TensorStore& model, const StoredTensor& tensor,
                                 const TensorStore& original, const std::vector<RowsOf>& parts) {
    const std::size_t cols = tensor.matrix().cols, band = std::max<std::size_t>(1, kComparedAtOnce / cols);
    struct Piece {
        const StoredTensor* there;
        std::size_t first, first_there, count;
    };
    std::vector<Piece> pieces;
    std::size_t row = 0;
    for (const RowsOf& part : parts)
        for (std::size_t r = 0; r < part.count; r += band) {
            const std::size_t count = std::min(band, part.count - r);
            pieces.push_back({part.tensor, row, part.first + r, count});
            row += count;
        }
    std::vector<Sums> sums(pieces.size());
    parallel_for(pieces.size(), 1, [&](std::size_t begin, std::size_t end) {
        std::vector<float> x, w;
        for (std::size_t i = begin; i < end; ++i) {
            x.resize(pieces[i].count * cols), w.resize(x.size());
            model.read_rows(tensor, pieces[i].first, x);
            original.read_rows(*pieces[i].there, pieces[i].first_there, w);
            sums[i] = compare_rows(x, w, cols, pieces[i].first);
        }
    });
    Sums all;
    for (const Sums& each : sums) all.add(each);
    return {decibels(all.signal, all.error), std::sqrt(all.error / all.signal),
            all.product / std::sqrt(all.signal * all.own), all.worst_row, all.worst_db};
}

Against against_original(const TensorStore& model, const std::vector<ScanRow>& rows,
                         std::shared_ptr<const TensorStore> original,
                         const std::function<void(const AgainstProgress&)>& between) {
    Against out{.original = std::move(original),
                .rows = std::vector<std::optional<AgainstOriginal>>(rows.size())};
    const Counterparts counterparts(model, *out.original);
    std::set<const StoredTensor*> used;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const StoredTensor& tensor = model.tensors()[rows[i].tensor];
        const auto parts = tensor.is_judged(true) ? counterparts.of(tensor) : std::vector<RowsOf>{};
        for (const RowsOf& part : parts) used.insert(part.tensor);
        if (!rows[i].not_scanned.empty()) continue;
        if (between) between({i, rows.size()});
        if (parts.empty())
            out.unmatched.push_back(tensor.name);
        else
            out.rows[i] = against_original(model, tensor, *out.original, parts);
    }
    for (const auto& [name, tensor] : counterparts.of_original())
        if (!used.contains(tensor)) out.unmatched_there.push_back(tensor->name);
    return out;
}

}  // namespace fp8lab
