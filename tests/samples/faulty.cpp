// faulty_samples FOLDER: makes the files of exercise W.5, fault-1.safetensors to fault-6.safetensors, from
// transformer-600.safetensors in that folder. scripts/workbench_samples.sh runs it after the training.
#include <fmt/format.h>

#include <exception>
#include <filesystem>

#include "tests/samples/shipped_faults.h"

int main(int count, char** words) {
    if (count != 2) return fmt::print(stderr, "faulty_samples FOLDER\n"), 2;
    try {
        const std::filesystem::path folder = words[1];
        const fp8lab::TensorStore model(folder / "transformer-600.safetensors");
        for (const faulty::ShippedFault& each : faulty::shipped_faults(model))
            faulty::write_tensors(folder / (each.file + ".safetensors"), each.content);
    } catch (const std::exception& error) {
        fmt::print(stderr, "faulty_samples: {}\n", error.what());
        return 1;
    }
}
