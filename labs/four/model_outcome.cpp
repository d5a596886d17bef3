// What follows from the switches, without the means of many casts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/tensors/file.h"
#include "labs/four/model.h"

namespace fp8lab::four {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {"normal",    "laplace",  "student_t",
                                                    "lognormal", "swiglu_h", "outlier_channel"};
constexpr std::array<std::string_view, 6> kLabels = {"Gaussian",   "Laplace",  "Student t, 3",
                                                     "Log-normal", "SwiGLU h", "1 of 16 × 30"};
const Way kNvfp4 = {}, kMxfp4 = {.nvfp4 = false}, kFourOrSix = {.target = Nvfp4Target::four_or_six};

std::array<Numbers, 2> both(const Way& way, const std::array<Tensor, 2>& tensors) {
    return {cast_numbers(way, tensors[0]), cast_numbers(way, tensors[1])};
}

std::array<Tensor, 2> pair_of(Tensor tensor, const RhtSigns& signs) {
    Tensor turned = rotated(tensor, signs);
    return {std::move(tensor), std::move(turned)};
}

// A matrix's first rows and columns.
Tensor cut(const Tensor& tensor, std::size_t rows, std::size_t cols) {
    Tensor out{rows, cols, {}, tensor.name, {}, tensor.picture};
    for (std::size_t r = 0; r < rows; ++r) {
        const auto from = tensor.values.begin() + static_cast<std::ptrdiff_t>(r * tensor.cols);
        out.values.insert(out.values.end(), from, from + static_cast<std::ptrdiff_t>(cols));
    }
    return out;
}

std::vector<int> powers_to(int most) {
    std::vector<int> out;
    for (int n = 1; n <= most; n *= 2) out.push_back(n);
    return out;
}

std::string not_finite(const Tensor& tensor) {
    std::size_t nans = 0, infinities = 0, first = tensor.values.size();
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
        if (std::isfinite(tensor.values[i])) continue;
        first = std::min(first, i);
        ++(std::isnan(tensor.values[i]) ? nans : infinities);
    }
    if (nans + infinities == 0) return {};
    std::string count;
    if (nans > 0) count = fmt::format("{} NaN", nans);
    if (infinities > 0) count += fmt::format("{}{} Inf", nans > 0 ? " and " : "", infinities);
    return fmt::format("{}, first at row {}, column {}: a block with {} has no scale.", count,
                       first / tensor.cols, first % tensor.cols, nans > 0 ? "NaN" : "Inf");
}

// One's own as it is in its file: NaN and Inf are refused with their place, not counted as 0.
Tensor tensor_of(const TensorSpec& spec) {
    return spec.file.empty() ? make_tensor(spec) : read_tensor(spec.file);
}

// The tensor of the request before is kept, and so are the six rows of the figure "data": most switches leave
// both as they are. Lives with the job, used by its thread only.
class Computation {
  public:
    Outcome operator()(const Params& params) {
        Outcome out;
        out.params = params;
        const RhtSigns signs = params.sign_vector();
        take(params, signs, out);
        const Way way = params.way();
        out.kinds = kinds(params, signs);
        out.row_copies = copies({.target = way.target}, params.tensor.seed);
        out.square_copies = copies({.square = true, .target = way.target}, params.tensor.seed);
        out.copies = !way.nvfp4   ? copies(kMxfp4, params.tensor.seed)
                     : way.square ? out.square_copies
                                  : out.row_copies;
        if (!out.problem.empty()) return out;
        for (std::size_t r = 0; r < 2; ++r) {
            out.cast[r] = cast_blocks(way, out.tensor[r], static_cast<std::uint64_t>(params.tensor.seed), 1);
            out.nearest[r] = way.stochastic ? cast_numbers(way, out.tensor[r]) : out.cast[r].numbers;
        }
        out.nvfp4 = nvfp4_, out.mxfp4 = mxfp4_, out.four_or_six = four_or_six_;
        if (out.tensor[0].picture)
            out.turned_back = rotated_back(out.cast[1].back, out.tensor[0].rows, out.tensor[0].cols, signs);
        return out;
    }

  private:
    void take(const Params& params, const RhtSigns& signs, Outcome& out) {
        if (drawn_ != params.tensor || signs_ != signs) {
            Tensor own = tensor_of(params.tensor);
            rows_ = own.rows, cols_ = own.cols;
            if (own.rows > kMostOwn || own.cols > kMostOwn)
                own = cut(own, std::min(own.rows, kMostOwn), std::min(own.cols, kMostOwn));
            problem_ = not_finite(own);
            if (problem_.empty() && own.cols < kBlock)
                problem_ = fmt::format("A block needs 16 columns; this tensor has {}.", own.cols);
            tensor_ =
                problem_.empty() ? pair_of(std::move(own), signs) : std::array{std::move(own), Tensor()};
            drawn_ = params.tensor, signs_ = signs;
            if (problem_.empty()) {
                nvfp4_ = both(kNvfp4, tensor_), mxfp4_ = both(kMxfp4, tensor_);
                four_or_six_ = both(kFourOrSix, tensor_);
            }
        }
        out.tensor = tensor_, out.problem = problem_, out.rows = rows_, out.cols = cols_;
        if (rows_ != tensor_[0].rows || cols_ != tensor_[0].cols)
            out.note = fmt::format("The first {}×{} of {}×{} elements.", tensor_[0].rows, tensor_[0].cols,
                                   rows_, cols_);
    }

