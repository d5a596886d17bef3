// The part "qat" of L17: a trained multilayer perceptron is trained on with weights and inputs cast in the forward pass
// (quantization-aware training, Recipe::fake), on the labels and on the probabilities of the network in FP32, its teacher. Beside it
// what costs no training: to nearest, and GPTQ.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "labs/serve/model_network.h"
#include "labs/table/long.h"

namespace fp8lab::serve {

inline constexpr int kQatSeeds = 5;     // of the batches; a curve is their median
inline constexpr int kScoreEvery = 10;  // steps between points of a curve

struct QatSpec {
    NetworkSpec network = {};
    std::string scheme = "nvfp4";  // of weights and inputs
    int steps = 200;
    double lr = 5e-4;  // the first one; it falls by a cosine
    bool operator==(const QatSpec&) const = default;
};

// Divergence from the network in FP32, in nats, on its held-out rows.
struct QatCurve {
    std::vector<std::vector<double>> seeds;  // of each seed: at Qat::steps
    std::vector<double> median() const;      // empty: not trained yet
    double last(std::size_t seed) const { return seeds.at(seed).back(); }
};
struct Qat {
    QatSpec spec = {};
    std::string network = {}, data = {};
    std::vector<double> steps = {};  // 0, kScoreEvery, ..., spec.steps; empty: not computed
    double nearest = 0, gptq = 0;
    QatCurve labels = {}, teacher = {};
    bool is_complete() const { return teacher.seeds.size() == kQatSeeds; }
    const QatCurve& of(bool with_teacher) const { return with_teacher ? teacher : labels; }
};

// The recipe that casts as the scheme does: "nvfp4:fake=1:out=fp32". Throws usage_error: a scheme for weights only.
std::string fake_recipe(const std::string& scheme);

class QatMaker {
  public:
    // Throws usage_error: a model of tokens, a network that does not classify, or one without held-out rows, fake_recipe(). Error{failed}: a training became
    // non-finite.
    Qat operator()(const QatSpec& spec, const table::Told<Qat>& told);

  private:
    std::shared_ptr<const Served> served_;
};

std::string train_back_title(const Qat& qat, bool with_teacher);
Figure train_back_figure(const Qat& qat, bool with_teacher);

}  // namespace fp8lab::serve
