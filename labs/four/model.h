// L12, "Four bits that train": NVFP4 and MXFP4 with the techniques of NVIDIA's training recipe: 16x16 scales, stochastic
// rounding, the random Hadamard transform (RHT), 4 or 6. Everything is cast on the CPU, bit for bit.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "labs/four/model_cast.h"
#include "labs/four/model_mean.h"
#include "labs/table/table_lab.h"

namespace fp8lab::four {

inline constexpr std::size_t kMapRows = 16, kMapCols = 32;  // what the maps show
inline constexpr std::size_t kBlock = 16;      // columns of NVFP4's block; MXFP4's has two of them
inline constexpr std::size_t kMostOwn = 4096;  // rows and columns of an own tensor that are used

struct Params {
    TensorSpec tensor{.kind = "swiglu_h", .size = 1, .sigma = 1.5, .seed = 1, .rows = 256, .cols = 256};
    std::string format = "nvfp4", block = "1x16", rounding = "nearest", rht = "on", target = "6";
    int casts = 16;
    int block_index = -1;  // 0 to 31; -1: the first that saturates
    std::string signs = "te";
    int sign_seed = 1;
    bool operator==(const Params&) const = default;

    bool nvfp4() const { return format == "nvfp4"; }
    bool rotates() const { return rht == "on"; }
    Way way() const;
    RhtSigns sign_vector() const;
};

// A row of the figure "data": NVFP4 1x16 and MXFP4 1x32, nearest, [0] as it is, [1] rotated.
struct Kind {
    std::string_view id, label;  // "swiglu_h", "SwiGLU h"
    std::array<Numbers, 2> nvfp4 = {}, mxfp4 = {};
};

struct Outcome {
    Params params = {};
    std::array<Tensor, 2> tensor;                                     // as it is, rotated
    std::array<BlockCast, 2> cast;                                    // with the switches
    std::array<Numbers, 2> nearest = {};                              // with the switches, but nearest
    std::array<Numbers, 2> nvfp4 = {}, mxfp4 = {}, four_or_six = {};  // 1x16, 1x32, 1x16; nearest
    std::vector<float> turned_back;            // of a picture: the rotated cast, rotated back
    Copies copies, row_copies, square_copies;  // with the switches; 1x16; 16x16
    std::vector<Kind> kinds;
    std::string problem = {};        // why there are no maps, as a sentence; the own tensor's
    std::string note = {};           // what was left out
    std::size_t rows = 0, cols = 0;  // of the own tensor before it was cut

    std::size_t shown() const { return params.rotates() ? 1 : 0; }  // which of the two counts
    // Of the blocks that the maps show: columns of one, how many side by side, how many in all.
    std::size_t block_width() const { return params.nvfp4() ? kBlock : 2 * kBlock; }
    std::size_t blocks_across() const;
    std::size_t blocks_shown() const;  // 32, of MXFP4 16
};

// What many casts show.
struct Means {
    bool known = false;  // false before the first result
    Params params = {};
    MeanLine nvfp4 = {}, mxfp4 = {}, nvfp4_rotated = {};  // 1x16, 1x32, 1x16; as it is, as it is, rotated
    std::array<double, 2> nearest_db = {};                // NVFP4, MXFP4, as it is
    double mean_db = 0, one_db = 0;                       // with the switches: of `casts` casts, of one
    WeightGradient gradient = {};
};

// The marked block, in the map that counts.
struct Marked {
    std::size_t row = 0, col = 0, width = 0, block = 0;
    float amax = 0, unit = 0, scale = 0;  // scale: decoded E4M3, of MXFP4 the power of two
    std::uint8_t code = 0, target = 6;
    double wanted = 0;  // the scale before it is rounded
    double top = 0;     // amax / unit
};

// model_outcome.cpp. What casts and means depend on: the rest as by default.
Params of_casts(Params params);
Params of_means(Params params);
// They keep what other switches leave as it is.
std::function<Outcome(const Params&)> casts_maker();
std::function<Means(const Params&)> means_maker();
Outcome maps_of(const Params& params);            // tensor and casts alone; of a generated tensor
std::span<const std::string_view> table_kinds();  // the rows of the figure "data"

struct Four {
    static const LabInfo kInfo;
    using Params = four::Params;
    Four() { outcome.begin_with(maps_of(params)); }  // home makes every lab
    static std::vector<table::Row> rows(Params& params);
    // "tiles", "block", "data" and "mean".
    static std::span<const table::Experiment<Four>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&outcome, &means}; }
    Figure thumbnail() const;
    void settle();  // MXFP4 has neither 16x16 nor another target

    Marked marked() const;
    std::size_t marked_index() const;  // 0 to 31
    std::vector<std::string> recipes() const { return {recipe_text(recipe())}; }
    Recipe recipe() const;  // what the switches say, as a recipe of a training

    Params params;
    table::Computed<Params, Outcome> outcome{"", [this] { return of_casts(params); }, casts_maker()};
    table::Computed<Params, Means> means{"", [this] { return of_means(params); }, means_maker()};

  private:
    std::vector<Figure> figures() const;
    std::vector<table::MetricRow> metrics() const;
};
using FourLab = table::TableLab<Four>;

// model_figures.cpp, model_charts.cpp
std::string tiles_title(const Outcome& outcome);
std::string data_title(const std::vector<Kind>& kinds);
std::string mean_title(const Means& means);
std::string format_name(const Params& params);  // "NVFP4"
Figure tiles_figure(const Outcome& outcome, const Marked& marked);
Figure block_figure(const Outcome& outcome, const Marked& marked);
Figure data_figure(const Outcome& outcome);
Figure mean_figure(const Means& means, const Params& params);
// Where the maps are in the figure "tiles": x of the scales and of the first cell.
struct TilesLayout {
    bool picture = false;
    double scales[2] = {0, 0}, cells[2] = {0, 0}, end = 0, height = 0;
    std::size_t rows = 0, cols = 0;
    int scale_columns = 0;
};
TilesLayout tiles_layout(const Outcome& outcome);
// "38", "0.4", "−0.17": percent as the screen shows it; a dash for NaN.
std::string pct_text(double pct, int decimals);
std::string db_text(double db);  // "21.0", "no signal", "exact"

}  // namespace fp8lab::four
