#include "labs/experts/model_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/nn/model.h"
#include "core/nn/models/moe/model.h"
#include "core/trainer/arm.h"

namespace fp8lab::experts {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kTail = 100;

int option_value(std::string_view name, const std::string& text) {
    for (const ModelOption& option : find_model("moe").options)
        if (option.name == name) return option.read(text);
    throw usage_error(std::string(name), "is no option of a mixture of experts");
}

double tail_loss(const std::vector<double>& loss) {
    const std::size_t count = std::min(kTail, loss.size());
    return std::accumulate(loss.end() - static_cast<std::ptrdiff_t>(count), loss.end(), 0.0) /
           static_cast<double>(count);
}

// Which records are those of expert 1's dy, with their blocks.
struct Watched {
    std::size_t block, record;
};
std::vector<Watched> watched(const ModelPlan& plan, std::size_t blocks) {
    std::vector<Watched> out;
    for (std::size_t b = 0; b < blocks; ++b)
        for (const char* gemm : {"gate_up", "down"}) {
            const std::string name = fmt::format("{}.e0.{}.dy", b + 1, gemm);
            const auto hit = std::ranges::find(plan.tensors, name, &OperandSpec::name);
            out.push_back({b, static_cast<std::size_t>(hit - plan.tensors.begin())});
        }
    return out;
}

// A step of expert 1, as the record has it.
class Witness {
  public:
    Witness(const Arm& arm, const MixtureSpec& spec)
        : model_(dynamic_cast<const Moe<float>&>(arm.model())),
          spec_(spec),
          blocks_(spec.train_spec("bf16").sizes.at("blocks")),
          watched_(watched(model_.plan(), blocks_)),
          back_(blocks_, false) {}

    void note(const StepRecord& record, ArmRun& run) {
        double rows = 0, least = kNone;
        const auto [from, to] = spec_.starved();
        for (std::size_t b = 0; b < blocks_; ++b) {
            const auto own = static_cast<double>(model_.experts(b).rows().front());
            rows += own / static_cast<double>(blocks_);
            if (own == 0) continue;
            const bool returns = to > from && record.step >= to && !back_[b];
            for (const Watched& w : watched_) {
                if (w.block != b) continue;
                const TensorRecord& dy = record.tensors[w.record];
                if (!dy.applies) continue;
                const auto db = static_cast<double>(dy.sqnr_db), lost = static_cast<double>(dy.underflow_pct);
                least = std::fmin(least, db);
                if (!returns) continue;
                run.return_db = std::fmin(run.return_db, db);
                run.return_underflow_pct = std::fmax(run.return_underflow_pct, lost);
            }
            if (returns) back_[b] = true;
        }
        run.loss.push_back(record.loss), run.rows.push_back(rows), run.dy_db.push_back(least);
    }

  private:
    const Moe<float>& model_;
    const MixtureSpec& spec_;
    const std::size_t blocks_;
    const std::vector<Watched> watched_;
    std::vector<bool> back_;  // of a block: expert 1 had a token again
};

// `told` hears each step.
ArmRun train(const MixtureSpec& mixture, const std::string& recipe, const auto& told) {
    const TrainSpec spec = mixture.train_spec(recipe);
    const auto task = make_task(spec);
    Arm arm(spec, spec.arms.front());
    ArmRun run{.recipe = recipe};
    Witness witness(arm, mixture);
    MicroBatch batch;
    for (int step = 0; step < mixture.steps; ++step) {
        told(run);
        task->draw(step, batch.batch);
        arm.compute_gradients({&batch, 1}, step, std::nullopt);
        arm.update(step, learning_rate(spec, step));
        for (const StepRecord& record : arm.take().records) witness.note(record, run);
        if (!arm.stopped()) continue;
        run.stopped = to_string(*arm.stopped());
        break;
    }
    return run;
}

}  // namespace

std::array<int, 2> MixtureSpec::starved() const {
    std::array<int, 2> out{};
    const auto dash = starve.find('-');
    if (dash == starve.npos) return out;
    std::from_chars(starve.data(), starve.data() + dash, out[0]);
    std::from_chars(starve.data() + dash + 1, starve.data() + starve.size(), out[1]);
    return out;
}

TrainSpec MixtureSpec::train_spec(const std::string& recipe) const {
    TrainOptions options;
    options.model = "moe";
    options.recipes = recipe;
    options.steps = kMostSteps;  // also where it ends earlier: the same schedule
    options.seed = static_cast<std::uint64_t>(seed);
    options.sizes = {{"experts", experts},
                     {"active", active},
                     {"balance", option_value("balance", balance)},
                     {"empty", option_value("empty", empty)},
                     {"starve-from", starved()[0]},
                     {"starve-to", starved()[1]}};
    return make_train_spec(options);
}

std::vector<std::string> TrainingSpec::recipes() const {
    std::vector<std::string> out;
    if (mixture.steps == kMostSteps) out.emplace_back("bf16");
    for (std::size_t from = 0; from <= arms.size();) {
        const std::size_t comma = std::min(arms.find(',', from), arms.size());
        out.push_back(arms.substr(from, comma - from));
        from = comma + 1;
    }
    return out;
}

bool Training::is_complete() const {
    const auto whole = [this](const ArmRun& arm) {
        return arm.steps() == spec.mixture.steps || !arm.stopped.empty();
    };
    return arms.size() == spec.recipes().size() && std::ranges::all_of(arms, whole);
}

const ArmRun* Training::shown() const {
    const auto hit = std::ranges::find_if(arms, [](const ArmRun& arm) { return arm.recipe != "bf16"; });
    return hit == arms.end() ? nullptr : &*hit;
}

double Training::gap_pct(const ArmRun& arm) const {
    if (arms.front().recipe != "bf16" || arm.steps() < spec.mixture.steps) return kNone;
    const double reference = tail_loss(arms.front().loss);
    return 100 * (tail_loss(arm.loss) - reference) / reference;
}

Training TrainingMaker::operator()(const TrainingSpec& spec, const table::Told<Training>& told) {
    if (of_ != spec.mixture) known_.clear();
    of_ = spec.mixture;
    const std::vector<std::string> recipes = spec.recipes();
    Training out{.spec = spec};
    constexpr int kToldEvery = 10;  // steps
    for (std::size_t i = 0; i < recipes.size(); ++i) {
        if (!known_.contains(recipes[i]))
            known_[recipes[i]] = train(spec.mixture, recipes[i], [&](const ArmRun& run) {
                const auto steps = static_cast<std::size_t>(spec.mixture.steps);
                told.share(i * steps + run.loss.size(), recipes.size() * steps);
                if (run.steps() == 0 || run.steps() % kToldEvery != 0) return;
                Training so_far = out;
                so_far.arms.push_back(run);
                told.so_far(std::move(so_far));
            });
        out.arms.push_back(known_[recipes[i]]);
    }
    return out;
}

}  // namespace fp8lab::experts
