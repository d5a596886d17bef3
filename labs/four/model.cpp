#include "labs/four/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "labs/seeded.h"

namespace fp8lab::four {

using table::known, table::MetricRow;

const LabInfo Four::kInfo = {
    "four",
    12,
    "Four bits train",
    "Four bits that train",
    "Sixteen codes for a whole tensor. What do scales, rounding and rotations gain and cost?",
    25,
    "L6"};

std::span<const table::Experiment<Four>> Four::experiments() {
    static constexpr std::array<table::Experiment<Four>, 1> kOne = {
        {{.figure_ids = {}, .figures = &Four::figures, .metrics = &Four::metrics}}};
    return kOne;
}

Way Params::way() const {
    return {.nvfp4 = nvfp4(),
            .square = nvfp4() && block == "16x16",
            .stochastic = rounding == "stochastic",
            .target = !nvfp4() || target == "6" ? Nvfp4Target::six
                      : target == "4"           ? Nvfp4Target::four
                                                : Nvfp4Target::four_or_six};
}

RhtSigns Params::sign_vector() const {
    if (signs == "te") return te_signs();
    return signs == "none" ? no_signs() : drawn_signs(static_cast<std::uint64_t>(sign_seed));
}

void Four::settle() {
    if (!params.nvfp4()) params.block = "1x16", params.target = "6";
}

std::size_t Outcome::blocks_across() const {
    return std::max<std::size_t>(std::min(tensor[0].cols, kMapCols) / block_width(), 1);
}
std::size_t Outcome::blocks_shown() const { return std::min(tensor[0].rows, kMapRows) * blocks_across(); }

std::size_t Four::marked_index() const {
    const Outcome& o = *outcome;
    const std::size_t count = o.blocks_shown(), across = o.blocks_across(), width = o.block_width();
    if (params.block_index >= 0) return std::min(static_cast<std::size_t>(params.block_index), count - 1);
    const BlockCast& cast = o.cast[o.shown()];
    const Tensor& tensor = o.tensor[o.shown()];
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t row = i / across, from = i % across * width;
        for (std::size_t c = from; c < std::min(from + width, tensor.cols); ++c)
            if (cast.clips(tensor.values[row * tensor.cols + c], cast.block_of(row, c))) return i;
    }
    return 0;
}

Marked Four::marked() const {
    Marked out;
    const Outcome& o = *outcome;
    if (!o.problem.empty()) return out;
    const BlockCast& cast = o.cast[o.shown()];
    const std::size_t index = marked_index();
    out.row = index / o.blocks_across(), out.col = index % o.blocks_across() * o.block_width();
    out.width = std::min(o.block_width(), o.tensor[o.shown()].cols - out.col);
    out.block = cast.block_of(out.row, out.col);
    out.amax = cast.amaxes[out.block], out.unit = cast.units[out.block];
    out.code = cast.codes[out.block], out.target = cast.targets[out.block];
    out.scale = decode(find_format(o.params.nvfp4() ? "e4m3" : "e8m0"), out.code);
    const auto amax = static_cast<double>(out.amax);
    out.wanted = o.params.nvfp4() ? amax * static_cast<double>(cast.tensor_scale) / out.target : amax / 6;
    out.top = out.unit > 0 ? amax / static_cast<double>(out.unit) : 0;
    return out;
}

Recipe Four::recipe() const {
    Recipe out = parse_recipe(params.nvfp4() ? "nvfp4" : "mxfp4");
    if (params.nvfp4()) {
        out.square_weights = params.block == "16x16";
        out.rht = params.rotates();
        out.target = params.way().target;
    }
    out.round_bwd = params.rounding == "stochastic" ? Rounding::stochastic : Rounding::nearest;
    out.name = recipe_text(out);
    return out;
}

std::vector<Figure> Four::figures() const {
    const Marked block = marked();
    std::vector<Figure> out = {tiles_figure(*outcome, block), block_figure(*outcome, block),
                               data_figure(*outcome), mean_figure(*means, params)};
    out = of_seed(outcome->params.tensor.seed, std::move(out), {"data"});  // always of drawn tensors
    const TensorSpec& drawn = outcome->params.tensor;
    return has_effect(drawn, "seed") ? of_seed(drawn.seed, std::move(out), {"tiles", "block"}) : out;
}

