#include "core/nn/models/moe/experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/nn/models/decoder/initial_weights.h"
#include "core/nn/models/gemm_span.h"
#include "core/nn/models/moe/model.h"
#include "core/nn/ops/gate_rows.h"
#include "core/nn/ops/loops.h"

namespace fp8lab {
namespace {

constexpr double kRouterSigma = 0.16;

// body(row) for every row of `cols` elements; each is done by one thread.
template <class Body>
void for_rows(std::size_t rows, std::size_t cols, const Body& body) {
    parallel_for(rows, loop_grain(cols), [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r) body(r);
    });
}

template <class T>
void add_row(std::span<T> to, std::span<const T> from, T factor) {
    for (std::size_t c = 0; c < to.size(); ++c) to[c] += factor * from[c];
}

template <class T>
void set_zero(Matrix<T>& m, std::size_t rows, std::size_t cols) {
    m.resize(rows, cols);
    std::ranges::fill(m.values, T{0});
}

}  // namespace

template <class T>
Experts<T>::Experts(const MoeShape& shape, const ModelPlan& plan, std::size_t block)
    : d_(shape.d),
      count_(shape.experts),
      active_(shape.active),
      balance_(shape.balance),
      bias_rate_(static_cast<T>(shape.bias_rate)),
      loss_weight_(static_cast<T>(shape.loss_weight)),
      empty_rolls_(shape.empty_rolls),
      starve_from_(shape.starve_from),
      starve_to_(shape.starve_to),
      router_(tensor_of(plan, block, ".router.x")),
      bias_(count_),
      no_gradient_(count_),
      router_gemm_(plan.tensor(router_.x_id).gemm),
      step_rows_(count_) {
    router_.w = router_.dw = Matrix<T>(count_, d_);
    const auto part = [&](const std::string& name, std::size_t ffn) {
        return GatedMlp<T>(d_, ffn, tensor_of(plan, block, name + ".gate_up.x"),
                           tensor_of(plan, block, name + ".down.x"));
    };
    experts_.reserve(count_);  // parameters are pointed to
    for (std::size_t e = 0; e < count_; ++e)
        experts_.push_back({.mlp = part(".e" + std::to_string(e), shape.ffn)});
    if (shape.shared > 0) shared_.emplace(part(".shared", shape.shared * shape.ffn));
}

template <class T>
void Experts<T>::list(std::vector<Parameter<T>>& parameters, std::vector<const Matrix<T>*>& tensors) {
    router_.list(parameters, tensors);
    parameters.push_back({bias_, no_gradient_});
    for (Expert& expert : experts_) expert.mlp.list(parameters, tensors);
    if (shared_) shared_->list(parameters, tensors);
}

template <class T>
void Experts<T>::initialise(const InitialWeights<T>& weights) {
    weights.draw(router_, kRouterSigma);
    std::ranges::fill(bias_, T{0});
    for (Expert& expert : experts_) expert.mlp.initialise(weights);
    if (shared_) shared_->initialise(weights);
}

template <class T>
void Experts<T>::begin_step(int step) {
    starves_ = step >= starve_from_ && step < starve_to_;
    std::ranges::fill(step_rows_, 0);
}

template <class T>
void Experts<T>::after_update() {
    if (balance_ != Balance::bias) return;
    const std::size_t all = std::accumulate(step_rows_.begin(), step_rows_.end(), std::size_t{0});
    for (std::size_t e = 0; e < count_; ++e) {
        const std::size_t mine = step_rows_[e] * count_;
        if (mine < all) bias_[e] += bias_rate_;
        if (mine > all) bias_[e] -= bias_rate_;
    }
}

template <class T>
std::optional<std::uint16_t> Experts<T>::undecided() const {
    if (finite_) return std::nullopt;
    return router_gemm_;
}

template <class T>
std::vector<std::size_t> Experts<T>::rows() const {
    std::vector<std::size_t> out;
    for (const Expert& expert : experts_) out.push_back(expert.rows.size());
    return out;
}

