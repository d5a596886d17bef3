// The clinic's data: what can be wrong with a training, and the changes that a learner can try. A case is one of these
// diseases behind a letter; the diagnoses are the modes of failure (core/run/modes.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/nn/train_spec.h"

namespace fp8lab::clinic {

inline constexpr int kSteps = 2000;
inline constexpr double kDefaultRate = 2e-3;
inline constexpr std::string_view kLetters = "ABCDEFGH";
constexpr char small_letter(std::size_t place) { return static_cast<char>(kLetters[place] - 'A' + 'a'); }

// A training of the clinic: teacher 32-64-64-1, batch 256, AdamW with a cosine schedule, 2,000 steps, one arm.
struct RunSpec {
    std::string base = "delayed";  // the row of the recipe
    std::vector<std::pair<std::string, std::string>> options = {};
    double lr = kDefaultRate;
    std::string poison = {}, init = {};  // as --poison and --init
    std::uint64_t seed = 1;
    bool operator==(const RunSpec&) const = default;

    std::string recipe() const;  // "delayed:history=1024"
    TrainSpec train_spec() const;
};

// The same training in BF16, and that at the default learning rate: what a healthy run comes to.
RunSpec twin_of(RunSpec spec);
RunSpec reference_of(const RunSpec& spec);

enum class Disease {
    small_gradients,
    nan_overflow,
    no_master,
    long_history,
    high_rate,
    zero_scale,
    few_bits,
    narrow_sum,
    healthy
};
inline constexpr std::size_t kDiseases = 9;

struct DiseaseInfo {
    Disease disease;
    std::string_view name;       // on the chip of a case that is solved: a word of the diagnosis
    std::string_view diagnosis;  // the mode of failure that is right
    std::string_view behind;     // what is wrong, said once the case is solved or revealed
    std::string_view base, option, value;
    double lr = kDefaultRate;
    std::string_view poison = {}, init = {};
};
const DiseaseInfo& info_of(Disease disease);
RunSpec patient_of(Disease disease, std::uint64_t seed);

// Which disease is behind each letter. Deal 0 is the order of the enum; above kHealthyDeals a healthy run takes the place of the
// narrow accumulator.
inline constexpr int kMostSeed = 10;  // what is told of the cases was measured on these
inline constexpr int kMostDeal = 999, kHealthyDeals = 499;
// Deal 0 has the order of the diagnoses, and scenes, claim cards and examples tell of its cases. So a learner begins with
// another one, in which no letter is at its place.
inline constexpr int kOpenDeal = 0, kFirstDeal = 57;
std::array<Disease, kLetters.size()> dealt(int deal);

// One change of the training. `base`: of the recipe; its options stay where the new base has them, less those that it
// `drops`. An option that the recipe does not have changes nothing.
struct Treatment {
    std::string_view id, label;
    std::string_view name;  // in Transformer Engine, or of the option of `train`
    std::string_view base = {}, option = {}, value = {};
    double lr = 0;  // 0: as it is
    std::string_view drops = {};
};
std::span<const Treatment> treatments();
// Throws usage_error(where, ...) listing them.
const Treatment& find_treatment(std::string_view id, std::string_view where);
RunSpec treated(RunSpec spec, const Treatment& treatment);

}  // namespace fp8lab::clinic
