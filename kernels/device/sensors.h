// Clocks, power and temperature of a GPU, from the driver's management library (libnvidia-ml.so.1), which is
// looked for at run time: where it is missing there are no readings. Only reads.
#pragma once

#include <memory>
#include <string>

#include "core/backend/gemm_grid.h"

namespace fp8lab::cuda {

// "580.95.05", from the management library or from /proc; empty: neither tells.
std::string driver_version();

// Reads the sensors of one GPU on a thread of its own, every 50 ms, from construction to finish().
class Sensors {
  public:
    explicit Sensors(int cuda_device);
    ~Sensors();
    Sensors(const Sensors&) = delete;
    Sensors& operator=(const Sensors&) = delete;

    // What was read while the GPU worked. May be called again.
    GridClocks seen() const;
    // The share of the last quarter of a second or so in which the GPU worked, for any process, in percent; -1: not
    // known.
    int utilisation() const;

  private:
    struct Reader;
    std::unique_ptr<Reader> reader_;
};

}  // namespace fp8lab::cuda
