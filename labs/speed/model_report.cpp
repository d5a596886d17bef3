// The metrics of L9.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "labs/speed/model.h"
#include "labs/speed/model_figures.h"

namespace fp8lab::speed {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

class Report {
  public:
    void number(std::string name, double value, std::string unit = {}) {
        all.push_back({.name = std::move(name), .value = value, .unit = std::move(unit)});
    }
    void word(std::string name, std::string text) {
        if (text.empty()) text = "none";
        all.push_back({.name = std::move(name), .text = std::move(text)});
    }
    std::vector<Metric> all;
};

void add_product(Report& out, const Product& product) {
    const std::string p = product.name + ".";
    const Ratio ratio = product.ratio();
    out.number(p + "bf16_ms", product.ms(false), "ms");
    out.number(p + "fp8_ms", product.ms(true), "ms");
    out.number(p + "ratio", ratio.value);
    out.number(p + "ratio_q1", ratio.q1);
    out.number(p + "ratio_q3", ratio.q3);
    out.number(p + "bf16_tflops", product.tflops(false), "TFLOP/s");
    out.number(p + "fp8_tflops", product.tflops(true), "TFLOP/s");
    out.number(p + "bf16_iqr_pct", product.bf16 ? iqr_pct(*product.bf16) : kAbsent, "%");
    out.number(p + "fp8_iqr_pct", product.fp8 ? iqr_pct(*product.fp8) : kAbsent, "%");
    out.number(p + "ai_bf16", product.ai_bf16, "FLOP/byte");
    out.number(p + "ai_fp8", product.ai_fp8, "FLOP/byte");
    out.number(p + "status", product.fp8 ? product.status() : kAbsent);
    out.word(p + "kernel", product.fp8 ? product.fp8->kernel : "");
}

void add_step(Report& out, const StepOutcome& step) {
    out.word("step.layers", step.found ? step_name(*step.found) : "");
    out.number("step.bf16_ms", step.found ? step.bf16.median_ms : kAbsent, "ms");
    out.number("step.fp8_ms", step.found ? step.fp8.median_ms : kAbsent, "ms");
    out.number("step.speedup", step.speedup);
    out.number("step.speedup_q1", step.speedup_q1);
    out.number("step.speedup_q3", step.speedup_q3);
    out.number("step.saved_pct", 100 * (1 - 1 / step.speedup), "%");
    out.number("gemm_share", step.share);
    out.number("gemm_ratio", step.ratio);
    out.number("amdahl", step.amdahl);
    out.number("amdahl_casts", step.amdahl_casts);
    out.number("amdahl_error_pct", step.error_pct, "%");
    out.number("amdahl_ceiling", step.ceiling);
    out.number("parts_over_step", step.parts_over_step);
}

}  // namespace

std::vector<Metric> SpeedLab::metrics() const {
    const Outcome& o = outcome_;
    Report out;
    for (const Product& product : o.products) add_product(out, product);
    out.number("roof_bf16", o.roofs.bf16, "TFLOP/s");
    out.number("roof_fp8", o.roofs.fp8, "TFLOP/s");
    out.number("roof_memory", o.roofs.memory, "TB/s");
    out.number("ridge_bf16", o.roofs.ridge_bf16(), "FLOP/byte");
    out.number("ridge_fp8", o.roofs.ridge_fp8(), "FLOP/byte");
    out.number("roof_fp8_of_datasheet_pct", o.sheet ? 100 * o.roofs.fp8 / o.sheet->fp8 : kAbsent, "%");
    out.number("left_of_ridge", o.roofs.ridge_bf16() / o.products.front().ai_bf16);
    out.number("notebook.ratio", o.notebook.ratio().value);
    out.number("notebook.left_of_ridge", o.roofs.ridge_bf16() / o.notebook.ai_bf16);
    out.number("casts_us", 1000 * o.cast_ms(), "\u00b5s");
    out.number("cast_x_us", o.x ? 1000 * o.x->median_ms : kAbsent, "\u00b5s");
    out.number("cast_x_both_us", o.x && o.x->both_ms > 0 ? 1000 * o.x->both_ms : kAbsent, "\u00b5s");
    out.number("ratio_with_casts", o.with_casts.value);
    out.number("crossover_m", o.sweep.crossover_m);
    out.number("m_at_1_5", o.sweep.m_at_1_5);
    add_step(out, o.step);
    out.number("pad_waste_pct", o.waste_pct(), "%");
    out.number("refused", o.refused());
    QkvPoint qkv{o.params.m, kAbsent, kAbsent};
    for (const QkvPoint& point : o.qkv)
        if (point.m == o.params.m) qkv = point;
    out.number("qkv.bf16_gain_pct", qkv.bf16_gain_pct, "%");
    out.number("qkv.fp8_gain_pct", qkv.fp8_gain_pct, "%");
    for (const FormatRow& row : o.formats) {
        const bool ran = row.time && row.time->ran();
        out.number("formats." + row.kind + "_tflops", ran ? row.time->tflops() : kAbsent, "TFLOP/s");
        out.number("formats." + row.kind + "_mb", row.time ? row.time->bytes / 1e6 : kAbsent, "MB");
        out.number("formats." + row.kind + "_status", row.time ? row.time->status : kAbsent);
    }
    out.number("zeros_gain_pct", o.zeros_gain_pct, "%");
    out.word("source", o.params.source);
    out.word("gpu", o.gpu);
    out.number("recorded", o.recorded ? 1 : 0);
    out.word("decision", decision_words(o));
    return out.all;
}

}  // namespace fp8lab::speed
