#include "kernels/probe.h"

#include "core/base/error.h"

namespace fp8lab::cuda {
namespace {

struct Mode {
    const char* name;
    GemmSpec spec;
};

constexpr int kSize = 256;  // of the products that are tried

GemmSpec fp8(Element a, Element b, Element d, ScaleMode a_scale, ScaleMode b_scale, bool fast) {
    return {Product::nt, kSize, kSize, kSize, a, b, d, a_scale, b_scale, fast};
}

std::vector<Mode> modes() {
    const Element e4 = Element::e4m3, e5 = Element::e5m2, wide = Element::bf16;
    const ScaleMode tensor = ScaleMode::tensor, row = ScaleMode::row, vec = ScaleMode::vec128,
                    block = ScaleMode::block128;
    return {{"BF16", {Product::nt, kSize, kSize, kSize, wide, wide, wide}},
            {"FP8 E4M3, tensor scales", fp8(e4, e4, wide, tensor, tensor, false)},
            {"FP8 E4M3, tensor scales, fast accumulation", fp8(e4, e4, wide, tensor, tensor, true)},
            {"FP8 E5M2 x E4M3 to FP32, tensor scales", fp8(e5, e4, Element::f32, tensor, tensor, false)},
            {"FP8 E4M3, row scales (OUTER_VEC)", fp8(e4, e4, wide, row, row, false)},
            {"FP8 E4M3, 1x128 x 128x128 scales", fp8(e4, e4, wide, vec, block, false)},
            {"FP8 E4M3, 1x128 x 1x128 scales", fp8(e4, e4, wide, vec, vec, false)},
            {"MXFP8 E4M3, 1x32 E8M0 scales", fp8(e4, e4, wide, ScaleMode::mx32, ScaleMode::mx32, false)}};
}

}  // namespace

std::vector<Capability> probe_capabilities(const Lt& lt, cudaStream_t stream) {
    std::vector<Capability> found;
    for (const Mode& mode : modes()) {
        Capability capability{mode.name, true, ""};
        try {
            const GemmPlan plan(lt, mode.spec, stream);
        } catch (const Error& refused) {
            capability = {mode.name, false, refused.why()};
        }
        found.push_back(std::move(capability));
    }
    return found;
}

}  // namespace fp8lab::cuda
