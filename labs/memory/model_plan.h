// L10's plans: what a training keeps for each parameter, in which format and where.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/choice.h"
#include "core/base/role.h"

namespace fp8lab::memory {

// The rows of the table. The first kStates are kept once per parameter.
enum class Row { weights, copy, copy_t, gradients, accumulator, master, m, v, activations, kv, workspace };
inline constexpr std::size_t kStates = 8, kRows = 11;
constexpr std::size_t index(Row row) { return static_cast<std::size_t>(row); }

struct RowInfo {
    Row row;
    std::string_view field;   // "copy_t": of the format's field; with "_at" of the place's; empty: none
    std::string_view metric;  // "gradients": before "_gb"
    std::string_view label;   // "Its transpose"
};
std::span<const RowInfo> rows();

enum class Keep { none, fp32, bf16, fp16, e4m3 };
double bytes_of(Keep format);
std::string_view id_of(Keep format);     // "e4m3"
std::string_view label_of(Keep format);  // "E4M3"
Keep keep_of(std::string_view id);       // of an id; anything else: none
std::vector<Choice> keep_choices();

enum class Place { gpu, cpu };
// How the inputs of the linear layers are kept for the backward pass. fp8_both: rows and columns, as the
// trainer of L8 does.
enum class Inputs { bf16, fp8, fp8_both };

struct Plan {
    std::string_view id, label, name, brief;  // "te", in the menu, over the bar, in sentences ("FP8")
    Role role = Role::bf16;
    std::array<Keep, kStates> states = {};
    std::array<Place, kStates> places = {};
    Inputs inputs = Inputs::bf16;
    Place inputs_at = Place::gpu;
    Keep kv = Keep::none;
    Place kv_at = Place::gpu;
    bool activations_counted = true;

    Keep& operator[](Row row) { return states[index(row)]; }
    Keep operator[](Row row) const { return states[index(row)]; }
    double bytes(Place place) const;  // per parameter
    bool infers() const;              // weights only
};

// The presets; sources: numerics.md 7.
std::span<const Plan> plans();
const Plan& find_plan(std::string_view id);
std::vector<Choice> plan_choices();

// Where an FP32 value of each weight survives an update: "master"; 16-bit weights updated directly: "bf16";
// FP8 weights without a master, whose updates round away: "none". A plan without training: "inference".
std::string_view update_path(const Plan& plan);

}  // namespace fp8lab::memory
