// The parts of `validate --report`, as JSON. The page is made of them (report_page.h), so that it has no number of its own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "core/backend/backend.h"
#include "core/backend/recording.h"

namespace fp8lab::cli {

// A short training of every recipe of the table that trains, bf16 first, on the CPU: losses, gap, worst underflow, and a
// checksum over the losses of all steps. Throws Interrupted after a signal, as the others.
nlohmann::json train_recipes();

// The same trainings on this backend, beside those of train_recipes(). A recipe that it refuses has the reason.
nlohmann::json compare_with_cpu(Backend& gpu, const nlohmann::json& recipes);

// The recording of the same card, else the first; null where there is none.
const Recording* nearest_recording(std::span<const Recording> recordings, const std::string& gpu);

// The step of one shape that recordings have, measured here, beside the recorded one.
nlohmann::json compare_speed(Backend& gpu);

// Bytes: free, the most that this process had, what the trainings above were planned with, and those of a GPU.
nlohmann::json memory_used(const DeviceInfo& device, const nlohmann::json& recipes);

}  // namespace fp8lab::cli
