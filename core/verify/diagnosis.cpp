#include "core/verify/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/names.h"
#include "core/base/units.h"
#include "core/verify/factors.h"
#include "core/verify/measure.h"

namespace fp8lab {
namespace {

constexpr std::array kFaults = {
    Fault{"rounded-first", "rounded before scaling"},
    Fault{"plain-cast", "cast without a scale, which it needs"},
    Fault{"scale-inverse", "scale is the inverse"},
    Fault{"scale-squared", "scale must be applied twice"},
    Fault{"scale-transposed", "scale transposed"},
    Fault{"e8m0-number", "E8M0 byte read as a number"},
    Fault{"global-reciprocal", "global scale is the reciprocal"},
    Fault{"global-lost", "global scale lost"},
    Fault{"nibbles", "nibbles swapped"},
    Fault{"fnuz-as-fn", "FNUZ codes read as FN"},
    Fault{"fn-as-fnuz", "FN codes read as FNUZ"},
    Fault{"e5m2-as-e4m3", "E5M2 codes read as E4M3"},
    Fault{"e4m3-as-e5m2", "E4M3 codes read as E5M2"},
    Fault{"weight-transposed", "weight transposed"},
    Fault{"codes-transposed", "weight transposed, its scales not"},
    Fault{"rotary", "rows permuted (rotary order)"},
    Fault{"other-tensor", "is another tensor"},
    Fault{"scale-lost", "scale lost"},
    Fault{"scale-twice", "scale applied twice"},
    Fault{"scale-divides", "divided by the scale"},
    Fault{"scale-rounded-later", "scale rounded after the cast"},
    Fault{"one-factor", "one factor for all values"},
    Fault{"odd-scales", "all scales are NaN, Inf or 0"},
    Fault{"local-scales", "local: some scales"},
    Fault{kNoRule, "scales of another tensor or rule"},
    Fault{"local-tiles", "local: some tiles"},
    Fault{"local-rows", "local: some rows"},
    Fault{"not-finite", "values are NaN or Inf"},
    Fault{"original-zero", "the original is 0 everywhere"},
    Fault{"original-not-finite", "values of the original are NaN or Inf"},
    Fault{"none", "none of these"},
};

std::string words_of(std::string_view fault) {
    return std::string(std::ranges::find(kFaults, fault, &Fault::id)->words);
}

// Values as near as that are the original's, whatever the layout: T is never less.
constexpr double kSame = 0.004;
double limit_of(const SquaredError& own) {
    constexpr double kOurs = 1.5;
    return kOurs * own.relative() + kSame;
}

class Diagnoser {
  public:
    explicit Diagnoser(const Question& question)
        : question_(question),
          stored_(question.model, question.tensor),
          original_(question.original, question.rows),
          shape_(question.tensor.matrix()) {}

    Diagnosis run() {
        if (shape_.rows == 0 || shape_.cols == 0) return {};
        if (stored_.scales())
            divisions_ = {division_of(question_.tensor)};
        else if (Diagnosis same = compare_values(); !same.is_fault())
            return same;
        bands_ = bands_of(shape_, divisions_);
        const Amaxes amaxes = whole_amaxes(original_, shape_, divisions_, bands_);
        Measured measured = measure(original_, stored_, divisions_, amaxes, bands_);
        take(measured);
        // Most files have the first rule, and need no other cast.
        if (const auto rules = divisions_by_rule(divisions_.front());
            rules.size() > 1 && divisions_.size() == 1 && (rel_l2_ > limit_ || has_parts_off(measured))) {
            measured =
                measure(original_, stored_, rules, whole_amaxes(original_, shape_, rules, bands_), bands_);
            take(measured);
            limits_ = {limit_};
        }
        if (rel_l2_ > kSame && measured.is_rounded()) {
            if (question_.tensor.role != TensorRole::unscaled) return named("rounded-first");
            // A plain cast: whether it is one that needs a scale is seen at the error.
            if (rel_l2_ > limit_ || has_parts_off(measured)) return named("plain-cast");
        }
        if (measured.original_not_finite > 0) return original_not_finite(measured);
        if (rel_l2_ <= limit_) return has_parts_off(measured) ? local(measured) : fine();
        if (measured.stored.signal == 0) return named("original-zero");
        if (auto found = try_hypotheses(amaxes.tensor)) return *found;
        if (auto found = try_others()) return *found;
        if (auto found = try_factors()) return *found;
        if (measured.not_finite > 0) return not_finite(measured);
        return try_tiles();
    }

  private:
    void take(const Measured& measured) {
        rel_l2_ = measured.stored.relative();
        limits_.clear();
        for (const SquaredError& own : measured.own) limits_.push_back(limit_of(own));
        limit_ = limits_.empty() ? kSame : std::ranges::max(limits_);
    }

