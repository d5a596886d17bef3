#include "core/inspect/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/match.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

constexpr std::size_t kBand = 128;              // rows: blocks of 128 x 128 stay whole
constexpr std::size_t kPiece = 128 * 1024;      // values that one thread reads and casts at a time, at least
constexpr std::uint64_t kSummarised = 4 << 20;  // values of a step of the first pass; ~20 ms
constexpr std::size_t kAsked = 4 << 20;  // values of a piece between two questions of core/threads/ask.h
constexpr std::size_t kCasts = 2;        // pieces of the second that a thread casts in a step; ~25 ms
constexpr double kCastCost = 12;         // of a value in the second pass, compared with the first

// The lowest SQNR of the rows that have one.
double worst_row(std::span<const float> x, std::span<const float> q, std::size_t cols) {
    double worst = std::numeric_limits<double>::infinity();
    for (std::size_t at = 0; at < x.size(); at += cols) {
        constexpr std::size_t kLanes = 8;
        std::array<double, kLanes> signal{}, noise{};
        const float* const xs = x.data() + at;
        const float* const qs = q.data() + at;
        const std::size_t whole = cols - cols % kLanes;
        for (std::size_t c = 0; c < whole; c += kLanes)
            for (std::size_t lane = 0; lane < kLanes; ++lane) {
                const auto value = static_cast<double>(xs[c + lane]);
                const auto error = static_cast<double>(xs[c + lane] - qs[c + lane]);
                signal[lane] += value * value;
                noise[lane] += error * error;
            }
        for (std::size_t c = whole; c < cols; ++c) {
            const auto value = static_cast<double>(xs[c]), error = static_cast<double>(xs[c] - qs[c]);
            signal[c - whole] += value * value;
            noise[c - whole] += error * error;
        }
        double all = 0, lost = 0;
        for (std::size_t lane = 0; lane < kLanes; ++lane) all += signal[lane], lost += noise[lane];
        if (all > 0) worst = std::min(worst, 10 * std::log10(all / lost));
    }
    return worst;
}

int exponent_of(std::uint32_t magnitude) {  // of a float32's bits without the sign; not 0
    const int field = static_cast<int>(magnitude >> 23);
    return field > 0 ? field - 127 : static_cast<int>(std::bit_width(magnitude)) - 150;
}

}  // namespace

void Binades::add(float value) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFF'FFFF;
    ++counts[static_cast<std::size_t>(exponent_of(magnitude) - kLowest)];
}

bool matches(std::string_view name, std::string_view filter) {
    const std::string wanted = lower_case(filter);
    return lower_case(name).find(wanted) != std::string::npos ||
           lower_case(kind_of(name)).find(wanted) != std::string::npos;
}

double TensorSummary::binades() const {
    if (amax == 0) return 0;
    return std::log2(static_cast<double>(amax)) - std::log2(static_cast<double>(least));
}

void TensorSummary::add(std::span<float> values, const Narrowed& narrowed) {
    constexpr std::uint32_t kInfinity = 0x7F80'0000;
    std::uint32_t largest = 0, smallest = kInfinity;
    for (float& value : values) {
        const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFF'FFFF;
        if (magnitude >= kInfinity) {
            ++(magnitude > kInfinity ? excluded.nan : excluded.inf);
            value = 0;
        } else if (magnitude == 0) {
            ++zeros;
        } else {
            ++histogram.counts[static_cast<std::size_t>(exponent_of(magnitude) - Binades::kLowest)];
            largest = std::max(largest, magnitude);
            smallest = std::min(smallest, magnitude);
        }
    }
    n += static_cast<std::int64_t>(values.size());
    excluded += {.inf = -narrowed.beyond, .beyond = narrowed.beyond, .below = narrowed.below};
    if (largest == 0) return;
    amax = std::max(amax, std::bit_cast<float>(largest));
    const auto low = std::bit_cast<float>(smallest);
    least = least > 0 ? std::min(least, low) : low;
}

TensorSummary& TensorSummary::operator+=(const TensorSummary& other) {
    n += other.n;
    zeros += other.zeros;
    excluded += other.excluded;
    scales += other.scales;
    amax = std::max(amax, other.amax);
    if (other.least > 0) least = least > 0 ? std::min(least, other.least) : other.least;
    for (std::size_t b = 0; b < histogram.counts.size(); ++b)
        histogram.counts[b] += other.histogram.counts[b];
    return *this;
}

