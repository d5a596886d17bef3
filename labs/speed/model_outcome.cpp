#include "labs/speed/model_outcome.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fp8lab::speed {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr Ratio kNoRatio{kNothing, kNothing, kNothing};

// Elements of x (m, k), w (n, k) and dy (m, n).
struct Sizes {
    double x, w, dy;
};
Sizes sizes_of(const Layer& l) {
    const double m = l.m, n = l.n, k = l.k;
    return {m * k, n * k, m * n};
}

// Rows, columns and contraction of a product: fprop m x n x k, dgrad m x k x n, wgrad n x k x m.
std::array<int, 3> shape_of(std::string_view product, const Layer& l) {
    if (product == "fprop") return {l.m, l.n, l.k};
    if (product == "dgrad") return {l.m, l.k, l.n};
    return {l.n, l.k, l.m};
}

double scales_of(std::string_view product, const Layer& layer, std::string_view recipe) {
    const auto [rows, columns, contraction] = shape_of(product, layer);
    const auto blocks = [](int length) { return std::ceil(length / 128.0); };
    if (recipe == "rowwise") return double(rows) + columns;
    if (recipe != "block128") return 2;
    const double a = rows * blocks(contraction);
    // Only the operand w has square blocks; wgrad does not read it.
    return a + (product == "wgrad" ? columns : blocks(columns)) * blocks(contraction);
}

int out_bytes(std::string_view product, const std::optional<GridPoint>& point) {
    if (point && !point->out.empty()) return point->out == "f32" ? 4 : 2;
    return product == "wgrad" ? 4 : 2;
}

Product product_of(std::size_t index, const LayerRows& rows, const Params& params, const Layer& layer,
                   const Layer& fp8_layer) {
    Product out;
    out.name = kProducts.at(index);
    out.layer = layer, out.fp8_layer = fp8_layer;
    out.shape = shape_of(out.name, layer);
    out.groups = params.groups;
    out.bf16 = rows.bf16.at(index), out.fp8 = rows.fp8.at(index);
    out.ai_bf16 = intensity(out.name, layer, false, params.recipe, out_bytes(out.name, out.bf16));
    out.ai_fp8 = intensity(out.name, fp8_layer, true, params.recipe, out_bytes(out.name, out.fp8));
    return out;
}

// fprop of a layer that is shown beside the chosen one: as it is, one product a call, on random data.
Product beside(const Params& params, const Source& source, const Layer& layer) {
    Params plain = params;
    plain.groups = 1, plain.data = "normal";
    return product_of(0, rows_of(source, plain, layer), plain, layer, layer);
}

struct Casts {
    double median = 0, q1 = 0, q3 = 0;  // NaN: not measured
};
Casts casts_of(const Params& params, const std::optional<GridCast>& x, const std::optional<GridCast>& w) {
    Casts out;
    const auto add = [&](const std::optional<GridCast>& cast) {
        out.median += cast ? cast->median_ms : kNothing;
        out.q1 += cast ? cast->q1_ms : kNothing;
        out.q3 += cast ? cast->q3_ms : kNothing;
    };
    if (params.casts != "none") add(x);
    if (params.casts == "x+w") add(w);
    return out;
}

Ratio with_casts(const std::optional<GridPoint>& bf16, const std::optional<GridPoint>& fp8,
                 const Casts& casts) {
    if (!bf16 || !fp8 || std::isnan(casts.median)) return kNoRatio;
    return ratio_of(*bf16, *fp8, casts.median, casts.q1, casts.q3);
}

