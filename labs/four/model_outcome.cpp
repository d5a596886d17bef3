// What follows from the switches, without the means of many casts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <list>

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

// What was computed, by what it was computed from: up to `most`, then the oldest is forgotten.
template <class Key, class Value>
class Kept {
  public:
    explicit Kept(std::size_t most) : most_(most) {}
    // `make` computes what is not known. The reference holds until `most` others are asked for.
    template <class Make>
    Value& of(const Key& key, const Make& make) {
        const auto known = std::ranges::find(all_, key, &std::pair<Key, Value>::first);
        if (known != all_.end()) return known->second;
        if (all_.size() >= most_) all_.pop_front();
        return all_.emplace_back(key, make()).second;
    }

  private:
    std::size_t most_;
    std::list<std::pair<Key, Value>> all_;
};

// Most switches leave the tensor and the six rows of the figure "data" as they are. Lives with the job, used by its
// thread only.
class Computation {
  public:
    Outcome operator()(const Params& params) {
        const RhtSigns signs = params.sign_vector();
        Outcome out = subjects_.of({params.tensor, signs}, [&] { return subject(params.tensor, signs); });
        out.params = params;
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
        if (out.tensor[0].picture)
            out.turned_back = rotated_back(out.cast[1].back, out.tensor[0].rows, out.tensor[0].cols, signs);
        return out;
    }

  private:
    // What no switch changes.
    static Outcome subject(const TensorSpec& spec, const RhtSigns& signs) {
        Outcome out;
        Tensor own = tensor_of(spec);
        out.rows = own.rows, out.cols = own.cols;
        if (own.rows > kMostOwn || own.cols > kMostOwn) {
            own = cut(own, std::min(own.rows, kMostOwn), std::min(own.cols, kMostOwn));
            out.note =
                fmt::format("The first {}×{} of {}×{} elements.", own.rows, own.cols, out.rows, out.cols);
        }
        out.problem = not_finite(own);
        if (out.problem.empty() && own.cols < kBlock)
            out.problem = fmt::format("A block needs 16 columns; this tensor has {}.", own.cols);
        if (!out.problem.empty()) {
            out.tensor[0] = std::move(own);
            return out;
        }
        out.tensor = pair_of(std::move(own), signs);
        out.nvfp4 = both(kNvfp4, out.tensor), out.mxfp4 = both(kMxfp4, out.tensor);
        out.four_or_six = both(kFourOrSix, out.tensor);
        return out;
    }

    std::vector<Kind> kinds(const Params& params, const RhtSigns& signs) {
        std::vector<Kind> out;
        for (std::size_t i = 0; i < kKinds.size(); ++i) {
            TensorSpec spec = Params().tensor;
            spec.kind = kKinds[i], spec.seed = params.tensor.seed;
            if (spec.kind == "lognormal") spec.sigma = params.tensor.sigma;
            out.push_back(rows_.of({spec, signs}, [&] {
                // Other signs rotate the same tensor.
                const auto pair = pair_of(drawn_.of(spec, [&] { return make_tensor(spec); }), signs);
                return Kind{kKinds[i], kLabels[i], both(kNvfp4, pair), both(kMxfp4, pair)};
            }));
        }
        return out;
    }

    Copies copies(const Way& way, int seed) {
        return copies_.of({way, seed}, [&] {
            return weight_copies(way, weights_.of(seed, [&] { return weights_of(seed); }));
        });
    }

    Kept<std::pair<TensorSpec, RhtSigns>, Outcome> subjects_{1};
    Kept<std::pair<TensorSpec, RhtSigns>, Kind> rows_{8 * kKinds.size()};
    Kept<TensorSpec, Tensor> drawn_{2 * kKinds.size()};
    Kept<std::pair<Way, int>, Copies> copies_{32};
    Kept<int, Tensor> weights_{1};
};