Scan::Scan(std::shared_ptr<const TensorStore> store, ScanSpec spec)
    : store_(std::move(store)), spec_(std::move(spec)) {
    std::uint64_t all = 0;
    for (const StoredTensor& tensor : store_->tensors())
        if (tensor.is_judged(spec_.unscaled_codes) && matches(tensor.name, spec_.filter))
            all += tensor.values();
    const std::uint64_t every_of_all = (all + spec_.most_of_all - 1) / spec_.most_of_all;
    for (std::size_t i = 0; i < store_->tensors().size(); ++i) {
        const StoredTensor& tensor = store_->tensors()[i];
        ScanRow row{.tensor = i,
                    .use = spec_.use.value_or(use_of(tensor.own_name())),
                    .kind = tensor.name.substr(0, tensor.prefix) + kind_of(tensor.own_name())};
        if (const auto given = spec_.uses.find(tensor.name); given != spec_.uses.end())
            row.use = given->second;
        const std::uint64_t values = tensor.values();
        const MatrixShape shape = tensor.matrix();
        const auto every =
            std::max(every_of_all, (values + spec_.most_per_tensor - 1) / spec_.most_per_tensor);
        const bool sampled = every > 1 && shape.rows > kBand && !tensor.fortran_order;
        const std::uint64_t at_once = tensor.fortran_order ? values : shape.cols;
        if (sampled) row.every = every;
        if (!matches(tensor.name, spec_.filter))
            row.not_scanned = "filtered out";
        else if (!tensor.is_judged(spec_.unscaled_codes))
            row.not_scanned = tensor.why;
        else if (values == 0)
            row.not_scanned = "empty";
        else if (at_once > spec_.most_per_tensor)
            row.not_scanned = tensor.fortran_order ? "too large for Fortran order" : "a row is too large";
        rows_.push_back(std::move(row));
    }
    sums_.resize(rows_.size());
    missing_.resize(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        if (!rows_[i].not_scanned.empty()) {
            ++scanned_;
            continue;
        }
        take_known(i);
        const std::uint64_t values = store_->tensors()[rows_[i].tensor].values() / rows_[i].every;
        for (const bool casts : {false, true}) {
            casts_ = casts;
            if (casts || !rows_[i].summarised) work_ += cost(i, values);
        }
    }
    start_pass(false);
}

CastPlan Scan::plan(std::size_t row, std::size_t recipe) const {
    return scan_plan(spec_.recipes[recipe].recipe, rows_[row].use);
}

// Takes what the cache has; the rest stays missing.
void Scan::take_known(std::size_t index) {
    ScanRow& row = rows_[index];
    const ScanCache::Entry* const known =
        spec_.cache ? spec_.cache->find(*store_, store_->tensors()[row.tensor], row.every) : nullptr;
    for (std::size_t r = 0; r < spec_.recipes.size(); ++r)
        if (!known || !known->find(plan(index, r))) missing_[index].push_back(r);
    if (!known) return;
    row.summary = known->summary;
    row.summarised = true;
    if (missing_[index].empty()) finish(index);
}

double Scan::cost(std::size_t row, std::uint64_t values) const {
    const auto n = static_cast<double>(values);
    return casts_ ? kCastCost * n * static_cast<double>(missing_[row].size()) /
                        static_cast<double>(std::max<std::size_t>(spec_.recipes.size(), 1))
                  : n;
}

double Scan::progress() const { return work_ == 0 ? 1 : std::min(done_ / work_, 1.0); }

void Scan::start_pass(bool casts) {
    casts_ = casts;
    waiting_.clear();
    for (std::size_t i = rows_.size(); i-- > 0;)
        if (!rows_[i].done() && (casts || !rows_[i].summarised)) waiting_.push_back(i);
    if (!casts) return;
    // The widest first: they are the first rows of the table.
    std::ranges::stable_sort(waiting_, {}, [&](std::size_t i) { return rows_[i].summary.binades(); });
}

void Scan::prefer(std::size_t tensor) {
    const auto there = std::ranges::find(waiting_, tensor);
    if (there != waiting_.end()) std::rotate(there, there + 1, waiting_.end());
}

std::vector<Scan::Piece> Scan::pieces_of(std::size_t index) const {
    const ScanRow& row = rows_[index];
    const StoredTensor& tensor = store_->tensors()[row.tensor];
    const MatrixShape shape = tensor.matrix();
    std::size_t rows = kBand;
    while (row.every == 1 && rows * shape.cols < kPiece) rows += kBand;
    if (tensor.fortran_order) rows = shape.rows;
    std::vector<Piece> pieces;
    for (std::size_t first = 0; first < shape.rows; first += rows * row.every)
        pieces.push_back({index, first, std::min(rows, shape.rows - first)});
    std::ranges::reverse(pieces);
    return pieces;
}

std::vector<Scan::Piece> Scan::next_pieces(std::uint64_t values) {
    std::vector<Piece> out;
    for (std::uint64_t taken = 0; taken < values;) {
        if (pieces_.empty()) {
            if (waiting_.empty()) break;
            pieces_ = pieces_of(waiting_.back());
            waiting_.pop_back();
        }
        out.push_back(pieces_.back());
        pieces_.pop_back();
        taken += out.back().count * store_->tensors()[rows_[out.back().row].tensor].matrix().cols;
    }
    return out;
}