    double mean_square(const Measured& measured) const {
        return measured.stored.signal / static_cast<double>(shape_.rows * shape_.cols);
    }
    bool has_parts_off(const Measured& measured) const {
        const double mean = mean_square(measured);
        const Parts& parts = measured.parts;
        return parts.rows.off(mean) + parts.tiles.off(mean) + parts.scales.off(mean) > 0;
    }

    // The whole is as near as it should be, and some parts are not.
    Diagnosis local(const Measured& measured) const {
        if (auto found = try_factors(); found && found->fault == "local-scales") return *found;
        const double mean = mean_square(measured);
        const auto of = [&](std::string_view fault, std::int64_t off, std::int64_t all,
                            std::string_view kind) {
            return named(fault, fmt::format("local: {} of {} {}", with_commas(static_cast<std::size_t>(off)),
                                            with_commas(static_cast<std::size_t>(all)), kind));
        };
        const auto& [rows, tiles, scales] = measured.parts;
        // A row of zeros may put each tile that it crosses off, and a tile each of its rows.
        const std::int64_t rows_off = rows.off(mean), tiles_off = tiles.off(mean);
        if (tiles_off > 0 && (rows_off == 0 || tiles_off <= rows_off))
            return of("local-tiles", tiles_off, tiles.all, "tiles");
        if (rows_off > 0) return of("local-rows", rows_off, rows.all, "rows");
        return of("local-scales", scales.off(mean), scales.all, "scales");
    }

    Diagnosis not_finite(const Measured& measured) const {
        const double rest = measured.finite.relative();
        return named("not-finite", not_finite_words(measured.not_finite),
                     rest <= limit_ ? rest : std::numeric_limits<double>::quiet_NaN());
    }
    Diagnosis original_not_finite(const Measured& measured) const {
        return named("original-not-finite",
                     not_finite_words(measured.original_not_finite, " of the original"));
    }

    Diagnosis fine() const { return {.rel_l2 = rel_l2_, .limit = limit_}; }
    Diagnosis named(std::string_view fault, std::string words = {},
                    double mended = std::numeric_limits<double>::quiet_NaN()) const {
        return {fault, words.empty() ? words_of(fault) : std::move(words), rel_l2_, mended, limit_};
    }

    // Most tensors of a file without scales are those of the original, and need no cast. A fault: they are not.
    Diagnosis compare_values() {
        const std::vector<Band> bands = bands_of(shape_, {});
        const Measured measured = measure(original_, stored_, {}, {}, bands);
        take(measured);
        if (rel_l2_ <= kSame && measured.original_not_finite == 0 && !has_parts_off(measured)) return fine();
        divisions_ = divisions_of_values(shape_);
        return named("none");
    }

    struct Hit {
        const Hypothesis* hypothesis;
        std::size_t head;
        double error;
    };

    bool applies(const Hypothesis& each) const {
        const StoredScales* const scales = stored_.scales();
        if (!scales && !each.concerns_values()) return false;
        if (!each.from.empty() && each.from != question_.tensor.element) return false;
        if (each.needs_nan && std::isfinite(rel_l2_)) return false;
        if (each.global != GlobalReading::as_is && !stored_.global()) return false;
        if (each.global == GlobalReading::of_amax && stored_.global()->value != 1) return false;
        if (each.scale == ScaleReading::transposed &&
            (scales->grid.across() == 1 || scales->count == scales->grid.across()))
            return false;
        if (each.scale == ScaleReading::exponent && !scales_are_bytes()) return false;
        return each.order != RowOrder::transposed || shape_.rows == shape_.cols;
    }

    // Scales that E8M0 would have as its byte: whole numbers from 0 to 255.
    bool scales_are_bytes() const {
        constexpr std::size_t kSome = 4096;
        constexpr float kMost = 255;
        if (stored_.scales()->element == "F8_E8M0") return false;
        std::vector<float> scales(std::min(kSome, stored_.scales()->count));
        stored_.read_scales(0, scales);
        return std::ranges::all_of(
            scales, [](float scale) { return scale >= 0 && scale <= kMost && scale == std::floor(scale); });
    }

    std::vector<std::size_t> heads_for(const Hypothesis& each) const {
        if (each.order != RowOrder::to_pairs && each.order != RowOrder::to_halves) return {0};
        std::vector<std::size_t> out;
        const auto add = [&](std::size_t size) {
            if (size > 0 && size % 2 == 0 && shape_.rows % size == 0 &&
                std::ranges::find(out, size) == out.end())
                out.push_back(size);
        };
        add(question_.head_dim);
        for (const std::size_t heads : {2U, 4U, 8U})
            if (shape_.rows % heads == 0) add(shape_.rows / heads);
        return out;
    }