Figure Four::thumbnail() const {
    const Outcome small = maps_of({});
    Figure figure = tiles_figure(small, {});
    figure.title.clear();
    std::erase_if(figure.series,
                  [](const Series& series) { return std::holds_alternative<TextMark>(series.shape); });
    const TilesLayout layout = tiles_layout(small);
    figure.x.range = Range{layout.scales[0], layout.cells[0] + static_cast<double>(layout.cols)};
    figure.y.range = Range{0, layout.height};
    return figure;
}

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr Numbers kNoNumbers = {kNan, kNan, kNan};

void add_numbers(std::vector<MetricRow>& out, const std::string& prefix, const Numbers& numbers) {
    out.push_back(known(prefix + "sqnr_db", numbers.sqnr_db, "dB"));
    out.push_back(known(prefix + "zero_pct", numbers.zero_pct, "%"));
    out.push_back(known(prefix + "gain_pct", numbers.gain_pct, "%"));
}

// Of the tensor: NaN where it has no maps.
void add_casts(std::vector<MetricRow>& out, const Outcome& o) {
    const bool whole = o.problem.empty();
    const BlockCast& cast = o.cast[o.shown()];
    const auto of = [&](const Numbers& numbers) { return whole ? numbers : kNoNumbers; };
    add_numbers(out, "", of(cast.numbers));
    out.push_back(known("clip_pct", whole ? cast.clip_pct : kNan, "%"));
    out.push_back(known("bits", o.params.nvfp4() ? 4 + 8.0 / 16 : 4 + 8.0 / 32, "bit"));
    out.push_back(known("scales", whole ? static_cast<double>(cast.grid.count()) : kNan));
    add_numbers(out, "nvfp4.plain.", of(o.nvfp4[0]));
    add_numbers(out, "nvfp4.rht.", of(o.nvfp4[1]));
    add_numbers(out, "mxfp4.plain.", of(o.mxfp4[0]));
    add_numbers(out, "mxfp4.rht.", of(o.mxfp4[1]));
}

// Of many casts, beside those of one.
void add_means(std::vector<MetricRow>& out, const Means& means, const Outcome& o) {
    const bool whole = o.problem.empty();
    const auto add = [&](const char* name, double value, const char* unit) {
        out.push_back(known(name, value, unit));
    };
    const auto at = [](const MeanLine& line) { return line.n.empty() ? kNoNumbers : line.at(kGainCasts); };
    add("nvfp4.sr.sqnr_db", at(means.nvfp4).sqnr_db, "dB");
    add("nvfp4.sr.gain_pct", at(means.nvfp4).gain_pct, "%");
    add("mxfp4.sr.sqnr_db", at(means.mxfp4).sqnr_db, "dB");
    add("mxfp4.sr.gain_pct", at(means.mxfp4).gain_pct, "%");
    add("nvfp4.sr_rht.gain_pct", at(means.nvfp4_rotated).gain_pct, "%");
    add("nvfp4.46.sqnr_db", whole ? o.four_or_six[0].sqnr_db : kNan, "dB");
    add("nvfp4.46_rht.sqnr_db", whole ? o.four_or_six[1].sqnr_db : kNan, "dB");
    add("mean_db", whole ? means.mean_db : kNan, "dB");
    add("one_db", whole ? means.one_db : kNan, "dB");
    add("nearest_db", whole ? o.nearest[o.shown()].sqnr_db : kNan, "dB");
}

}  // namespace

std::vector<MetricRow> Four::metrics() const {
    std::vector<MetricRow> out;
    const Outcome& o = *outcome;
    const Marked block = marked();
    add_casts(out, o);
    add_means(out, *means, o);
    const auto add = [&](const char* name, double value, const char* unit = "") {
        out.push_back(known(name, value, unit));
    };
    add("w.copies_differ_pct", o.copies.differ_pct, "%");
    add("w.copies_sqnr_db", o.copies.apart_db, "dB");
    add("w.sqnr_db", o.copies.sqnr_db, "dB");
    add("w.square_costs_db", o.row_copies.sqnr_db - o.square_copies.sqnr_db, "dB");
    add("block.amax", static_cast<double>(block.amax));
    add("block.scale_code", block.code);
    add("block.unit", static_cast<double>(block.unit));
    add("block.top", block.top);
    add("dw.plain_db", means->gradient.plain_db, "dB");
    add("dw.rht_db", means->gradient.both_db, "dB");
    add("dw.one_operand_db", means->gradient.one_db, "dB");
    out.push_back(table::known_word("recipe", recipe_text(recipe())));
    if (!o.problem.empty()) out.push_back(table::known_word("problem", o.problem));
    return out;
}

LabEntry entry() { return entry_of<FourLab>(Four::kInfo); }

}  // namespace fp8lab::four