Sweep sweep_of(const Params& params, const Source& source) {
    Sweep out{{}, kNothing, kNothing};
    Params plain = params;
    plain.groups = 1, plain.data = "normal";
    for (const int m : recorded_m(source, plain)) {
        const LayerRows rows = rows_of(source, plain, {m, params.n, params.k});
        const auto &bf16 = rows.bf16.front(), &fp8 = rows.fp8.front();
        out.points.push_back({m, bf16 && bf16->ran() ? bf16->median_ms : kNothing,
                              bf16 && fp8 ? ratio_of(*bf16, *fp8) : kNoRatio,
                              with_casts(bf16, fp8, casts_of(plain, rows.x, rows.w))});
    }
    for (auto point = out.points.rbegin(); point != out.points.rend(); ++point) {
        if (!(point->with_casts.value >= 1)) break;
        out.crossover_m = point->m;
    }
    const auto enough = std::ranges::find_if(
        out.points, [](const SweepPoint& point) { return point.with_casts.value >= 1.5; });
    if (enough != out.points.end()) out.m_at_1_5 = enough->m;
    return out;
}

std::vector<QkvPoint> qkv_of(const Params& params, const GemmGrid* grid) {
    std::vector<QkvPoint> out;
    if (!grid) return out;
    for (const GridQkv& row : grid->qkv) {
        if (row.d != params.k || !row.three.ran() || !row.one.ran()) continue;
        auto at = std::ranges::find(out, row.m, &QkvPoint::m);
        if (at == out.end()) at = out.insert(out.end(), {row.m, kNothing, kNothing});
        const double gain = 100 * (row.three.median_ms / row.one.median_ms - 1);
        (row.kind == "bf16" ? at->bf16_gain_pct : at->fp8_gain_pct) = gain;
    }
    std::ranges::sort(out, {}, &QkvPoint::m);
    return out;
}

std::vector<AlignCell> align_of(const GemmGrid* grid) {
    std::vector<AlignCell> out;
    if (!grid || grid->align.empty()) return out;
    for (const std::string_view product : kProducts) {
        for (const char dimension : {'M', 'N', 'K'}) {
            Layer layer{kAlignEdge, kAlignEdge, kAlignEdge};
            ++(dimension == 'M' ? layer.m : dimension == 'N' ? layer.n : layer.k);
            AlignCell cell{std::string(product), dimension, std::nullopt};
            if (const GridAlign* point = grid->aligned(product, layer.m, layer.n, layer.k, "fp8"))
                cell.fp8 = *point;
            out.push_back(std::move(cell));
        }
    }
    return out;
}

std::vector<FormatRow> formats_of(const Params& params, const GemmGrid* grid) {
    // TFLOPS and MB as the chapter's two tables print them for 4096^3.
    std::vector<FormatRow> out = {{"fp32", "FP32", {}, 225, 512},         {"tf32", "TF32", {}},
                                  {"fp16", "FP16", {}, 450, 256},         {"bf16", "BF16", {}},
                                  {"fp8-fast", "FP8 fast", {}, 450, 128}, {"fp8", "FP8 promoted", {}},
                                  {"fp8-16f", "FP8 16-bit sums", {}},     {"mxfp8", "MXFP8", {}},
                                  {"nvfp4", "NVFP4", {}, 1600, 64}};
    for (FormatRow& row : out) {
        if (params.n3 != "4096") row.printed_tflops = row.printed_mb = 0;
        if (!grid) continue;
        for (const GridFormat& time : grid->formats)
            if (time.kind == row.kind && std::to_string(time.n) == params.n3) row.time = time;
    }
    return out;
}

double zeros_gain(const GemmGrid* grid) {
    if (grid)
        for (const GridZeros& row : grid->zeros)
            if (row.kind == "bf16" && row.ran() && row.random_ms > 0)
                return 100 * (row.random_ms / row.median_ms - 1);
    return kNothing;
}

}  // namespace

Ratio ratio_of(const GridTime& bf16, const GridTime& fp8, double more, double more_q1, double more_q3) {
    if (!bf16.ran() || !fp8.ran()) return kNoRatio;
    return {bf16.median_ms / (fp8.median_ms + more), bf16.q1_ms / (fp8.q3_ms + more_q3),
            bf16.q3_ms / (fp8.q1_ms + more_q1)};
}

double iqr_pct(const GridTime& time) {
    return time.ran() ? 100 * (time.q3_ms - time.q1_ms) / time.median_ms : kNothing;
}

