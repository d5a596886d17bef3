#include "labs/speed/model_live.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/nn/train_spec.h"

namespace fp8lab::speed {
namespace {

constexpr int kWarmSteps = 8, kTimedSteps = 64;  // of a training

RecordedArm arm_of(const std::string& recipe, const ArmCost& cost) {
    return {.recipe = recipe,
            .median_ms = cost.step_ms,
            .iqr_ms = cost.step_q3_ms - cost.step_q1_ms,
            .tflops = cost.step_ms > 0 ? cost.flop / cost.step_ms / 1e9 : 0,
            .q1_ms = cost.step_q1_ms,
            .q3_ms = cost.step_q3_ms,
            .memory_bytes = cost.memory_bytes,
            .parts_ms = cost.parts};
}

RecordedStep train(Backend& gpu, const Layer& layer, const std::string& recipe,
                   const std::function<bool(double)>& go_on) {
    TrainOptions options;
    options.task = "noise";
    options.layers = {layer.k, layer.n, layer.k};
    options.batch = layer.m;
    options.recipes = "bf16," + recipe;
    const auto trainer = gpu.make_trainer(make_train_spec(options));
    for (int done = 0; done < kWarmSteps + kTimedSteps; ++done) {
        if (!go_on(double(done) / (kWarmSteps + kTimedSteps))) throw Cancelled();
        trainer->step(1);
    }
    RecordedStep out{.layers = {layer.k, layer.n, layer.k}, .batch = layer.m};
    const Snapshot snapshot = trainer->snapshot();
    for (std::size_t i = 0; i < snapshot.arms.size(); ++i)
        if (const auto& cost = snapshot.arms[i].cost)
            out.arms.push_back(arm_of(i == 0 ? "bf16" : recipe, *cost));
    return out;
}

}  // namespace

// The state that the worker and the lab share.
struct Live::Shared {
    std::mutex mutex;
    std::vector<Measured> fresh;  // a layer has one entry for each round
    std::atomic<double> share = 0;
    std::atomic<bool> stop = false;
};
struct Live::Request {
    Backends backends;
    std::shared_ptr<Shared> shared;
    std::function<void()> wake;
    std::vector<LayerProbe> layers;
    std::optional<Layer> step;
    std::string recipe;
};
struct Live::Result {
    std::string device;
    std::optional<RecordedStep> step;
};

Live::Live(Backends backends)
    : backends_(std::move(backends)),
      shared_(std::make_shared<Shared>()),
      job_(std::make_unique<Job<Request, Result>>([](const Request& request) { return work(request); })) {}
Live::~Live() { stop(); }

Live::Result Live::work(const Request& request) {
    Shared& shared = *request.shared;
    Backend& gpu = request.backends.get("cuda");
    Result result{gpu.device().name.substr(0, gpu.device().name.find(',')), std::nullopt};
    if (request.step) {
        result.step = train(gpu, *request.step, request.recipe, [&](double done) {
            shared.share = done;
            return !shared.stop;
        });
        return result;
    }
    double before = 0;
    const double each = 1.0 / static_cast<double>(request.layers.size());
    for (const LayerProbe& probe : request.layers) {
        const auto publish = [&](const LayerTimes& times) {
            const std::lock_guard lock(shared.mutex);
            std::erase_if(shared.fresh, [&](const Measured& one) {
                return one.probe.m == probe.m && one.probe.n == probe.n && one.probe.k == probe.k;
            });
            shared.fresh.push_back({probe, times});
        };
        const LayerTimes times = gpu.measure_layer(probe, [&](const LayerTimes& so_far, double done) {
            shared.share = before + each * done;
            publish(so_far);
            if (request.wake) request.wake();
            return !shared.stop;
        });
        publish(times);
        before += each;
        if (shared.stop) break;
    }
    return result;
}

void Live::start_worker(std::function<void()> wake) {
    wake_ = wake;
    job_->start_worker(std::move(wake));
}

void Live::measure(std::vector<LayerProbe> layers) {
    stop();
    shared_ = std::make_shared<Shared>();
    problem_.clear(), notices_.clear();
    job_->request({backends_, shared_, wake_, std::move(layers), std::nullopt, ""});
}

void Live::measure_step(const Layer& layer, const std::string& recipe) {
    stop();
    shared_ = std::make_shared<Shared>();
    problem_.clear(), notices_.clear();
    job_->request({backends_, shared_, wake_, {}, layer, recipe});
}

void Live::stop() { shared_->stop = true; }

bool Live::take(LiveTimes& times) {
    std::vector<Measured> fresh;
    {
        const std::lock_guard lock(shared_->mutex);
        fresh = std::exchange(shared_->fresh, {});
    }
    bool found = !fresh.empty();
    for (Measured& measured : fresh) {
        notices_ = measured.times.notices;
        times.take(std::move(measured));
    }
    if (!problem_.empty()) return found;
    try {
        if (auto result = job_->take()) {
            found = true;
            times.device = result->device;
            if (result->step) {
                std::erase_if(times.steps, [&](const RecordedStep& step) {
                    return step.layers == result->step->layers && step.batch == result->step->batch &&
                           step.arms.back().recipe == result->step->arms.back().recipe;
                });
                times.steps.push_back(std::move(*result->step));
            }
        }
    } catch (const Cancelled&) {
        problem_ = "Stopped.";
        found = true;
    } catch (const Error& error) {
        problem_ = error.what();
        found = true;
    }
    if (times.device.empty() && found)
        if (const auto device = backends_.gpu_device())
            times.device = device->name.substr(0, device->name.find(','));
    return found;
}

bool Live::busy() const { return job_->busy(); }
double Live::share() const { return shared_->share; }

}  // namespace fp8lab::speed
