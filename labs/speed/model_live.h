// Measurements on the GPU of this machine, on a worker: of layers one after the other, or of one training step.
// What was measured before it is stopped stays.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/backends.h"
#include "core/threads/job.h"
#include "labs/speed/model_source.h"

namespace fp8lab::speed {

class Live {
  public:
    explicit Live(Backends backends);
    ~Live();

    void start_worker(std::function<void()> wake);  // else a request is measured before it returns
    // The layers in this order. Ends an earlier request.
    void measure(std::vector<LayerProbe> layers);
    // The network K-N-K at batch M, BF16 and `recipe`, FP32 master weights.
    void measure_step(const Layer& layer, const std::string& recipe);
    void stop();
    // Takes what is new; true: there was something.
    bool take(LiveTimes& times);
    bool busy() const;
    double share() const;  // of the present request that is done, 0 to 1
    // Why the last request ended without a time: "GPU memory: ...". Empty: it did not.
    const std::string& problem() const { return problem_; }
    // Sentences of the last measurement, e.g. that the clocks fell.
    const std::vector<std::string>& notices() const { return notices_; }

  private:
    struct Shared;
    struct Request;
    struct Result;
    static Result work(const Request& request);

    Backends backends_;
    std::shared_ptr<Shared> shared_;
    std::function<void()> wake_;
    std::unique_ptr<Job<Request, Result>> job_;
    std::string problem_;
    std::vector<std::string> notices_;
};

}  // namespace fp8lab::speed
