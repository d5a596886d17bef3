// A claim card's experiment, repeated: used by `run --claim` and the test of the cards.
#pragma once

#include <string>
#include <vector>

#include "core/lesson/claim.h"
#include "labs/course/exercise_run.h"

namespace fp8lab {

struct FoundNumber {
    Finding card;
    double now = 0;  // NaN: the lab has no such number after the experiment
    bool agrees() const;
};

// Does the experiment on a new lab and reads its numbers, in the order of Claim::findings. Labs that train do train.
// Throws as carry_out() does.
std::vector<FoundNumber> repeat_claim(const Claim& claim, const Between& between = {});
// The same of the state that the experiment left.
std::vector<FoundNumber> numbers_of(const Claim& claim, const State& after);

// The card with this id. Throws usage_error with the ids of the lab that the id begins with, or of all.
const Claim& find_claim(const std::vector<Claim>& claims, std::string_view id, const std::string& where);

}  // namespace fp8lab