template <class T>
void Experts<T>::forward(GemmCasts<T>& casts, Product<T> product, Matrix<T>& y) {
    route(casts, product);
    assign();
    set_zero(y_, router_.x.rows, d_);
    for (Expert& expert : experts_) run(expert, casts, product);
    if (shared_) {
        shared_->x() = router_.x;
        shared_->forward(casts, product, part_);
        for (std::size_t i = 0; i < y_.values.size(); ++i) y_.values[i] += part_.values[i];
    }
    casts.round_output(y_);
    y = y_;
}

template <class T>
void Experts<T>::route(GemmCasts<T>& casts, Product<T> product) {
    Matrix<T>& p = routing_.p;
    {
        const PassSpan<T> pass(casts, "fprop", router_.x_id);
        const Matrix<T>& input = casts.operand(router_.x_id, Along::cols, router_.x);
        pass.gemm(input, casts.operand(router_.w_id, Along::cols, router_.w),
                  [&](const auto& a, const auto& b) { product(a, b, p); });
    }
    finite_ = std::ranges::all_of(p.values, [](T logit) { return std::isfinite(logit); });
    routing_.experts.resize(p.rows * active_);
    routing_.gates.resize(p.rows * active_);
    for_rows(p.rows, count_ * active_, [&](std::size_t token) {
        const std::span<T> row = p.row(token);
        exponential_row(row.data(), count_, largest(row.data(), count_));
        const T total = sum(row.data(), count_);
        for (T& value : row) value /= total;
        if (fixed_.empty())
            choose(token);
        else
            std::copy_n(fixed_.begin() + static_cast<std::ptrdiff_t>(token * active_), active_,
                        routing_.experts.begin() + static_cast<std::ptrdiff_t>(token * active_));
        weigh(token);
    });
}

// A score that is NaN is below all others, so that the experts differ in any case.
template <class T>
void Experts<T>::choose(std::size_t token) {
    const std::span<const T> p = routing_.p.row(token);
    const std::span chosen = std::span(routing_.experts).subspan(token * active_, active_);
    for (std::size_t k = 0; k < active_; ++k) {
        std::optional<std::size_t> best;
        for (std::size_t e = starves_ ? 1 : 0; e < count_; ++e) {
            if (std::ranges::find(chosen.first(k), e) != chosen.first(k).end()) continue;
            if (!best || p[e] + bias_[e] > p[*best] + bias_[*best] || std::isnan(p[*best])) best = e;
        }
        chosen[k] = static_cast<std::uint16_t>(*best);
    }
}

template <class T>
void Experts<T>::weigh(std::size_t token) {
    T total = 0;
    for (std::size_t k = token * active_; k < (token + 1) * active_; ++k) {
        routing_.gates[k] = routing_.p.row(token)[routing_.experts[k]];
        total += routing_.gates[k];
    }
    for (T& gate : std::span(routing_.gates).subspan(token * active_, active_))
        gate = total > 0 || std::isnan(total) ? gate / total : T{1} / static_cast<T>(active_);
}

template <class T>
void Experts<T>::assign() {
    for (Expert& expert : experts_) expert.rows.clear(), expert.slots.clear();
    for (std::size_t slot = 0; slot < routing_.experts.size(); ++slot) {
        Expert& expert = experts_[routing_.experts[slot]];
        expert.rows.push_back(static_cast<std::uint32_t>(slot / active_));
        expert.slots.push_back(static_cast<std::uint32_t>(slot));
    }
}

template <class T>
void Experts<T>::run(Expert& expert, GemmCasts<T>& casts, Product<T> product) {
    Matrix<T>& x = expert.mlp.x();
    x.resize(expert.rows.size(), d_);
    if (expert.rows.empty()) return note_empty(expert, false, casts);
    for_rows(x.rows, d_,
             [&](std::size_t i) { std::ranges::copy(router_.x.row(expert.rows[i]), x.row(i).begin()); });
    if (sent_) sent_(x);
    expert.mlp.forward(casts, product, expert.y);
    if (back_) back_(expert.y);
    for_rows(x.rows, d_, [&](std::size_t i) {
        add_row<T>(y_.row(expert.rows[i]), expert.y.row(i), routing_.gates[expert.slots[i]]);
    });
}

