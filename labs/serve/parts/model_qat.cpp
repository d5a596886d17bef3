#include "labs/serve/parts/model_qat.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/inference/methods/lowered_mlp.h"
#include "core/scaling/recipe_lists.h"
#include "core/trainer/arm.h"

namespace fp8lab::serve {
namespace {

TrainSpec training_of(const QatSpec& spec, const TrainedMlp& network, bool with_teacher, std::uint64_t seed) {
    const std::string file = file_of(spec.network).string();
    TrainOptions options;
    options.task = option_in(network.command_line, "--task");
    options.layers = network.sizes();
    options.activation = to_string(network.activation);
    options.loss = "cross-entropy";
    options.lr = spec.lr;
    options.steps = spec.steps;
    options.warmup = 0;
    options.schedule = "cosine";
    options.seed = seed;
    options.init_from = file;
    if (with_teacher) options.teacher = file;
    options.recipes = fake_recipe(spec.scheme);
    return make_train_spec(options);
}

// The parameters of an arm: w1 b1 w2 b2 ...
TrainedMlp weights_of(const Arm& arm, TrainedMlp network) {
    const ArmCheckpoint now = arm.checkpoint();
    for (std::size_t l = 0; l < network.layers.size(); ++l) {
        network.layers[l].w.values = now.parameters.at(2 * l).values;
        network.layers[l].b = now.parameters.at(2 * l + 1).values;
    }
    return network;
}

// `told` hears each step. The divergence after each kScoreEvery steps, and at the start.
std::vector<double> train(const TrainSpec& spec, const Served& served, const Mix& mix,
                          const std::function<void(int step)>& told) {
    const auto task = make_task(spec);
    Arm arm(spec, spec.arms.front());
    MicroBatch batch;
    std::vector<double> out;
    for (int step = 0;; ++step) {
        if (step % kScoreEvery == 0 || step == spec.steps)
            out.push_back(divergence_of(
                served.reference, run_lowered(weights_of(arm, *served.mlp), served.data.test.x, mix).y));
        if (step == spec.steps) return out;
        told(step);
        task->draw(step, batch.batch);
        arm.compute_gradients({&batch, 1}, step, std::nullopt);
        arm.update(step, learning_rate(spec, step));
        if (arm.stopped())
            throw Error(ErrorKind::failed, "qat",
                        fmt::format("the training became non-finite in step {}", step));
    }
}

}  // namespace

std::string fake_recipe(const std::string& scheme) {
    for (const ListedRecipe& listed : listed_recipes(RecipeList::activations)) {
        if (listed.id != scheme) continue;
        Recipe recipe = listed.recipe;
        recipe.fake = true;
        recipe.out = OutType::fp32;
        return recipe_text(recipe);
    }
    throw usage_error(scheme, "is for weights only; this part casts the inputs too");
}

std::vector<double> QatCurve::median() const {
    std::vector<double> out;
    if (seeds.empty()) return out;
    for (std::size_t at = 0; at < seeds.front().size(); ++at) {
        std::vector<double> values;
        for (const auto& seed : seeds) values.push_back(seed[at]);
        std::ranges::sort(values);
        out.push_back(values[values.size() / 2]);
    }
    return out;
}

Qat QatMaker::operator()(const QatSpec& spec, const table::Told<Qat>& told) {
    if (!served_ || served_->spec != spec.network) served_ = make_digits(spec.network);
    const TrainedMlp& network = *served_->mlp;
    if (!network.classifies)
        throw usage_error(served_->name, "does not classify; this part compares probabilities");
    if (!served_->held_out)
        throw usage_error(served_->name,
                          "was trained on files, so that this part has no rows to score it on besides those "
                          "that it would train on");
    fake_recipe(spec.scheme);  // before anything is computed
    const LowFormat& format = find_low_format(spec.scheme, "scheme");
    const Mix mix = uniform_mix(network.layers.size(), format);
    const Matrix<float>& x = served_->data.test.x;
    Qat out{.spec = spec, .network = served_->name, .data = served_->data_name()};
    for (int step = 0; step < spec.steps; step += kScoreEvery) out.steps.push_back(step);
    out.steps.push_back(spec.steps);
    out.nearest = divergence_of(served_->reference, run_lowered(network, x, mix).y);
    const LoweredMlp gptq = lower_mlp(network, served_->data.train_x, mix, {.method = Method::gptq});
    out.gptq = divergence_of(served_->reference, run_lowered(network, gptq, x));
    const int all = 2 * kQatSeeds * spec.steps;
    int trained = 0;
    for (int seed = 1; seed <= kQatSeeds; ++seed)
        for (const bool with_teacher : {false, true}) {
            const TrainSpec training =
                training_of(spec, network, with_teacher, static_cast<std::uint64_t>(seed));
            QatCurve& curve = with_teacher ? out.teacher : out.labels;
            curve.seeds.push_back(train(training, *served_, mix, [&](int step) {
                told.share(static_cast<std::size_t>(trained + step), static_cast<std::size_t>(all));
            }));
            trained += spec.steps;
            if (with_teacher && seed < kQatSeeds) told.so_far(out);
        }
    return out;
}

}  // namespace fp8lab::serve