bool Scan::step() {
    const std::vector<Piece> pieces =
        next_pieces(casts_ ? kCasts * kPiece * static_cast<std::size_t>(threads()) : kSummarised);
    for (const Piece& piece : pieces)
        done_ += cost(piece.row, piece.count * store_->tensors()[rows_[piece.row].tensor].matrix().cols);
    if (casts_) {
        cast(pieces);
        return !pieces.empty();
    }
    summarise(pieces);
    if (pieces_.empty() && waiting_.empty()) start_pass(true);
    return true;
}

Narrowed Scan::read(const Piece& piece, std::vector<float>& values) const {
    const StoredTensor& tensor = store_->tensors()[rows_[piece.row].tensor];
    values.resize(piece.count * tensor.matrix().cols);
    return store_->read_rows(tensor, piece.first, values);
}

void Scan::summarise(std::span<const Piece> pieces) {
    std::vector<TensorSummary> parts(pieces.size());
    parallel_for(pieces.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::vector<float> values;
            const Narrowed narrowed = read(pieces[i], values);
            const std::span all(values);
            for (std::size_t at = 0; at < all.size(); at += kAsked, ask_between())
                parts[i].add(all.subspan(at, std::min(kAsked, all.size() - at)));
            parts[i].add({}, narrowed);
            if (pieces[i].first == 0)
                parts[i].scales = store_->scale_health(store_->tensors()[rows_[pieces[i].row].tensor]);
        }
    });
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        ScanRow& row = rows_[pieces[i].row];
        row.summary += parts[i];
        row.summarised = i + 1 < pieces.size() ? pieces[i + 1].row != pieces[i].row : pieces_.empty();
        if (row.summarised && spec_.cache)
            spec_.cache->keep(*store_, store_->tensors()[row.tensor], row.every, row.summary);
    }
}

Scan::PieceCasts Scan::cast_piece(const Piece& piece) const {
    const ScanRow& row = rows_[piece.row];
    const std::size_t cols = store_->tensors()[row.tensor].matrix().cols;
    std::vector<float> x;
    read(piece, x);
    std::vector<float> q(x.size());
    if (row.summary.excluded.not_finite() > 0)
        for (float& value : x)
            if (!std::isfinite(value)) value = 0;
    PieceCasts out;
    for (const std::size_t r : missing_[piece.row]) {
        out.stats.push_back(quantize(plan(piece.row, r), x, q,
                                     {.rows = piece.count, .cols = cols, .tensor_amax = row.summary.amax})
                                .stats);
        ask_between();
        out.worst_db.push_back(worst_row(x, q, cols));
    }
    return out;
}

void Scan::cast(std::span<const Piece> pieces) {
    std::vector<PieceCasts> parts(pieces.size());
    parallel_for(pieces.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) parts[i] = cast_piece(pieces[i]);
    });
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        PieceCasts& sum = sums_[pieces[i].row];
        if (sum.stats.empty()) {
            sum = std::move(parts[i]);
        } else {
            for (std::size_t r = 0; r < sum.stats.size(); ++r) {
                sum.stats[r] += parts[i].stats[r];
                sum.worst_db[r] = std::min(sum.worst_db[r], parts[i].worst_db[r]);
            }
        }
        const bool last = i + 1 < pieces.size() ? pieces[i + 1].row != pieces[i].row : pieces_.empty();
        if (last) finish(pieces[i].row);
    }
}

Scanned scanned_by(const Scan& scan, const Scan* before) {
    Scanned out{.store = scan.shared_store(), .recipes = scan.spec().recipes, .rows = scan.rows()};
    if (before) out.before = before->shared_store(), out.rows_before = before->rows();
    out.scanned = scan.scanned(), out.progress = scan.progress();
    return out;
}

void Scan::finish(std::size_t index) {
    ScanRow& row = rows_[index];
    const StoredTensor& tensor = store_->tensors()[row.tensor];
    const MatrixShape shape = tensor.matrix();
    const PieceCasts sum = std::exchange(sums_[index], {});
    const bool zeros = row.summary.amax == 0;
    std::vector<CastOutcome> outcomes(spec_.recipes.size());
    ScanCache::Entry* const kept = spec_.cache ? spec_.cache->find(*store_, tensor, row.every) : nullptr;
    if (kept)
        for (std::size_t r = 0; r < outcomes.size(); ++r)
            if (const auto known = kept->find(plan(index, r))) outcomes[r] = *known;
    for (std::size_t i = 0; i < missing_[index].size(); ++i) {
        const std::size_t r = missing_[index][i];
        const CastStats& stats = sum.stats[i];
        outcomes[r] = {stats.sqnr_db(), stats.underflow_pct(), stats.overflow_pct(),
                       zeros ? std::numeric_limits<double>::quiet_NaN() : sum.worst_db[i],
                       bits_per_element(plan(index, r), shape.rows, shape.cols)};
        if (kept) kept->keep(plan(index, r), outcomes[r]);
    }
    row.outcomes = std::move(outcomes);
    ++scanned_;
}

}  // namespace fp8lab
