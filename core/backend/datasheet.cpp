#include "core/backend/datasheet.h"

#include <algorithm>
#include <array>

namespace fp8lab {

const Datasheet* datasheet(std::string_view gpu) {
    static constexpr std::array kSheets = {Datasheet{"NVIDIA H200", 989, 1979, 4.8},
                                           Datasheet{"NVIDIA H100 80GB HBM3", 989, 1979, 3.35},
                                           Datasheet{"NVIDIA H100 PCIe", 756, 1513, 2.0}};
    const auto found =
        std::ranges::find_if(kSheets, [&](const Datasheet& sheet) { return gpu.starts_with(sheet.name); });
    return found == kSheets.end() ? nullptr : &*found;
}

}  // namespace fp8lab