    double error(const Hit& hit, float amax, std::span<const Band> bands) const {
        const Reader reader(stored_, *hit.hypothesis, hit.head, amax);
        return (hit.hypothesis->order == RowOrder::transposed ? error_transposed : error_of)(
                   original_, stored_, reader, bands)
            .relative();
    }

    std::optional<Diagnosis> try_hypotheses(float amax) const {
        const std::vector<Band> sample = sample_of(bands_, shape_.cols);
        std::vector<Hit> hits;
        for (const Hypothesis& each : hypotheses()) {
            if (!applies(each)) continue;
            for (const std::size_t head : heads_for(each)) {
                hits.push_back({&each, head, 0});
                hits.back().error = error(hits.back(), amax, sample);
            }
        }
        std::ranges::stable_sort(hits, {}, &Hit::error);
        // What is wrong has an error of about 1 on any rows.
        constexpr std::size_t kTried = 2;
        constexpr double kPromising = 0.5;
        for (std::size_t i = 0; i < std::min(kTried, hits.size()) && hits[i].error < kPromising; ++i) {
            const double all = sample.size() == bands_.size() ? hits[i].error : error(hits[i], amax, bands_);
            if (all <= limit_ * hits[i].hypothesis->slack) return named(hits[i].hypothesis->fault, {}, all);
        }
        return std::nullopt;
    }

    std::optional<Diagnosis> try_others() const {
        static constexpr Hypothesis kAsItIs{.fault = "other-tensor"};
        constexpr std::size_t kRows = 8;
        constexpr double kPromising = 0.5;
        const Reader reader(stored_, kAsItIs, 0, 0);
        std::vector<Band> sample;
        for (std::size_t i = 0; i < std::min(kRows, shape_.rows); ++i)
            sample.push_back({(2 * i + 1) * shape_.rows / (2 * std::min(kRows, shape_.rows)), 1});
        const Question::Other* best = nullptr;
        double least = kPromising;
        const std::vector<Question::Other> others =
            question_.others ? question_.others() : std::vector<Question::Other>{};
        for (const Question::Other& other : others) {
            const OriginalMatrix there(question_.original, other.rows);
            const double error = error_of(there, stored_, reader, sample).relative();
            if (error < least) least = error, best = &other;
        }
        if (!best) return std::nullopt;
        const OriginalMatrix there(question_.original, best->rows);
        const double all = error_of(there, stored_, reader, bands_).relative();
        if (all > limit_) return std::nullopt;
        return named("other-tensor", fmt::format("is another tensor: {}", best->name), all);
    }

    std::optional<Diagnosis> try_factors() const {
        std::optional<Diagnosis> out;
        for (std::size_t d = 0; d < divisions_.size(); ++d) {
            const FactorTally tally = factors_of(original_, stored_, divisions_[d], bands_);
            if (tally.relative() > limits_[d]) continue;
            FactorFault found = fault_of(tally, stored_.scales() != nullptr);
            if (found.fault.empty()) continue;
            // A finer division than the file's fits too, and does not explain the factors: a later one may.
            const bool explained = found.fault != kNoRule;
            if (explained || !out) out = named(found.fault, std::move(found.words), tally.relative());
            if (explained) break;
        }
        return out;
    }

    Diagnosis try_tiles() const {
        constexpr double kMost = 0.25;
        const double limit = stored_.scales() ? 2 * limit_ : limit_;
        const Tiles tiles =
            tiles_above(original_, stored_, bands_of(shape_, divisions_of_values(shape_)), limit);
        if (tiles.above == 0 || static_cast<double>(tiles.above) > kMost * static_cast<double>(tiles.all))
            return named("none");
        return named("local-tiles",
                     fmt::format("local: {} of {} tiles", with_commas(static_cast<std::size_t>(tiles.above)),
                                 with_commas(static_cast<std::size_t>(tiles.all))));
    }

    const Question& question_;
    StoredMatrix stored_;
    OriginalMatrix original_;
    MatrixShape shape_;
    std::vector<Division> divisions_;
    std::vector<Band> bands_;
    std::vector<double> limits_;  // T of each division
    double limit_ = 0, rel_l2_ = 0;
};

}  // namespace

std::span<const Fault> faults() { return kFaults; }

std::string not_finite_words(std::int64_t count, std::string_view of_what) {
    return fmt::format("{} value{}{} {} NaN or Inf", with_commas(static_cast<std::size_t>(count)),
                       count == 1 ? "" : "s", of_what, count == 1 ? "is" : "are");
}

std::string Diagnosis::sentence() const {
    const auto number = [](double value) {
        return std::isinf(value) ? std::string("not finite") : format_number(value, 3);
    };
    return fmt::format("{}; relative L2 {}", words,
                       std::isnan(mended) ? number(rel_l2) : fmt::format("{} then", number(mended)));
}

Diagnosis diagnose(const Question& question) { return Diagnoser(question).run(); }

}  // namespace fp8lab
