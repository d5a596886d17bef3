// The part "groups" of L18: how many rows each expert gets, the zeros that pad them to whole tiles, and recorded times of grouped
// GEMMs (core/plan/grouped.h). A recorded time belongs to its shape; nothing is estimated for another one.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/recording.h"
#include "core/figure/figure.h"
#include "core/inference/experts/groups.h"
#include "core/plan/grouped.h"
#include "labs/experts/model_routing.h"

namespace fp8lab::experts {

struct Pool {
    std::string_view id, label;
    int experts, active;
};
inline constexpr std::array kPools = {
    Pool{"own", "Own: 8 experts, 2 active", 8, 2}, Pool{"8/2", "8 experts, 2 active", 8, 2},
    Pool{"64/6", "64 experts, 6 active", 64, 6}, Pool{"256/8", "256 experts, 8 active", 256, 8}};
const Pool& find_pool(std::string_view id);  // throws usage_error

// What rows are padded to: not at all, and what FP8 (cuBLASLt), MXFP8 and DeepGEMM ask for.
inline constexpr std::array kPads = {1, 16, 32, 128};
inline constexpr int kOwnTokens = 4096;  // held-out tokens of a shipped model
inline constexpr int kManyGroups = 64;   // the most that were recorded

struct GroupsSpec {
    std::string pool = "256/8";
    int tokens = 4096;
    double skew = 0;  // no effect on the own pool
    int seed = 1;     // of the draw, or of the model
    bool operator==(const GroupsSpec&) const = default;
};
struct Groups {
    GroupsSpec spec = {};
    std::vector<int> rows = {};  // of each expert; empty: not computed
    GroupShape shape(int pad) const { return group_shape(rows, pad); }
};
class GroupsMaker {
  public:
    // own: the choices of the last block for its first tokens, at most kOwnTokens.
    Groups operator()(const GroupsSpec& spec);

  private:
    Studies studies_;
};

// The recorded times of a GPU.
struct Times {
    std::shared_ptr<const Shipped> of;
    const Recording* recording = nullptr;             // null: there is none of this name
    std::shared_ptr<const plan::GroupedGemms> gemms;  // null: the recording has none
};
Times times_of(const std::string& card);

std::string rows_title(const Groups& groups, int pad);
std::string time_title(const Times& times);
// What was not recorded: the shape that the rows have; empty where the times are of it.
std::string not_recorded(const Groups& groups);
Figure rows_figure(const Groups& groups, int pad);
Figure time_figure(const Times& times);

}  // namespace fp8lab::experts