    std::vector<Kind> kinds(const Params& params, const RhtSigns& signs) {
        std::vector<Kind> out;
        for (std::size_t i = 0; i < kKinds.size(); ++i) {
            Params each;
            each.tensor.kind = kKinds[i], each.tensor.seed = params.tensor.seed;
            each.signs = params.signs, each.sign_seed = params.sign_seed;
            if (each.tensor.kind == "lognormal") each.tensor.sigma = params.tensor.sigma;
            auto found = std::ranges::find(cached_, each, &std::pair<Params, Kind>::first);
            if (found == cached_.end()) {
                const auto tensors = pair_of(drawn(each.tensor), signs);
                if (cached_.size() >= 8 * kKinds.size()) cached_.clear();
                cached_.emplace_back(
                    each, Kind{kKinds[i], kLabels[i], both(kNvfp4, tensors), both(kMxfp4, tensors)});
                found = cached_.end() - 1;
            }
            out.push_back(found->second);
        }
        return out;
    }

    // The six tensors of the table are drawn once: other signs rotate the same tensors.
    const Tensor& drawn(const TensorSpec& spec) {
        auto found = std::ranges::find(table_, spec, &std::pair<TensorSpec, Tensor>::first);
        if (found == table_.end()) {
            if (table_.size() >= 2 * kKinds.size()) table_.clear();
            table_.emplace_back(spec, make_tensor(spec));
            found = table_.end() - 1;
        }
        return found->second;
    }

    Copies copies(const Way& way, int seed) {
        const std::pair key{way, seed};
        auto found = std::ranges::find(copies_, key, &std::pair<std::pair<Way, int>, Copies>::first);
        if (found == copies_.end()) {
            constexpr std::size_t kMostKept = 32;
            if (copies_.size() >= kMostKept) copies_.clear();
            if (weights_seed_ != seed) weights_ = weights_of(*(weights_seed_ = seed));
            copies_.emplace_back(key, weight_copies(way, weights_));
            found = copies_.end() - 1;
        }
        return found->second;
    }

    std::optional<TensorSpec> drawn_;
    RhtSigns signs_ = {};
    std::array<Tensor, 2> tensor_;
    std::array<Numbers, 2> nvfp4_ = {}, mxfp4_ = {}, four_or_six_ = {};  // of tensor_
    std::vector<std::pair<std::pair<Way, int>, Copies>> copies_;
    std::optional<int> weights_seed_;
    Tensor weights_;  // of weights_seed_
    std::string problem_;
    std::size_t rows_ = 0, cols_ = 0;
    std::vector<std::pair<Params, Kind>> cached_;
    std::vector<std::pair<TensorSpec, Tensor>> table_;
};

// The means of a tensor, seed and signs; the lines are kept while the switches change.
class MeanComputation {
  public:
    Means operator()(const Params& params) {
        const RhtSigns signs = params.sign_vector();
        Lines& lines = of(params, signs);
        Means out;
        out.known = true;
        out.params = params;
        out.gradient = gradient(params, signs);
        out.nvfp4 = lines.nvfp4, out.mxfp4 = lines.mxfp4, out.nvfp4_rotated = lines.nvfp4_rotated;
        out.nearest_db = lines.nearest_db;
        const Tensor& tensor = lines.tensor[params.rotates() ? 1 : 0];
        if (tensor.values.empty()) return out;
        Way way = params.way();
        way.stochastic = true;
        out.one_db = own(lines, params, way, 1).sqnr_db;
        if (params.rounding == "stochastic")
            out.mean_db = own(lines, params, way, params.casts).sqnr_db;
        else  // equal casts: their mean is each of them
            out.mean_db = cast_numbers(way, tensor).sqnr_db;
        return out;
    }

  private:
    struct Lines {
        TensorSpec spec;
        RhtSigns signs;
        std::array<Tensor, 2> tensor;
        MeanLine nvfp4, mxfp4, nvfp4_rotated;
        std::array<double, 2> nearest_db = {};
        // Of other ways: (way, rotated) -> its line of one and of `casts` casts.
        std::vector<std::pair<std::pair<Way, bool>, MeanLine>> own;
    };

