#include "labs/four/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "labs/seeded.h"

namespace fp8lab::four {
namespace {

constexpr LabInfo kInfo = {
    "four",
    12,
    "Four bits train",
    "Four bits that train",
    "Sixteen codes for a whole tensor. What do scales, rounding and rotations gain and cost?",
    25,
    "L6"};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

const LabInfo& FourLab::info() const { return kInfo; }

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

std::vector<Field> FourLab::fields_of(Params& p) {
    TensorSpec& tensor = p.tensor;
    Field kind = tensor_or_picture_field(tensor);
    std::erase_if(kind.choices, [](const Choice& choice) {
        const auto kinds = table_kinds();
        return choice.id != "picture" && std::ranges::find(kinds, choice.id) == kinds.end();
    });
    Field seed = tensor_field(tensor, "seed", true), sigma = tensor_field(tensor, "sigma", true);
    seed.min = 1, sigma.min = 0.5, sigma.max = 3;
    return {
        kind,
        choice({.name = "format",
                .label = "Format",
                .help = "MXFP4: 32 elements share a power of two, rounded up. NVFP4: 16 elements share an "
                        "E4M3 scale, "
                        "and the tensor has one in FP32."},
               &p.format, {{"mxfp4", "MXFP4"}, {"nvfp4", "NVFP4"}}),
        choice({.name = "block",
                .label = "Scale shared by",
                .help = "16×16 is for weights: W and its transpose then have the same scales. MXFP4: 1×32 "
                        "always. In "
                        "Transformer Engine disable_2d_quantization=True chooses 1×16."},
               &p.block, {{"1x16", "1×16"}, {"16x16", "16×16"}}),
        choice({.name = "rounding",
                .label = "Rounding",
                .help = "Stochastic rounding decides with 32 random bits per element; Blackwell’s "
                        "instruction has 8. In Transformer Engine disable_stochastic_rounding=True chooses "
                        "nearest."},
               &p.rounding, {{"nearest", "nearest"}, {"stochastic", "stochastic"}}),
        choice(
            {.name = "rht",
             .label = "Random Hadamard",
             .help =
                 "The rotation: 16 neighbours along a row times random signs and a Hadamard matrix over 4. "
                 "With on, the rotated map counts. In Transformer Engine disable_rht=True chooses off."},
            &p.rht, {{"off", "off"}, {"on", "on"}}),
        choice({.name = "target",
                .label = "Block amax becomes",
                .te_name = "4over6",
                .help = "What the amax of a block becomes before the cast. 4: the codes lie denser there. 4 "
                        "or 6: block "
                        "by block the one with the smaller squared error. NVFP4 only."},
               &p.target, {{"6", "6"}, {"4", "4"}, {"4or6", "4 or 6"}}),
        integer({.name = "casts",
                 .label = "Casts averaged",
                 .help = "With stochastic rounding: so many casts are averaged.",
                 .more = true},
                &p.casts, 1, kMostCasts, true),
        integer(
            {.name = "block_index",
             .label = "Marked block",
             .help =
                 "The block whose numbers are shown, row by row. −1: the first whose amax is above 6 units.",
             .more = true},
            &p.block_index, -1, 31),
        choice(
            {.name = "signs",
             .label = "Signs of the rotation",
             .help = "te: Transformer Engine’s vector. none: the Hadamard transform alone. drawn: at random.",
             .more = true},
            &p.signs, {{"te", "te"}, {"none", "none"}, {"drawn", "drawn"}}),
        integer({.name = "sign_seed", .label = "Seed of the signs", .help = "Of drawn signs.", .more = true},
                &p.sign_seed, 1, 99),
        sigma,
        seed,
        tensor_field(tensor, "file", true),
    };
}

std::string FourLab::why_not(std::string_view field) const {
    if (field == "block" && !params_.nvfp4()) return "OCP MX has no 2-D block.";
    if (field == "target" && !params_.nvfp4()) return "It belongs to NVFP4.";
    if (field == "casts" && params_.rounding != "stochastic") return "Equal casts have the mean of one.";
    if (field == "sign_seed" && params_.signs != "drawn") return "It belongs to drawn signs.";
    // The seed is of stochastic rounding, of W and of the table as well.
    if (field == "seed" || field == "sigma" || has_effect(params_.tensor, field)) return "";
    return "The tensor is your own.";
}

void FourLab::update() {
    if (!params_.nvfp4()) params_.block = "1x16", params_.target = "6";
    if (const Params casts = of_casts(params_); asked_ != casts) casts_.request(*(asked_ = casts));
    if (const Params means = of_means(params_); asked_means_ != means)
        means_.request(*(asked_means_ = means));
    if (auto outcome = casts_.take()) outcome_ = std::move(*outcome);
    if (auto means = means_.take()) mean_ = std::move(*means);
}

void FourLab::set_wake(std::function<void()> wake) {
    casts_.start_worker(wake);
    means_.start_worker(std::move(wake));
}

void FourLab::reset() { params_ = {}; }

std::size_t FourLab::blocks_shown() const {
    const Outcome& o = outcome_;
    const std::size_t width = o.params.nvfp4() ? kBlock : 2 * kBlock;
    const std::size_t across = std::min(o.tensor[0].cols, kMapCols) / width;
    return std::min(o.tensor[0].rows, kMapRows) * std::max<std::size_t>(across, 1);
}

std::size_t FourLab::marked_index() const {
    const std::size_t count = blocks_shown();
    if (params_.block_index >= 0) return std::min(static_cast<std::size_t>(params_.block_index), count - 1);
    const BlockCast& cast = outcome_.cast[outcome_.shown()];
    const Tensor& tensor = outcome_.tensor[outcome_.shown()];
    const std::size_t width = outcome_.params.nvfp4() ? kBlock : 2 * kBlock;
    const std::size_t across = std::max<std::size_t>(std::min(outcome_.tensor[0].cols, kMapCols) / width, 1);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t row = i / across, from = i % across * width;
        for (std::size_t c = from; c < std::min(from + width, tensor.cols); ++c)
            if (cast.clips(tensor.values[row * tensor.cols + c], cast.block_of(row, c))) return i;
    }
    return 0;
}

Marked FourLab::marked() const {
    Marked out;
    const Outcome& o = outcome_;
    if (!o.problem.empty()) return out;
    const BlockCast& cast = o.cast[o.shown()];
    const Tensor& tensor = o.tensor[o.shown()];
    const std::size_t width = o.params.nvfp4() ? kBlock : 2 * kBlock;
    const std::size_t across = std::max<std::size_t>(std::min(o.tensor[0].cols, kMapCols) / width, 1);
    const std::size_t index = marked_index();
    out.row = index / across, out.col = index % across * width;
    out.width = std::min(width, tensor.cols - out.col);
    out.block = cast.block_of(out.row, out.col);
    out.amax = cast.amaxes[out.block], out.unit = cast.units[out.block];
    out.code = cast.codes[out.block], out.target = cast.targets[out.block];
    out.scale = decode(find_format(o.params.nvfp4() ? "e4m3" : "e8m0"), out.code);
    const auto amax = static_cast<double>(out.amax);
    out.wanted = o.params.nvfp4() ? amax * static_cast<double>(cast.tensor_scale) / out.target : amax / 6;
    out.top = out.unit > 0 ? amax / static_cast<double>(out.unit) : 0;
    return out;
}

Recipe FourLab::recipe() const {
    Recipe out = parse_recipe(params_.nvfp4() ? "nvfp4" : "mxfp4");
    if (params_.nvfp4()) {
        out.square_weights = params_.block == "16x16";
        out.rht = params_.rotates();
        out.target = params_.way().target;
    }
    out.round_bwd = params_.rounding == "stochastic" ? Rounding::stochastic : Rounding::nearest;
    out.name = recipe_text(out);
    return out;
}

std::vector<Figure> FourLab::figures() const {
    const Marked block = marked();
    std::vector<Figure> out = {tiles_figure(outcome_, block), block_figure(outcome_, block),
                               data_figure(outcome_), mean_figure(mean_, params_)};
    out = of_seed(outcome_.params.tensor.seed, std::move(out), {"data"});  // always of drawn tensors
    const TensorSpec& drawn = outcome_.params.tensor;
    return has_effect(drawn, "seed") ? of_seed(drawn.seed, std::move(out), {"tiles", "block"}) : out;
}

Figure FourLab::thumbnail() const {
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

std::vector<Metric> FourLab::metrics() const {
    std::vector<Metric> out;
    const Outcome& o = outcome_;
    const auto add = [&](std::string name, double value, const char* unit = "") {
        out.push_back({.name = std::move(name), .value = value, .unit = unit});
    };
    const bool whole = o.problem.empty();
    const BlockCast& cast = o.cast[o.shown()];
    const auto known = [&](double value) { return whole ? value : kNan; };
    add("sqnr_db", known(cast.numbers.sqnr_db), "dB");
    add("zero_pct", known(cast.numbers.zero_pct), "%");
    add("gain_pct", known(cast.numbers.gain_pct), "%");
    add("clip_pct", known(cast.clip_pct), "%");
    add("bits", o.params.nvfp4() ? 4 + 8.0 / 16 : 4 + 8.0 / 32, "bit");
    add("scales", known(static_cast<double>(cast.grid.count())));
    const auto pair = [&](const std::string& format, const std::array<Numbers, 2>& numbers) {
        for (std::size_t r = 0; r < 2; ++r) {
            const std::string name = format + (r == 0 ? ".plain." : ".rht.");
            add(name + "sqnr_db", known(numbers[r].sqnr_db), "dB");
            add(name + "zero_pct", known(numbers[r].zero_pct), "%");
            add(name + "gain_pct", known(numbers[r].gain_pct), "%");
        }
    };
    pair("nvfp4", o.nvfp4), pair("mxfp4", o.mxfp4);
    const auto at = [&](const MeanLine& line, int n) {
        return line.n.empty() ? Numbers{kNan, kNan, kNan} : line.at(n);
    };
    add("nvfp4.sr.sqnr_db", at(mean_.nvfp4, kGainCasts).sqnr_db, "dB");
    add("nvfp4.sr.gain_pct", at(mean_.nvfp4, kGainCasts).gain_pct, "%");
    add("mxfp4.sr.sqnr_db", at(mean_.mxfp4, kGainCasts).sqnr_db, "dB");
    add("mxfp4.sr.gain_pct", at(mean_.mxfp4, kGainCasts).gain_pct, "%");
    add("nvfp4.sr_rht.gain_pct", at(mean_.nvfp4_rotated, kGainCasts).gain_pct, "%");
    add("nvfp4.46.sqnr_db", known(o.four_or_six[0].sqnr_db), "dB");
    add("nvfp4.46_rht.sqnr_db", known(o.four_or_six[1].sqnr_db), "dB");
    add("mean_db", known(mean_.mean_db), "dB");
    add("one_db", known(mean_.one_db), "dB");
    add("nearest_db", known(o.nearest[o.shown()].sqnr_db), "dB");
    add("w.copies_differ_pct", o.copies.differ_pct, "%");
    add("w.copies_sqnr_db", o.copies.apart_db, "dB");
    add("w.sqnr_db", o.copies.sqnr_db, "dB");
    add("w.square_costs_db", o.row_copies.sqnr_db - o.square_copies.sqnr_db, "dB");
    const Marked block = marked();
    add("block.amax", static_cast<double>(block.amax));
    add("block.scale_code", block.code);
    add("block.unit", static_cast<double>(block.unit));
    add("block.top", block.top);
    add("dw.plain_db", mean_.gradient.plain_db, "dB");
    add("dw.rht_db", mean_.gradient.both_db, "dB");
    add("dw.one_operand_db", mean_.gradient.one_db, "dB");
    out.push_back({.name = "recipe", .text = recipe_text(recipe())});
    if (!whole) out.push_back({.name = "problem", .text = o.problem});
    return out;
}

LabEntry entry() { return entry_of<FourLab>(kInfo); }

}  // namespace fp8lab::four
