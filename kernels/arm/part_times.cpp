#include "kernels/arm/part_times.h"

namespace fp8lab::cuda {

std::vector<std::pair<std::string, double>> PartTimes::read(bool multiplies_in_update) const {
    std::vector<std::pair<std::string, double>> out = {
        {"GEMM", 0},
        {"casts", 0},
        {"attention", 0},
        {"norms and the rest", 0},
        {multiplies_in_update ? "wgrad + optimiser" : "optimiser", 0},
        {"bookkeeping", 0}};
    for (std::size_t i = 1; i < parts_.size(); ++i)
        out[static_cast<std::size_t>(parts_[i])].second +=
            static_cast<double>(elapsed_ms(events_[i - 1], events_[i]));
    std::erase_if(out, [](const auto& part) { return part.second == 0; });  // the model has none
    return out;
}

}  // namespace fp8lab::cuda
