// L6, "One scale, many scales": a matrix under all ways to share scales, its blocks drawn, and the copy for
// the transposed product beside it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "labs/blocks/model_schemes.h"
#include "labs/table/table_lab.h"

namespace fp8lab::blocks {

struct Params {
    std::string scheme = "tensor";  // a family
    std::string rule = "up";        // of MX
    bool pow2 = false;              // of the FP32 scales
    std::string maps = "error";     // error transpose
    std::string element = "e4m3";
    TensorSpec tensor{.size = 1, .rows = 256, .cols = 256};
    std::string scheme_id() const { return find_family(scheme).has_mx_rule() ? scheme + "-" + rule : scheme; }
    bool operator==(const Params&) const = default;
};

// A matrix as cells to draw, at most kMost in each direction, each for `height` x `width` elements; a picture has
// a cell for each pixel.
struct CellGrid {
    static constexpr std::size_t kMost = 64;
    std::size_t rows = 0, cols = 0, height = 1, width = 1;
};

struct Maps {
    CellGrid grid;
    // (rows, cols) of the grid: log2 of the largest |x|; log2 of what the scales make the largest value that
    // fits, of the copy along columns and of the one along rows; log2 of the relative error; the share of
    // elements, in %, that the two copies have not in common. NaN: all 0, or no error.
    std::vector<double> magnitude, top, top_by_rows, error, difference;
    double binades = 0;  // between the smallest and the largest magnitude
};

struct Contender {
    Scheme scheme;
    Score score;
};

struct Outcome {
    Tensor tensor;
    std::vector<Contender> contenders;  // one a scheme
    std::size_t chosen = 0;
    Copy by_cols, by_rows;  // of the chosen one
    Maps maps;
};

// One block of the chosen scheme.
struct Block {
    std::size_t row = 0, col = 0, rows = 0, cols = 0;  // its elements
    double amax = 0, scale = 0, top = 0;               // top: the largest |x| that fits
    double sqnr_db = 0, underflow = 0, saturated = 0;  // counts of elements
};

// The tensor of the call before is kept: most sliders leave it as it is.
class Compute {
  public:
    Outcome operator()(const Params& params);

  private:
    std::optional<TensorSpec> drawn_;
    Tensor tensor_;
};

struct Blocks {
    static const LabInfo kInfo;
    using Params = blocks::Params;
    static std::vector<table::Row> rows(Params& params);
    static std::span<const table::Experiment<Blocks>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&outcome}; }
    Figure thumbnail() const;
    // Of every family, with the element, the rule and the rounding of scales that are chosen.
    std::vector<std::string> recipes() const;
    // The block of an element; of the copy along rows if `by_rows`.
    Block block_at(std::size_t row, std::size_t col, bool by_rows = false) const;

    Params params;
    table::Computed<Params, Outcome> outcome{"", [this] { return params; }, Compute(), table::When::at_once};

  private:
    // Three maps, "magnitude" "scales" "error", of a picture "picture" "cast" "error", or "scales" "scales_by_rows"
    // "difference", and "schemes".
    std::vector<Figure> figures() const;
    std::vector<table::MetricRow> metrics() const;
};
using BlocksLab = table::TableLab<Blocks>;

Maps make_maps(const Tensor& tensor, const Scheme& scheme, const Copy& by_cols, const Copy& by_rows);
std::vector<Figure> map_figures(const Outcome& outcome, const Params& params);
Figure schemes_figure(const Outcome& outcome);

}  // namespace fp8lab::blocks
