// Rows of a grouped GEMM: how many tokens each expert of a layer has, and the zeros that pad them to whole tiles.
#pragma once

#include <cstdint>
#include <vector>

namespace fp8lab {

// Each token draws `active` different experts: the largest of log popularity + Gumbel noise, the log popularity of an expert
// N(0, skew^2), the same for all tokens. (Efraimidis and Spirakis, "Weighted random sampling", Inf. Process. Lett. 97, 2006.)
struct GroupDraw {
    int experts = 256, active = 8, tokens = 4096;
    double skew = 0;
    std::uint64_t seed = 1;
};
std::vector<int> draw_groups(const GroupDraw& draw);

struct GroupShape {
    double zeros_pct = 0;          // (padded - rows) / padded; an expert without rows has no padding
    double empty_pct = 0;          // experts without rows
    double largest_over_mean = 0;  // rows of the busiest expert
};
// `multiple`: of the rows of each group; 1: they are not padded.
GroupShape group_shape(const std::vector<int>& rows, int multiple);
int padded_rows(int rows, int multiple);

}  // namespace fp8lab