// The means of a tensor, seed and signs; the lines are kept while the switches change.
class MeanComputation {
  public:
    Means operator()(const Params& params) {
        const TensorSpec& spec = params.tensor;
        const RhtSigns signs = params.sign_vector();
        Means out{.known = true, .params = params};
        out.gradient = gradients_.of({spec.seed, signs}, [&] { return weight_gradient(spec.seed, signs); });
        Lines& plain = plain_.of(spec, [&] { return plain_lines(spec); });
        out.nvfp4 = plain.nvfp4, out.mxfp4 = plain.mxfp4, out.nearest_db = plain.nearest_db;
        if (plain.tensor.values.empty()) return out;
        Lines& turned = turned_.of({spec, signs}, [&] {
            Lines lines{.tensor = rotated(plain.tensor, signs)};
            lines.nvfp4 = line(kNvfp4, lines.tensor, powers_to(kGainCasts), spec.seed);
            return lines;
        });
        out.nvfp4_rotated = turned.nvfp4;
        Lines& counts = params.rotates() ? turned : plain;
        const Way way = params.way();
        out.one_db = mean_of(counts, way, 1, spec.seed).sqnr_db;
        // Equal casts: their mean is each of them.
        out.mean_db = way.stochastic ? mean_of(counts, way, params.casts, spec.seed).sqnr_db
                                     : cast_numbers(way, counts.tensor).sqnr_db;
        return out;
    }

  private:
    struct Lines {
        Tensor tensor;
        MeanLine nvfp4 = {}, mxfp4 = {};
        std::array<double, 2> nearest_db = {};
        // Of other ways, of 1 to so many casts.
        Kept<std::pair<Way, int>, MeanLine> others{32};
    };

    static Lines plain_lines(const TensorSpec& spec) {
        Lines out;
        Tensor own = tensor_of(spec);
        if (own.rows > kSampled || own.cols > kSampled)
            own = cut(own, std::min(own.rows, kSampled), std::min(own.cols, kSampled));
        if (!not_finite(own).empty() || own.cols < kBlock) return out;
        out.tensor = std::move(own);
        const std::vector<int> powers = powers_to(kMostCasts);
        const std::array requests = {MeanRequest{kNvfp4, &out.tensor, powers},
                                     MeanRequest{kMxfp4, &out.tensor, powers}};
        std::vector<MeanLine> drawn = mean_lines(requests, static_cast<std::uint64_t>(spec.seed));
        out.nvfp4 = std::move(drawn[0]), out.mxfp4 = std::move(drawn[1]);
        out.nearest_db = {cast_numbers(kNvfp4, out.tensor).sqnr_db, cast_numbers(kMxfp4, out.tensor).sqnr_db};
        return out;
    }

    static MeanLine line(const Way& way, const Tensor& tensor, std::vector<int> at, int seed) {
        const MeanRequest request{way, &tensor, std::move(at)};
        return mean_lines({&request, 1}, static_cast<std::uint64_t>(seed)).front();
    }

    static Numbers mean_of(Lines& lines, Way way, int casts, int seed) {
        way.stochastic = false;  // mean_lines() casts so whatever it says
        for (const auto& [known, of] : {std::pair{kNvfp4, &lines.nvfp4}, {kMxfp4, &lines.mxfp4}})
            if (way == known && std::ranges::find(of->n, casts) != of->n.end()) return of->at(casts);
        return lines.others
            .of({way, casts},
                [&] {
                    std::vector<int> at = powers_to(casts - 1);
                    at.push_back(casts);
                    return line(way, lines.tensor, at, seed);
                })
            .at(casts);
    }

    static constexpr std::size_t kSampled =
        1024;  // rows and columns of an own tensor that are cast many times
    Kept<TensorSpec, Lines> plain_{8};
    Kept<std::pair<TensorSpec, RhtSigns>, Lines> turned_{8};
    Kept<std::pair<int, RhtSigns>, WeightGradient> gradients_{1};
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

std::function<Outcome(const Params&)> casts_maker() { return Computation(); }
std::function<Means(const Params&)> means_maker() { return MeanComputation(); }

}  // namespace fp8lab::four