    Lines& of(const Params& params, const RhtSigns& signs) {
        const auto found = std::ranges::find_if(
            kept_, [&](const Lines& l) { return l.spec == params.tensor && l.signs == signs; });
        if (found != kept_.end()) return *found;
        constexpr std::size_t kMostKept = 8;
        if (kept_.size() >= kMostKept) kept_.erase(kept_.begin());
        // If only the signs differ, everything that is not rotated is known.
        const auto same = std::ranges::find(kept_, params.tensor, &Lines::spec);
        std::optional<Lines> known;
        if (same != kept_.end()) known = *same;
        Lines& lines = kept_.emplace_back();
        if (known) {
            lines = std::move(*known);
            lines.signs = signs;
            std::erase_if(lines.own, [](const auto& own) { return own.first.second; });
            if (lines.tensor[0].values.empty()) return lines;
            lines.tensor[1] = rotated(lines.tensor[0], signs);
            lines.nvfp4_rotated = line({kNvfp4, &lines.tensor[1], powers_to(kGainCasts)}, params);
            return lines;
        }
        lines.spec = params.tensor, lines.signs = signs;
        Tensor own = tensor_of(params.tensor);
        if (own.rows > kSampled || own.cols > kSampled)
            own = cut(own, std::min(own.rows, kSampled), std::min(own.cols, kSampled));
        if (!not_finite(own).empty() || own.cols < kBlock) return lines;
        lines.tensor = pair_of(std::move(own), signs);
        const std::vector<int> powers = powers_to(kMostCasts);
        const std::array requests = {MeanRequest{kNvfp4, &lines.tensor[0], powers},
                                     MeanRequest{kMxfp4, &lines.tensor[0], powers},
                                     MeanRequest{kNvfp4, &lines.tensor[1], powers_to(kGainCasts)}};
        std::vector<MeanLine> drawn = mean_lines(requests, static_cast<std::uint64_t>(params.tensor.seed));
        lines.nvfp4 = std::move(drawn[0]), lines.mxfp4 = std::move(drawn[1]);
        lines.nvfp4_rotated = std::move(drawn[2]);
        lines.nearest_db = {cast_numbers(kNvfp4, lines.tensor[0]).sqnr_db,
                            cast_numbers(kMxfp4, lines.tensor[0]).sqnr_db};
        return lines;
    }

    static MeanLine line(const MeanRequest& request, const Params& params) {
        return mean_lines({&request, 1}, static_cast<std::uint64_t>(params.tensor.seed)).front();
    }

    static Numbers own(Lines& lines, const Params& params, const Way& way, int casts) {
        const bool turned = params.rotates();
        const auto has = [&](const MeanLine& line) {
            return std::ranges::find(line.n, casts) != line.n.end();
        };
        Way plain = way;
        plain.stochastic = false;
        const MeanLine* known = plain == kNvfp4              ? (turned ? &lines.nvfp4_rotated : &lines.nvfp4)
                                : plain == kMxfp4 && !turned ? &lines.mxfp4
                                                             : nullptr;
        if (known && has(*known)) return known->at(casts);
        const std::pair key{way, turned};
        for (auto& [of, line] : lines.own)
            if (of == key && has(line)) return line.at(casts);
        std::vector<int> at = {casts};
        for (int n = 1; n < casts; n *= 2) at.insert(at.end() - 1, n);
        lines.own.emplace_back(key, line({way, &lines.tensor[turned ? 1 : 0], at}, params));
        return lines.own.back().second.at(casts);
    }

    WeightGradient gradient(const Params& params, const RhtSigns& signs) {
        const std::pair key{params.tensor.seed, signs};
        if (!gradient_ || gradient_->first != key)
            gradient_ = std::pair{key, weight_gradient(params.tensor.seed, signs)};
        return gradient_->second;
    }

    static constexpr std::size_t kSampled =
        1024;  // rows and columns of an own tensor that are cast many times
    std::vector<Lines> kept_;
    std::optional<std::pair<std::pair<int, RhtSigns>, WeightGradient>> gradient_;
};

}  // namespace

std::span<const std::string_view> table_kinds() { return kKinds; }

Params of_means(Params params) {
    params.block_index = -1;
    if (params.rounding != "stochastic") params.casts = 16;  // equal casts
    return params;
}
Params of_casts(Params params) {
    params.casts = 16, params.block_index = -1;
    return params;
}

Outcome maps_of(const Params& params) {
    Outcome out;
    out.params = params;
    out.tensor = pair_of(tensor_of(params.tensor), params.sign_vector());
    for (std::size_t r = 0; r < 2; ++r)
        out.cast[r] =
            cast_blocks(params.way(), out.tensor[r], static_cast<std::uint64_t>(params.tensor.seed), 1);
    return out;
}

// The first update() computes: home makes every lab.
FourLab::FourLab() : casts_(Computation{}), means_(MeanComputation{}) { outcome_ = maps_of(params_); }

}  // namespace fp8lab::four
