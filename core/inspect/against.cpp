#include "core/inspect/against.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "core/base/names.h"
#include "core/json/read_json.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

constexpr std::size_t kComparedAtOnce =
    128 * 1024;  // values that one thread reads and compares at a time, at least

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
    std::vector<std::string> out;
    const auto add = [&](const std::vector<std::string>& names, std::string_view of, std::string_view there) {
        if (names.empty()) return;
        out.push_back(fmt::format("{} of {} {} no counterpart in {}, by name and shape: {}",
                                  names.size() == 1 ? "1 tensor" : with_commas(names.size()) + " tensors", of,
                                  names.size() == 1 ? "has" : "have", there, some_names(names, quote_from)));
    };
    add(unmatched, "the model", "the original");
    add(unmatched_there, "the original", "the model");
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
        if (!tensor.is_judged(true) && tensor.role != TensorRole::refused) continue;
        const Counterpart found = counterparts.find(tensor);
        used.insert(found.named.begin(), found.named.end());
        if (!rows[i].not_scanned.empty()) continue;
        if (between) between({i, rows.size()});
        if (found.rows.empty())
            out.unmatched.push_back(tensor.name);
        else
            out.rows[i] = against_original(model, tensor, *out.original, found.rows);
    }
    for (const auto& [name, tensor] : counterparts.of_original())
        if (!used.contains(tensor)) out.unmatched_there.push_back(tensor->name);
    return out;
}

}  // namespace fp8lab
