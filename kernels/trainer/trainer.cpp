#include "kernels/trainer/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/base/overloaded.h"
#include "core/nn/faults.h"
#include "core/nn/model.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"
#include "core/trainer/decision.h"
#include "core/trainer/sample.h"
#include "kernels/arm/batches.h"
#include "kernels/arm/exchange.h"
#include "kernels/arm/records.h"
#include "kernels/bench/measure.h"
#include "kernels/checks/probe.h"
#include "kernels/device/graph.h"
#include "kernels/device/ranges.h"
#include "kernels/mlp/arm.h"
#include "kernels/trainer/kept_scales.h"
#include "kernels/trainer/refusals.h"
#include "kernels/trainer/room.h"
#include "kernels/trainer/trained_arm.h"
#include "kernels/transformer/arm.h"

namespace fp8lab::cuda {
namespace {

constexpr int kInFlight = 2;                 // launches that the host is ahead
constexpr int kStepBeforeParts = 30;         // clocks and caches are what they will be
constexpr int kNetworkSteps = 9;             // of which the median is told
constexpr int kStepsPerText = 9;             // time of steps over that of the texts: Evaluation::text_step
constexpr std::size_t kTimedLaunches = 200;  // that the median of the step time is over

using Clock = std::chrono::steady_clock;

class CudaTrainer final : public Trainer {
  public:
    CudaTrainer(const TrainSpec& spec, std::shared_ptr<Device> device, Launching launching,
                const Preparation& preparation, const RankPlace& place = {});
    ~CudaTrainer() override { cudaStreamSynchronize(stream()); }
    CudaTrainer(const CudaTrainer&) = delete;
    CudaTrainer& operator=(const CudaTrainer&) = delete;

    void step(int n) override;
    void set(const Command& command) override {
        check_command(spec_, command);
        commands_.push_back(command);
    }
    Snapshot snapshot() override;
    int steps_done() const override { return steps_done_; }
    int steps_per_call() const override { return per_launch_; }
    const std::optional<NonFinite>& stopped(int index) const override { return arm(index).stopped; }
    const TrainSpec& spec() const override { return spec_; }
    std::string note() const override;
    std::vector<double> allocated_bytes() const {
        std::vector<double> out;
        for (const TrainedArm& one : arms_) out.push_back(static_cast<double>(one.arm->memory_bytes()));
        return out;
    }
    void save(const std::filesystem::path& dir) const override;
    void load(const std::filesystem::path& path) override;

  private:
    cudaStream_t stream() const { return device_->stream.get(); }
    const TrainedArm& arm(int index) const;
    TrainedArm& arm(int index) { return const_cast<TrainedArm&>(std::as_const(*this).arm(index)); }
    EngineChoice engine_of(const Recipe& recipe) const {
        return engine_or_refusal(
            spec_, recipe, [&](const GemmSpec& gemm) { return refusal_of(device_->lt, gemm, stream()); });
    }
    std::unique_ptr<CudaArm> make_arm(const Recipe& recipe) const;
    void apply(const Command& command);
    void change_recipe(TrainedArm& arm, const Recipe& recipe);
    float bad_factor(int step) const;
    void stage(int first, int count);
    int steps_at_once(int wanted) const;
    void evaluate();
    bool texts_are_due() const;
    void write_texts();
    std::optional<TensorView> view(TrainedArm& target);
    void launch(int count);
    void run(TrainedArm& arm, int count, bool with_stats);
    void collect(std::size_t leave);
    void finish(InFlight& work);
    void add_record(TrainedArm& target, int step, const RankRecords& ranks, bool with_stats);
    NonFinite nonfinite(const TrainedArm& target, int step, const RankRecords& ranks) const;
    NonFinite nonfinite_parameter(const CudaArm& arm, int step) const;
    void drain() { collect(0); }
    bool warm() const {  // every arm has run
        return std::ranges::all_of(arms_,
                                   [](const TrainedArm& a) { return a.many || a.one || a.one_with_stats; });
    }
    void measure_parts();
    bool wants_network() const {
        return place_.several() && std::ssize(arms_.front().network_times) < kNetworkSteps;
    }
    void measure_network();
    ArmCost cost(const TrainedArm& arm) const;