// What is left from a pass with rows is no tensor of this one.
template <class T>
void Experts<T>::note_empty(Expert& expert, bool backward, GemmCasts<T>& casts) const {
    for (Linear<T>* layer : {&expert.mlp.gate_up, &expert.mlp.down}) {
        Matrix<T>& tensor = backward ? layer->dy : layer->x;
        tensor.resize(0, tensor.cols);
        if (backward) std::ranges::fill(layer->dw.values, T{0});
        if (empty_rolls_) casts.note_empty(backward ? layer->dy_id : layer->x_id);
    }
}

template <class T>
void Experts<T>::backward(const Matrix<T>& dy, GemmCasts<T>& casts, Matrix<T>& dx) {
    set_zero(dx, dy.rows, d_);
    dgates_.resize(routing_.gates.size());
    for (std::size_t e = count_; e-- > 0;) run_backward(experts_[e], dy, casts, dx);
    for (std::size_t e = 0; e < count_; ++e) step_rows_[e] += experts_[e].rows.size();
    route_backward();
    router_.backward(casts, part_);
    for (std::size_t i = 0; i < dx.values.size(); ++i) dx.values[i] += part_.values[i];
    if (shared_) {
        shared_->backward(dy, casts, part_);
        for (std::size_t i = 0; i < dx.values.size(); ++i) dx.values[i] += part_.values[i];
    }
    casts.round_output(dx);
}

template <class T>
void Experts<T>::run_backward(Expert& expert, const Matrix<T>& dy, GemmCasts<T>& casts, Matrix<T>& dx) {
    if (expert.rows.empty()) return note_empty(expert, true, casts);
    expert.dy.resize(expert.rows.size(), d_);
    for_rows(expert.rows.size(), d_, [&](std::size_t i) {
        const std::span<const T> of_token = dy.row(expert.rows[i]);
        const T gate = routing_.gates[expert.slots[i]];
        for (std::size_t c = 0; c < d_; ++c) expert.dy.row(i)[c] = gate * of_token[c];
        dgates_[expert.slots[i]] = dot(of_token.data(), expert.y.row(i).data(), d_);
    });
    casts.round_output(expert.dy);
    expert.mlp.backward(expert.dy, casts, expert.dx);
    for_rows(expert.rows.size(), d_,
             [&](std::size_t i) { add_row<T>(dx.row(expert.rows[i]), expert.dx.row(i), T{1}); });
}

// The gates are a softmax over the logits of the chosen: dlogit_e = g_e (dg_e - sum g dg).
template <class T>
void Experts<T>::route_backward() {
    set_zero(router_.dy, router_.x.rows, count_);
    for_rows(router_.dy.rows, active_, [&](std::size_t token) {
        T mean = 0;
        for (std::size_t k = token * active_; k < (token + 1) * active_; ++k)
            mean += routing_.gates[k] * dgates_[k];
        for (std::size_t k = token * active_; k < (token + 1) * active_; ++k)
            router_.dy.row(token)[routing_.experts[k]] = routing_.gates[k] * (dgates_[k] - mean);
    });
    if (balance_ == Balance::loss) add_balance();
}

// The loss's second term has the derivative loss_weight E / tokens p_e (f_e - sum f p) to the logit of e.
template <class T>
void Experts<T>::add_balance() {
    const auto tokens = static_cast<T>(router_.x.rows);
    std::vector<T> share;
    for (const Expert& expert : experts_)
        share.push_back(static_cast<T>(expert.rows.size()) / (tokens * static_cast<T>(active_)));
    const T factor = loss_weight_ * static_cast<T>(count_) / tokens;
    for_rows(router_.dy.rows, count_, [&](std::size_t token) {
        const std::span<const T> p = routing_.p.row(token);
        const T mean = std::inner_product(p.begin(), p.end(), share.begin(), T{0});
        for (std::size_t e = 0; e < count_; ++e)
            router_.dy.row(token)[e] += factor * p[e] * (share[e] - mean);
    });
}

template class Experts<float>;
template class Experts<double>;

}  // namespace fp8lab
