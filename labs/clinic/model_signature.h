// What ten instruments say of a run, each in levels: by this the diseases are told apart.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "labs/clinic/model_run.h"

namespace fp8lab::clinic {

// The names of the instruments, in the order of a signature.
inline constexpr std::array<std::string_view, 10> kInstruments = {
    "gap", "twin", "plateau", "underflow", "scale", "overflow", "sqnr", "moved", "products", "nonfinite"};

// Levels as words. With the thresholds, what each is of:
//   gap        of the patient to the twin, %: "below 8" (kCuredPct), "8 to 20", "20 to 200", "above 200"; "ends"
//   twin       its tail to that of a healthy run: "healthy", "sick" (above 2 times)
//   plateau    "none"; "yes": kPlateau times the twin's loss for 500 steps or more
//   underflow  the class of the worst tensor: "none" (below 5 % in the mean of the run), "x", "w", "dy"
//   scale      "Inf"; "1": of all tensors in all steps; "fixed": of a weight from step 100 on; "falls": of an x to a
//              thousandth within a step; "beyond 448": so far reaches amax times scale of an x; "moves"
//   overflow   steps in which an element saturates: "none", "some"
//   sqnr       of x2, w2, dy2, mean of the run, dB: "x low" (below 29), "x high" (above 40), "w exact", "dy low" (below 15),
//              joined by ", "; "usual"
//   moved      of the weights by an update, mean over the layers and the run, %: "all" (above 60), "some", "few" (below 5)
//   products   off by 1 % and more: "off"; "exact"
//   nonfinite  "none"; the class of the first tensor that was not finite: "x", "w", "dy", "loss"
// An instrument that a run ended too early for is "ended".
using Signature = std::array<std::string, kInstruments.size()>;
Signature signature_of(const Run& patient, const Run& twin, const Run& reference);

// In how many instruments they differ.
int distance(const Signature& a, const Signature& b);

// At most so far above the reference, and so much underflow, is what a cured run ends with. The largest cured and the
// smallest sick one of ten seeds: labs/clinic/model.h.
inline constexpr double kCuredPct = 8, kCuredUnderflowPct = 1;
inline constexpr double kSickTwin = 2;  // times healthy
// In so many steps a healthy run saturates at most, all tensors together, over seeds 1 to 10.
inline constexpr std::size_t kUsualOverflow = 194;

}  // namespace fp8lab::clinic
