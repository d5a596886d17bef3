#include "core/inference/experts/routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/nn/recipe_casts.h"
#include "core/scaling/quantizer.h"

namespace fp8lab {
namespace {

const Recipe& reference_recipe() {
    static const Recipe kReference = parse_recipe("bf16");
    return kReference;
}

MoeShape shape_of(const TrainSpec& spec) {
    if (spec.model != "moe") throw usage_error("--model", spec.model + " has no experts to choose from");
    return moe_shape(spec);
}

Experts<float>::Hop cast_rows(const Recipe& recipe) {
    if (recipe.base == "bf16") return {};
    return [plan = cast_plan(recipe, TensorClass::x)](Matrix<float>& rows) {
        quantize(plan, rows.values, rows.values,
                 {.rows = rows.rows, .cols = rows.cols, .along = Along::cols, .with_stats = false});
    };
}

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void append(Matrix<float>& all, const Matrix<float>& more) {
    all.cols = more.cols, all.rows += more.rows;
    all.values.insert(all.values.end(), more.values.begin(), more.values.end());
}

}  // namespace

std::string routed_recipe(const std::string& layers, const std::string& router) {
    return router == Recipe().router ? layers : layers + ":router=" + router;
}

double RoutingChange::changed_pct() const { return mean(changed_pct_blocks); }

double RoutingChange::choice_share_pct() const { return 100 * (1 - divergence_kept / divergence); }

RoutingStudy::RoutingStudy(const TrainSpec& spec, const ArmCheckpoint& checkpoint, int batches)
    : spec_(spec),
      shape_(shape_of(spec)),
      model_(shape_),
      batches_(static_cast<std::size_t>(batches)),
      margins_(shape_.blocks) {
    if (swiglu_of(checkpoint) == SwigluForm::clamp)
        throw usage_error("--model", "was trained with act=clamp; choices are compared without limits");
    set_parameters(model_, checkpoint);
    const auto task = make_task(spec);
    for (std::size_t i = 0; i < batches_.size(); ++i) task->held_out(static_cast<int>(i), batches_[i]);
    entering_.resize(shape_.blocks), leaving_.resize(shape_.blocks);
    Pass pass = run(reference_recipe(), nullptr);
    choices_ = std::move(pass.choices);
    reference_ = reference_of(std::move(pass.logits), true, {});
}

void RoutingStudy::fix(const std::vector<Choices>* kept, std::size_t batch) {
    for (std::size_t b = 0; b < shape_.blocks; ++b) {
        if (!kept) {
            model_.experts(b).fix({});
            continue;
        }
        const std::size_t count = std::get<TokenBatch>(batches_[batch]).size() * shape_.active;
        const auto first = (*kept)[b].begin() + static_cast<std::ptrdiff_t>(batch * count);
        model_.experts(b).fix({first, first + static_cast<std::ptrdiff_t>(count)});
    }
}

RoutingStudy::Pass RoutingStudy::run(const Recipe& recipe, const std::vector<Choices>* kept) {
    RecipeCasts casts(recipe, model_.plan(), spec_.seed);
    casts.begin_evaluation();
    Pass out{.logits = {}, .choices = std::vector<Choices>(shape_.blocks)};
    const bool first = choices_.empty();
    for (std::size_t i = 0; i < batches_.size(); ++i) {
        fix(kept, i);
        append(out.logits, model_.forward(batches_[i], casts));
        for (std::size_t b = 0; b < shape_.blocks; ++b) {
            const auto& experts = model_.experts(b).routing().experts;
            out.choices[b].insert(out.choices[b].end(), experts.begin(), experts.end());
            if (!first) continue;
            note_margins(b);
            entering_[b].push_back(model_.experts(b).x());
            leaving_[b].push_back(model_.experts(b).output());
        }
    }
    return out;
}

void RoutingStudy::note_margins(std::size_t block) {
    const Experts<float>& experts = model_.experts(block);
    const Matrix<float>& p = experts.routing().p;
    std::vector<float> scores(shape_.experts);
    for (std::size_t t = 0; t < p.rows; ++t) {
        for (std::size_t e = 0; e < shape_.experts; ++e) scores[e] = p.row(t)[e] + experts.bias()[e];
        std::ranges::sort(scores, std::ranges::greater());
        margins_[block].push_back(shape_.active < shape_.experts
                                      ? scores[shape_.active - 1] - scores[shape_.active]
                                      : scores[shape_.active - 1]);
    }
}

RoutingChange RoutingStudy::change(const Recipe& recipe) {
    RoutingChange out;
    const Pass pass = run(recipe, nullptr);
    out.divergence = divergence_of(reference_, pass.logits);
    out.divergence_kept = divergence_of(reference_, run(recipe, &choices_).logits);
    const std::size_t k = shape_.active;
    for (std::size_t b = 0; b < shape_.blocks; ++b) {
        std::vector<bool>& changed = out.changed_blocks.emplace_back();
        for (std::size_t t = 0; t < tokens(); ++t)
            changed.push_back(
                !std::is_permutation(choices_[b].begin() + static_cast<std::ptrdiff_t>(t * k),
                                     choices_[b].begin() + static_cast<std::ptrdiff_t>((t + 1) * k),
                                     pass.choices[b].begin() + static_cast<std::ptrdiff_t>(t * k)));
        out.changed_pct_blocks.push_back(100 * static_cast<double>(std::ranges::count(changed, true)) /
                                         static_cast<double>(tokens()));
    }
    return out;
}

double RoutingStudy::margin_below_pct(double limit) const {
    double below = 0, all = 0;
    for (const auto& block : margins_) {
        below += static_cast<double>(
            std::ranges::count_if(block, [&](float m) { return static_cast<double>(m) < limit; }));
        all += static_cast<double>(block.size());
    }
    return 100 * below / all;
}

std::vector<int> RoutingStudy::rows(std::size_t block, std::size_t count) const {
    std::vector<int> out(shape_.experts);
    for (const std::uint16_t expert : std::span(choices_[block]).first(count * shape_.active)) ++out[expert];
    return out;
}

std::vector<double> RoutingStudy::hop_error_pct(const Recipe& gemm, const Recipe& sent, const Recipe& back) {
    RecipeCasts casts(gemm, model_.plan(), spec_.seed);
    casts.begin_evaluation();
    std::vector<double> out;
    Matrix<float> y;
    for (std::size_t b = 0; b < shape_.blocks; ++b) {
        Experts<float>& experts = model_.experts(b);
        experts.set_hop(cast_rows(sent), cast_rows(back));
        double off = 0, size = 0;
        for (std::size_t i = 0; i < batches_.size(); ++i) {
            fix(&choices_, i);
            experts.x() = entering_[b][i];
            experts.forward(casts, multiply_nt<float>, y);
            for (std::size_t at = 0; at < y.values.size(); ++at) {
                const double wanted = static_cast<double>(leaving_[b][i].values[at]),
                             d = static_cast<double>(y.values[at]) - wanted;
                off += d * d, size += wanted * wanted;
            }
        }
        experts.set_hop({}, {});
        out.push_back(100 * std::sqrt(off / size));
    }
    return out;
}

}  // namespace fp8lab
