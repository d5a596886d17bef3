// The fields of L9 and what they are set to.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/layer_probe.h"
#include "core/base/fields.h"

namespace fp8lab::speed {

inline constexpr std::array<std::string_view, 3> kProducts = {"fprop", "dgrad", "wgrad"};
inline constexpr std::string_view kLive = "live";  // the source that is this machine's GPU
inline constexpr int kAlignment = 16;              // what M, N and K are padded to a multiple of
inline constexpr int kAlignEdge = 4096;            // M, N and K of the table of refusals

// A linear layer: x (m, k), w (n, k), dy (m, n).
struct Layer {
    int m = 0, n = 0, k = 0;
    bool operator==(const Layer&) const = default;
};
inline constexpr Layer kNotebook{32, 3072, 768};  // a widely used FP8 notebook's, at its batch
inline constexpr Layer kMiddle{4096, 4096, 1024};

struct Params {
    std::string source, over = "none";  // over: the recording that is laid over
    std::string recipe = "delayed", fast_accum = "fprop", casts = "x+w", data = "normal", view = "sweep",
                n3 = "4096";
    int m = 8192, n = 16384, k = 4096;
    int m_off = 0, n_off = 0, k_off = 0;
    int groups = 1, repeats = 20;
    bool pad = false, show_amdahl = true;
    bool operator==(const Params&) const = default;

    Layer layer() const { return {m + m_off, n + n_off, k + k_off}; }
    bool off() const { return m_off != 0 || n_off != 0 || k_off != 0; }
};

int padded(int value);  // the next multiple of kAlignment
Layer padded(const Layer& layer);

// What is measured of `layer` with these settings.
LayerProbe probe_of(const Params& params, const Layer& layer);

// `recordings`: id and label of each.
std::vector<Field> fields_of(Params& params, std::span<const Choice> recordings);

}  // namespace fp8lab::speed
