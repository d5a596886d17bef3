// The feed-forward part of a block of a mixture of experts: model.h.
#pragma once

#include <functional>
#include <optional>

#include "core/nn/models/decoder/gated_mlp.h"

namespace fp8lab {

enum class Balance { bias, loss, none };

// Which experts a pass chose, `active` for each token, the best first.
template <class T>
struct Routing {
    Matrix<T> p;                         // (tokens, experts)
    std::vector<std::uint16_t> experts;  // tokens * active
    std::vector<T> gates;                // beside them
};

struct MoeShape;

template <class T>
class Experts final : public FeedForward<T> {
  public:
    Experts(const MoeShape& shape, const ModelPlan& plan, std::size_t block);  // 1-based

    Matrix<T>& x() override { return router_.x; }
    void forward(GemmCasts<T>& casts, Product<T> product, Matrix<T>& y) override;
    void backward(const Matrix<T>& dy, GemmCasts<T>& casts, Matrix<T>& dx) override;
    void list(std::vector<Parameter<T>>& parameters, std::vector<const Matrix<T>*>& tensors) override;
    void initialise(const InitialWeights<T>& weights) override;

    void begin_step(int step);
    void after_update();
    // The GEMM of the router, where the last pass had a logit that is not finite.
    std::optional<std::uint16_t> undecided() const;

    const std::vector<T>& bias() const { return bias_; }
    const Routing<T>& routing() const { return routing_; }  // of the last forward()
    const Matrix<T>& output() const { return y_; }          // of the last forward(), rounded
    // Tokens of each expert in the last forward().
    std::vector<std::size_t> rows() const;
    // From here on passes take these experts, tokens * active; gates are computed. Empty: as the router says.
    void fix(std::vector<std::uint16_t> experts) { fixed_ = std::move(experts); }
    // What is done to the rows that are sent to an expert, and to those that come back. Empty: nothing.
    using Hop = std::function<void(Matrix<T>& rows)>;
    void set_hop(Hop sent, Hop back) { sent_ = std::move(sent), back_ = std::move(back); }

  private:
    struct Expert {
        GatedMlp<T> mlp;
        std::vector<std::uint32_t> rows = {};   // tokens
        std::vector<std::uint32_t> slots = {};  // of routing_.gates
        Matrix<T> y = {}, dy = {}, dx = {};
    };
    void route(GemmCasts<T>& casts, Product<T> product);
    void choose(std::size_t token);
    void weigh(std::size_t token);  // the gates of its experts
    void assign();
    void run(Expert& expert, GemmCasts<T>& casts, Product<T> product);
    void run_backward(Expert& expert, const Matrix<T>& dy, GemmCasts<T>& casts, Matrix<T>& dx);
    void route_backward();  // dgates_ -> router_.dy
    void add_balance();
    void note_empty(Expert& expert, bool backward, GemmCasts<T>& casts) const;

    const std::size_t d_, count_, active_;
    const Balance balance_;
    const T bias_rate_, loss_weight_;
    const bool empty_rolls_;
    const int starve_from_, starve_to_;
    Linear<T> router_;
    std::vector<T> bias_, no_gradient_;
    std::vector<Expert> experts_;
    std::optional<GatedMlp<T>> shared_;
    std::uint16_t router_gemm_;
    bool starves_ = false, finite_ = true;
    std::vector<std::size_t> step_rows_;  // of all backward passes of this step
    Routing<T> routing_;
    std::vector<std::uint16_t> fixed_;
    Hop sent_, back_;
    std::vector<T> dgates_;
    Matrix<T> y_, part_;
};

}  // namespace fp8lab
