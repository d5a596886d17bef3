#include "labs/clinic/model_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <mutex>

#include "core/nn/model.h"
#include "core/trainer/cpu_trainer.h"

namespace fp8lab::clinic {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The runs that this process has trained, the newest first.
struct Known {
    std::mutex mutex;
    std::list<RunPtr> runs;

    RunPtr find(const RunSpec& spec) {
        const std::scoped_lock lock(mutex);
        const auto at = std::ranges::find(runs, spec, [](const RunPtr& run) { return run->spec; });
        if (at == runs.end()) return nullptr;
        runs.splice(runs.begin(), runs, at);
        return runs.front();
    }
    void add(RunPtr run) {
        const std::scoped_lock lock(mutex);
        runs.push_front(std::move(run));
        if (runs.size() > kKept) runs.pop_back();
    }
};
Known& known() {
    static Known runs;
    return runs;
}

void append(Run& run, const StepRecord& record) {
    for (std::size_t t = 0; t < record.tensors.size(); ++t)
        run.sqnr_db.at(t).push_back(record.tensors[t].sqnr_db);
    if (record.step % kInstrumentSteps != 0) return;
    std::size_t layer = 0;
    for (std::size_t t = 0; t < record.tensors.size(); ++t) {
        if (run.plan.tensors.at(t).tensor != TensorClass::w) continue;
        run.moved_pct.at(layer).push_back(record.tensors[t].moved_pct);
        run.product_error_pct.at(layer).push_back(record.tensors[t].product_error_pct);
        ++layer;
    }
}

// The views of a run that ended before each tensor had its turn: it is so short that it is trained again for each.
std::vector<TensorView> all_views(const TrainSpec& training, std::size_t tensors) {
    std::vector<TensorView> out;
    for (std::size_t t = 0; t < tensors; ++t) {
        const std::unique_ptr<Trainer> trainer = make_cpu_trainer(training);
        trainer->set(Watch{TensorId{static_cast<std::uint16_t>(t)}});
        while (!trainer->all_stopped()) {
            trainer->step();
            const Snapshot snapshot = trainer->snapshot();
            const auto& watched = snapshot.arms.front().watched;
            if (watched && (out.empty() || out.back().id != watched->id || out.back().step != watched->step))
                out.push_back(*watched);
        }
    }
    std::ranges::stable_sort(out, {}, &TensorView::step);
    return out;
}

RunPtr trained(const RunSpec& spec, const std::function<void(int step)>& told) {
    const TrainSpec training = spec.train_spec();
    const std::unique_ptr<Trainer> trainer = make_cpu_trainer(training);
    auto run = std::make_shared<Run>();
    run->spec = spec;
    run->plan = model_plan(training);
    const std::size_t tensors = run->plan.tensors.size();
    run->sqnr_db.resize(tensors);
    run->moved_pct.resize(run->plan.gemms.size());
    run->product_error_pct.resize(run->plan.gemms.size());
    const bool casts = spec.base != "bf16";
    for (int step = 0; step < kSteps && !trainer->all_stopped(); ++step) {
        const auto watched = static_cast<std::uint16_t>(static_cast<std::size_t>(step) % tensors);
        if (casts) trainer->set(Watch{TensorId{watched}});
        trainer->step();
        const Snapshot snapshot = trainer->snapshot();
        run->history.append(snapshot, run->plan);
        const ArmSnapshot& arm = snapshot.arms.front();
        for (const StepRecord& record : arm.records) append(*run, record);
        if (arm.watched) run->views.push_back(*arm.watched);
        if (told) told(step + 1);
    }
    if (casts && trainer->all_stopped() && run->arm().step.size() < tensors)
        run->views = all_views(training, tensors);
    return run;
}

}  // namespace

const TensorView* Run::view(TensorId tensor, int step) const {
    const auto at = std::find_if(views.rbegin(), views.rend(), [&](const TensorView& view) {
        return view.id == tensor && view.step <= step;
    });
    if (at != views.rend()) return &*at;
    const auto first = std::ranges::find(views, tensor, &TensorView::id);  // before its first one
    return first == views.end() ? nullptr : &*first;
}

RunPtr run_of(const RunSpec& spec, const std::function<void(int step)>& told) {
    if (RunPtr run = known().find(spec)) return run;
    RunPtr run = trained(spec, told);
    known().add(run);
    return run;
}

double gap_pct(const Run& run, const Run& than) {
    if (run.ended() || than.ended()) return kNone;
    return 100 * (run.tail() / than.tail() - 1);
}

Plateau plateau_of(const Run& patient, const Run& twin) {
    const auto a = patient.arm().loss.values(), b = twin.arm().loss.values();
    Plateau longest, now;
    for (std::size_t s = 0; s < std::min(a.size(), b.size()); ++s) {
        if (!(a[s] > kPlateau * b[s])) {
            now = {};
            continue;
        }
        if (now.steps++ == 0) now.from = static_cast<int>(s);
        if (now.steps > longest.steps) longest = now;
    }
    return longest;
}

WorstUnderflow worst_underflow(const Run& run) {
    WorstUnderflow worst;
    for (const live::TensorTrack& track : run.arm().tensors)
        if (track.measured > 0 && (worst.tensor.empty() || track.underflow_mean_pct() > worst.mean_pct))
            worst = {track.spec.name, track.underflow_mean_pct()};
    return worst;
}

}  // namespace fp8lab::clinic