    TrainSpec all_;   // of all ranks
    TrainSpec spec_;  // of this one
    const RankPlace place_;
    std::shared_ptr<Device> device_;
    Launching launching_;
    Preparation preparation_;
    bool tokens_;  // the model's batches are tokens
    std::unique_ptr<Batches> batches_;
    int per_launch_ = 1;
    bool stats_always_ = false, stats_wanted_ = true;
    std::vector<TrainedArm> arms_;
    std::deque<InFlight> in_flight_;
    std::vector<Event> spare_events_;
    std::vector<Command> commands_;
    std::optional<TensorId> watched_;
    float poison_ = 1;
    int steps_done_ = 0;
    Clock::time_point next_texts_{};  // no text of an evaluation is drawn earlier
};

TrainSpec of_one_rank(TrainSpec spec) {
    spec.batch /= spec.ranks.count;
    return spec;
}

CudaTrainer::CudaTrainer(const TrainSpec& spec, std::shared_ptr<Device> device, Launching launching,
                         const Preparation& preparation, const RankPlace& place)
    : all_(spec),
      spec_(of_one_rank(spec)),
      place_(place),
      device_(std::move(device)),
      launching_(launching),
      preparation_(preparation),
      tokens_(find_model(spec.model).tokens) {
    if (spec.arms.empty()) throw usage_error("--recipe", "at least one recipe");
    if (spec.ranks.count != place.count)
        throw Error(ErrorKind::backend, "--ranks", "virtual ranks are computed on the CPU: --backend cpu");
    refuse_model(spec);
    refuse_accumulation(spec);
    refuse_files(spec);
    refuse_faults(spec);
    for (const Recipe& recipe : spec.arms) model_plan(spec).check(recipe);
    check(cudaSetDevice(device_->index), "cudaSetDevice");
    std::vector<Engine> engines;
    for (const Recipe& recipe : spec.arms) engines.push_back(engine_of(recipe).engine);
    refuse_ranks(spec, engines);
    check_room(spec_, engines);  // before anything that takes long
    batches_ = std::make_unique<Batches>(spec_, &all_, place_.rank);
    per_launch_ = steps_per_launch(spec_, spec_.batch);
    stats_always_ = measures_every_step(spec_);
    for (const Recipe& recipe : spec_.arms) arms_.emplace_back().arm = make_arm(recipe);
}

std::unique_ptr<CudaArm> CudaTrainer::make_arm(const Recipe& recipe) const {
    const StepRings rings = batches_->rings(per_launch_ > 1);
    if (tokens_)
        return std::make_unique<TransformerArm>(spec_, recipe, engine_of(recipe), device_->lt, rings,
                                                stream(), preparation_, place_);
    return std::make_unique<MlpArm>(spec_, recipe, engine_of(recipe), device_->lt, rings, stream(),
                                    preparation_, place_);
}

const TrainedArm& CudaTrainer::arm(int index) const {
    if (index < 0 || index >= static_cast<int>(arms_.size()))
        throw usage_error("arm", fmt::format("{} is not in 0..{}", index, arms_.size() - 1));
    return arms_[static_cast<std::size_t>(index)];
}

void CudaTrainer::apply(const Command& command) {
    std::visit(Overloaded{[&](const SetHistory& c) { arm(c.arm).arm->set_history(c.history, stream()); },
                          [&](const SetMargin& c) { arm(c.arm).arm->set_margin(c.margin, stream()); },
                          [&](const SetAlgo& c) { arm(c.arm).arm->set_algo(c.algo, stream()); },
                          [&](const SetRecipe& c) { change_recipe(arm(c.arm), c.recipe); },
                          [&](const SetLearningRate& c) { spec_.lr = all_.lr = c.lr; },
                          [&](const PoisonBatch& c) { poison_ = c.factor; },
                          [&](const AlignChannel&) {
                              drain();
                              for (TrainedArm& each : arms_) {
                                  each.forget_graphs();  // a step has more to do from here on
                                  each.arm->align_channel(batches_->task().rarest());
                              }
                          },
                          [&](const Watch& c) { watched_ = c.tensor; }},
               command);
}

// Weights, moments and step stay; so do the scales of tensors that were and stay delayed in the same format.
void CudaTrainer::change_recipe(TrainedArm& target, const Recipe& recipe) {
    const Range range("change of recipe");
    TrainSpec changed = all_;
    changed.arms = {recipe};
    refuse_ranks(changed, {engine_of(recipe).engine});
    drain();
    ArmCheckpoint state = target.arm->checkpoint();
    if (state.scaler && recipe.loss_scale != target.arm->recipe().loss_scale)
        state.scaler->scale = recipe.loss_scale, state.scaler->good = 0;
    const std::vector<float> held = target.arm->held();
    state.scales = kept_scales(state.scales, target.arm->plan(), target.arm->recipe(), recipe);
    target.forget_graphs();
    target.arm.reset();  // before the new one takes its memory
    target.arm = make_arm(recipe);
    preparation_.end();
    target.arm->hold(held);
    target.arm->restore(state, steps_done_);
    target.step_ms.clear();
    arms_.front().parts.clear();  // all arms are measured again
    for (TrainedArm& each : arms_) each.network_times.clear();
}

float CudaTrainer::bad_factor(int step) const {
    const auto& bad = spec_.ranks.bad;
    return bad && bad->rank == place_.rank && bad->step == step ? static_cast<float>(bad->factor) : 1.0F;
}

// What steps first, ..., first + count - 1 need from the host.
void CudaTrainer::stage(int first, int count) {
    for (int step = first; step < first + count; ++step)
        batches_->stage(step, learning_rate(spec_, step),
                        std::exchange(poison_, 1.0F) * poison_factor(spec_, step) * bad_factor(step),
                        stream());
}

// The first step runs without a graph: modules load and libraries initialise then, which a capture must not
// see.
void CudaTrainer::run(TrainedArm& target, int count, bool with_stats) {
    CudaArm& a = *target.arm;
    auto& graph = count > 1 ? target.many : with_stats ? target.one_with_stats : target.one;
    if (!graph) {
        a.enqueue(stream(), count, with_stats);
        a.read_back(steps_done_, count, stream());
        wait_for(place_, stream(), fmt::format("step {}", steps_done_));
        if (launching_ == Launching::one_by_one) return;
        const Range range("capture");
        ++target.graphs;
        if (count > 1) target.step_ms.clear();  // of steps that did not overlap
        graph.emplace(stream(), [&] { a.enqueue(stream(), count, with_stats); });
        return;
    }
    graph->launch(stream());
    a.read_back(steps_done_, count, stream());
}

void CudaTrainer::launch(int count) {
    const Range range(fmt::format("steps {} to {}", steps_done_, steps_done_ + count - 1));
    const bool with_stats = stats_always_ || (count == 1 && std::exchange(stats_wanted_, false));
    stage(steps_done_, count);
    InFlight work{steps_done_, count, with_stats, stats_always_ || !with_stats, {}};
    const auto event = [&]() -> Event& {
        if (spare_events_.empty()) spare_events_.emplace_back();
        work.marks.push_back(std::move(spare_events_.back()));
        spare_events_.pop_back();
        return work.marks.back();
    };
    event().record(stream());
    for (TrainedArm& target : arms_) {
        const bool captured = count > 1    ? target.many.has_value()
                              : with_stats ? target.one_with_stats.has_value()
                                           : target.one.has_value();
        // Steps that do not overlap take longer; they count only as long as there are no others.
        work.timed = work.timed && captured && (count > 1 || !target.many);
        run(target, count, with_stats);
        event().record(stream());
    }
    in_flight_.push_back(std::move(work));
    steps_done_ += count;
    collect(kInFlight);
}

void CudaTrainer::step(int n) {
    const AskBetween to_the_end;  // what is under way on the device cannot be given up
    check(cudaSetDevice(device_->index), "cudaSetDevice");
    while (n > 0) {
        for (const Command& command : std::exchange(commands_, {})) apply(command);
        const bool times_parts = arms_.front().parts.empty();
        if (steps_done_ >= kStepBeforeParts && warm() && (times_parts || wants_network())) {
            times_parts ? measure_parts() : measure_network();
            --n;
            if (tokens_ && (steps_done_ % kEvaluationSteps == 0 || steps_done_ == spec_.steps)) evaluate();
            continue;
        }
        const int count = steps_at_once(n);
        launch(count);
        n -= count;
        if (tokens_ && (steps_done_ % kEvaluationSteps == 0 || steps_done_ == spec_.steps)) evaluate();
    }
}

int CudaTrainer::steps_at_once(int wanted) const {
    const bool stats_first = stats_wanted_ && !stats_always_;  // of one step
    if (tokens_) {
        wanted = std::min(wanted, kEvaluationSteps - steps_done_ % kEvaluationSteps);
        if (spec_.steps > steps_done_) wanted = std::min(wanted, spec_.steps - steps_done_);
    }
    return wanted >= per_launch_ && !stats_first ? per_launch_ : 1;
}

void CudaTrainer::evaluate() {
    const Range range("evaluation");
    drain();
    for (TrainedArm& target : arms_) {
        if (target.stopped) continue;
        // The evaluation's forward pass replaces what the view is computed from.
        if (watched_) target.watched = view(target);
        Evaluation now = target.arm->evaluate(*batches_, steps_done_, stream());
        if (target.evaluation) {
            const Evaluation& before = *target.evaluation;
            now.prompt = before.prompt, now.continuation = before.continuation;
            now.expected = before.expected, now.text_step = before.text_step;
        }
        target.evaluation = std::move(now);
    }
    if (!batches_->task().prompt().empty() && texts_are_due()) write_texts();
}

// By the clock of rank 0.
bool CudaTrainer::texts_are_due() const {
    const bool due = steps_done_ == spec_.steps || Clock::now() >= next_texts_;
    if (!place_.several()) return due;
    const std::string what = fmt::format("the evaluation after step {}", steps_done_);
    return place_.link->all_gather(due ? "due" : "", what).front() == "due";
}

// This runs on the CPU while the GPU waits. Small models write at the same time, a large one has all threads for its
// products. Of several ranks rank 0 writes; all have a part in the checkpoint, and wait long.
void CudaTrainer::write_texts() {
    constexpr std::size_t kLarge = 1 << 20;
    const auto start = Clock::now();
    std::size_t weights = 0;
    for (const ParameterSpec& p : arms_.front().arm->plan().parameters) weights += p.elements();
    std::vector<std::unique_ptr<Model<float>>> models(arms_.size());
    const auto write = [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (!models[i]) continue;
            add_sample(*arms_[i].evaluation, *models[i], batches_->task(), spec_, arms_[i].arm->recipe());
            models[i].reset();
        }
    };
    for (std::size_t i = 0; i < arms_.size(); ++i) {
        if (arms_[i].stopped) continue;
        const ArmCheckpoint state = arms_[i].arm->checkpoint();
        if (place_.rank != 0) continue;
        models[i] = make_model(spec_);
        set_parameters(*models[i], state);
        if (weights >= kLarge) write(i, i + 1);
    }
    parallel_for(arms_.size(), 1, write);
    constexpr std::chrono::hours kOfTexts(1);
    if (place_.several()) place_.link->all_gather({}, "the texts of an evaluation", kOfTexts);
    const auto end = Clock::now();
    next_texts_ = end + kStepsPerText * (end - start);
}

void CudaTrainer::collect(std::size_t leave) {
    while (in_flight_.size() > leave) {
        finish(in_flight_.front());
        in_flight_.pop_front();
    }
}

void CudaTrainer::add_record(TrainedArm& target, int step, const RankRecords& ranks, bool with_stats) {
    const ArmRecord all = merged(ranks.of);
    StepRecord record = to_record(all, *target.arm,
                                  {.classes = spec_.loss == LossKind::cross_entropy,
                                   .scored = batches_->scored(step),
                                   .with_stats = with_stats,
                                   .in_every_step = stats_always_});
    record.step = step;
    record.step_ms = ranks.ms;
    if (place_.several())
        for (const ArmRecord& one : ranks.of) record.ranks.push_back({.loss = one.result.loss});
    if (!std::isfinite(record.loss) || all.result.alive == 0) target.stopped = nonfinite(target, step, ranks);
    if (target.stopped) record.loss = std::numeric_limits<double>::quiet_NaN();
    target.records.push_back(std::move(record));
}

// Of parameters that every rank has there is no rank.
NonFinite CudaTrainer::nonfinite_parameter(const CudaArm& arm, int step) const {
    const auto names = place_.link->all_gather(
        arm.nonfinite_parameter(), fmt::format("the parameter that became non-finite at step {}", step));
    if (std::ranges::count(names, names.front()) == std::ssize(names)) return {step, names.front()};
    const auto named = std::ranges::find_if(names, [](const std::string& name) { return name != "update"; });
    return {step, *named, static_cast<int>(named - names.begin())};
}

NonFinite CudaTrainer::nonfinite(const TrainedArm& target, int step, const RankRecords& ranks) const {
    if (!place_.several()) return {step, first_nonfinite(ranks.of.front(), *target.arm)};
    for (int rank = 0; rank < place_.count; ++rank)
        if (std::string name = first_nonfinite(ranks.of[static_cast<std::size_t>(rank)], *target.arm, false);
            !name.empty())
            return {step, std::move(name), rank};
    return nonfinite_parameter(*target.arm, step);
}

void CudaTrainer::finish(InFlight& work) {
    wait_for(place_, work.marks.back(), fmt::format("step {}", work.first + work.count - 1));
    for (std::size_t i = 0; i < arms_.size(); ++i) {
        TrainedArm& target = arms_[i];
        double ms = static_cast<double>(elapsed_ms(work.marks[i], work.marks[i + 1])) / work.count;
        for (int s = work.first; s < work.first + work.count && !target.stopped; ++s) {
            RankRecords ranks{{target.arm->record(s)}, ms};
            if (place_.several()) ranks = records_of_all(place_, ranks.of.front(), ms);
            ms = ranks.ms;
            add_record(target, s, ranks, work.with_stats);
        }
        if (!work.timed) continue;
        target.step_ms.push_back(ms);
        if (target.step_ms.size() > kTimedLaunches) target.step_ms.pop_front();
    }
    for (Event& event : work.marks) spare_events_.push_back(std::move(event));
}

// Where the time of a step goes: one real step as a graph with an event after every launch.
void CudaTrainer::measure_parts() {
    const Range range("time the parts of a step");
    drain();
    stage(steps_done_, 1);
    InFlight work{steps_done_, 1, stats_always_, false, {}};
    work.marks.emplace_back();
    work.marks.back().record(stream());
    for (TrainedArm& target : arms_) {
        PartTimes times(stream());
        const Graph graph(stream(), [&] {
            times.begin();
            target.arm->enqueue(stream(), 1, stats_always_, times.marks());
        });
        graph.launch(stream());
        target.arm->read_back(steps_done_, 1, stream());
        work.marks.emplace_back();
        work.marks.back().record(stream());
        wait_for(place_, stream(), "a step whose parts are timed");
        target.parts = times.read(target.arm->multiplies_in_update());
    }
    in_flight_.push_back(std::move(work));
    ++steps_done_;
    drain();
}

// One step as it is, with an event around every GEMM and every exchange. It follows another at once, so that ranks begin it at the
// same time.
void CudaTrainer::measure_network() {
    const Range range("time the network");
    stage(steps_done_, 1);
    InFlight work{steps_done_, 1, stats_always_, false, {}};
    work.marks.emplace_back();
    work.marks.back().record(stream());
    for (TrainedArm& target : arms_) {
        if (!target.network_graph) {
            target.arm->watch(target.network.watch());
            target.network_graph.emplace(stream(), [&] { target.arm->enqueue(stream(), 1, stats_always_); });
            target.arm->watch({});
        }
        target.network_graph->launch(stream());
        target.arm->read_back(steps_done_, 1, stream());
        work.marks.emplace_back();
        work.marks.back().record(stream());
    }
    in_flight_.push_back(std::move(work));
    ++steps_done_;
    drain();
    for (TrainedArm& target : arms_) target.network_times.push_back(target.network.read());
}

std::optional<TensorView> CudaTrainer::view(TrainedArm& target) {
    if (target.watched && target.watched->step == steps_done_ - 1 && target.watched->id == *watched_)
        return target.watched;
    if (!target.arm->records(*watched_, true) || !target.arm->keeps(*watched_)) return std::nullopt;
    return target.arm->view(*watched_, steps_done_ - 1, stream());
}

ArmCost CudaTrainer::cost(const TrainedArm& target) const {
    ArmCost cost;
    Timed launches;
    summarise(launches, {target.step_ms.begin(), target.step_ms.end()});
    cost.step_ms = launches.median_ms;
    cost.step_q1_ms = launches.q1_ms;
    cost.step_q3_ms = launches.q3_ms;
    cost.steps = launches.repeats * (target.many ? per_launch_ : 1);
    cost.flop = step_flop(spec_, spec_.batch);
    cost.memory_bytes = static_cast<double>(target.arm->memory_bytes());
    cost.parts = target.parts;
    double sum = 0;
    for (const auto& [name, ms] : cost.parts) sum += ms;
    if (!cost.parts.empty() && sum < cost.step_ms) cost.parts.emplace_back("gaps", cost.step_ms - sum);
    if (const auto network = median(target.network_times))
        cost.network_ms = network->travels_ms, cost.network_shown_ms = network->shown_ms;
    cost.graphs = target.graphs;
    cost.note = note();
    return cost;
}

std::string CudaTrainer::note() const {
    std::vector<int> dimensions = spec_.layers;
    dimensions.push_back(spec_.batch / spec_.accumulate.micro_batches);
    if (tokens_) dimensions = {spec_.vocabulary, spec_.batch * spec_.sizes.at("context")};
    std::string out;
    std::set<int> told;
    for (const int n : dimensions)
        if (padded(n) != n && told.insert(n).second)
            out += fmt::format("{} {} to {}", out.empty() ? "padded to multiples of 16:" : ",", n, padded(n));
    return out;
}

Snapshot CudaTrainer::snapshot() {
    const Range range("snapshot");
    check(cudaSetDevice(device_->index), "cudaSetDevice");
    drain();
    stats_wanted_ = true;
    Snapshot snapshot{.step = steps_done_, .arms = {}};
    for (TrainedArm& target : arms_) {
        ArmSnapshot out;
        out.records = std::exchange(target.records, {});
        out.stopped = target.stopped;
        out.provenance = provenance_of(target.arm->engine());
        out.emulated_because = target.arm->emulated_because();
        if (!target.step_ms.empty()) out.cost = cost(target);
        out.evaluation = target.evaluation;
        if (watched_ && steps_done_ > 0) out.watched = view(target);
        if (spec_.task == TaskKind::spiral && !target.stopped)
            out.decision = decision_grid(spec_, target.arm->checkpoint());
        snapshot.arms.push_back(std::move(out));
    }
    return snapshot;
}

void CudaTrainer::save(const std::filesystem::path& dir) const {
    check(cudaSetDevice(device_->index), "cudaSetDevice");
    if (!place_.several())
        return save_checkpoints(
            dir, spec_, [this](std::size_t i) { return arms_[i].arm->checkpoint(); }, steps_done_);
    std::vector<ArmCheckpoint> states;  // all ranks have a part in each; rank 0 writes
    for (const TrainedArm& target : arms_) {
        states.push_back(target.arm->checkpoint());
        states.back().scales = scales_of_all(place_, std::move(states.back().scales));
        if (place_.rank != 0) states.back() = {};
    }
    if (place_.rank == 0)
        save_checkpoints(
            dir, all_, [&](std::size_t i) { return std::move(states[i]); }, steps_done_);
}

void CudaTrainer::load(const std::filesystem::path& path) {
    check(cudaSetDevice(device_->index), "cudaSetDevice");
    LoadedCheckpoints loaded = load_checkpoints(path, spec_);
    drain();
    for (std::size_t i = 0; i < arms_.size(); ++i) {
        loaded.arms[i].scales = scales_of_rank(place_, loaded.arms[i].scales);
        arms_[i].forget_graphs();  // an arm that has skipped steps does more
        arms_[i].arm->restore(loaded.arms[i], loaded.steps_done);
    }
    steps_done_ = loaded.steps_done;
}

}  // namespace

std::unique_ptr<Trainer> make_cuda_trainer(const TrainSpec& spec, std::shared_ptr<Device> device,
                                           Launching launching, const Preparation& preparation) {
    return std::make_unique<CudaTrainer>(spec, std::move(device), launching, preparation);
}

std::unique_ptr<Trainer> make_rank_trainer(const TrainSpec& spec, std::shared_ptr<Device> device,
                                           const RankPlace& place, Launching launching,
                                           const Preparation& preparation) {
    return std::make_unique<CudaTrainer>(spec, std::move(device), launching, preparation, place);
}

std::vector<double> allocated_bytes(const TrainSpec& spec, std::shared_ptr<Device> device) {
    const CudaTrainer trainer(spec, std::move(device), Launching::one_by_one, {});
    return trainer.allocated_bytes();
}

}  // namespace fp8lab::cuda