double intensity(std::string_view product, const Layer& layer, bool fp8, std::string_view recipe,
                 int out_bytes) {
    const auto [x, w, dy] = sizes_of(layer);
    const double flop = 2.0 * layer.m * layer.n * layer.k, e = fp8 ? 1 : 2;
    const double operands = product == "fprop" ? x + w : product == "dgrad" ? dy + w : dy + x;
    const double result = product == "fprop" ? dy : product == "dgrad" ? x : w;
    const double scales = fp8 ? scales_of(product, layer, recipe) : 0;
    return flop / (e * operands + out_bytes * result + 4 * scales);
}

bool Product::ran(bool of_fp8) const {
    const auto& point = of_fp8 ? fp8 : bf16;
    return point && point->ran();
}
double Product::ms(bool of_fp8) const { return ran(of_fp8) ? (of_fp8 ? fp8 : bf16)->median_ms : kNothing; }
double Product::tflops(bool of_fp8) const {
    const Layer& l = of_fp8 ? fp8_layer : layer;
    return 2.0 * groups * l.m * l.n * l.k / ms(of_fp8) / 1e9;
}
Ratio Product::ratio() const { return bf16 && fp8 ? ratio_of(*bf16, *fp8) : kNoRatio; }

double Outcome::cast_ms() const { return casts_of(params, x, w).median; }

double Outcome::waste_pct() const {
    const Layer l = params.layer(), p = padded(l);
    return 100 * (double(p.m) * p.n * p.k / (double(l.m) * l.n * l.k) - 1);
}

int Outcome::refused() const {
    return static_cast<int>(
        std::ranges::count_if(products, [](const Product& product) { return product.status() != 0; }));
}

bool Outcome::any_time() const {
    return std::ranges::any_of(
        products, [](const Product& p) { return p.ran(false) || p.ran(true) || p.status() != 0; });
}

StepOutcome step_of(const Params& params, const Source& source);  // model_step.cpp

const RecordedInfer* token_of(const Source& source, ServedWeights weights) {
    if (!source.recording) return nullptr;
    const auto& all = source.recording->infer;
    const auto found = std::ranges::find_if(all, [&](const RecordedInfer& run) {
        const InferCase& of = run.of;
        return of.batch == 1 && of.tokens == 1 && of.formats.weights == weights &&
               of.formats.cache == ServedCache::bf16;
    });
    return found == all.end() ? nullptr : &*found;
}

Outcome outcome_of(const Params& params, const Source& source, const Source& over) {
    Outcome out;
    out.params = params;
    out.recorded = source.recorded();
    out.gpu = source.gpu();
    out.date = source.recording ? source.recording->date : "";
    const Layer layer = params.layer(), wide = params.pad ? padded(layer) : layer;
    const LayerRows rows =
        params.pad ? padded_rows_of(source, params, layer) : rows_of(source, params, layer);
    for (std::size_t i = 0; i < kProducts.size(); ++i)
        out.products.at(i) = product_of(i, rows, params, layer, wide);
    out.notebook = beside(params, source, kNotebook);
    out.middle = beside(params, source, kMiddle);
    out.token_bf16 = token_of(source, ServedWeights::bf16);
    out.token_fp8 = token_of(source, ServedWeights::weight_only);
    out.roofs = roofs_of(source, params);
    out.over_roofs = roofs_of(over, params);
    out.over_gpu = short_gpu_name(over.gpu());
    out.sheet = datasheet(out.gpu);
    out.all_m = recorded_m(source, params);
    out.all_layers = recorded_layers(source);
    out.x = rows.x, out.w = rows.w;
    out.with_casts = with_casts(rows.bf16.front(), rows.fp8.front(), casts_of(params, rows.x, rows.w));
    out.sweep = sweep_of(params, source);
    out.over_sweep = sweep_of(params, over);
    out.step = step_of(params, source);
    out.qkv = qkv_of(params, source.grid());
    out.align = align_of(source.grid());
    out.formats = formats_of(params, source.grid());
    out.zeros_gain_pct = zeros_gain(source.grid());
    out.drift_pct = source.grid() ? source.grid()->drift_pct : 0;
    return out;
}

}  // namespace fp8lab::speed
