// Recipes with which exported code is tested: every row, and texts that take another way through the export.
#pragma once

#include <iterator>
#include <string>
#include <vector>

#include "core/scaling/recipe.h"

namespace fp8lab::test {

inline constexpr const char* kOtherWays[] = {"delayed:history=1",
                                             "delayed:history=2:algo=most_recent",
                                             "delayed:history=3:algo=ema0.9",
                                             "delayed:algo=p99",
                                             "delayed:margin=2:interval=2:pow2=1",
                                             "delayed:zero_amax=inf",
                                             "delayed:fwd=bf16",
                                             "delayed:bwd=bf16",
                                             "current:fwd=e3m4:bwd=e4m3ieee",
                                             "current:fwd=e4m3fnuz:bwd=e5m2fnuz",
                                             "current:fwd=fp16:bwd=tf32",
                                             "current:fwd=e2m1:margin=-4",
                                             "current:amax=p99.5:pow2=1",
                                             "current:zero_amax=inf:out=fp32:wgrad=bf16",
                                             "current:margin=-3:overflow=nonsaturate",
                                             "unscaled:overflow=nonsaturate",
                                             "unscaled:fwd=e3m4:bwd=e4m3ieee:overflow=nonsaturate",
                                             "unscaled:fwd=e5m2fnuz:bwd=e4m3fnuz:overflow=nonsaturate",
                                             "unscaled:fwd=int8:bwd=e2m3",
                                             "current:wgrad_in=bf16",
                                             "current:wgrad_in=mxfp8:fprop_in=nvfp4",
                                             "current:round_bwd=stochastic",
                                             "rowwise:bwd=e4m3:pow2=1",
                                             "rowwise:colsrc=rowwise",
                                             "rowwise:bwd=bf16",
                                             "rowwise:bwd=e4m3",
                                             "rowwise:bwd=e4m3:pow2=1:out=fp32",
                                             "rowwise:bwd=e4m3:wgrad_in=bf16",
                                             "current:fwd=e5m2",
                                             "current:out=fp32",
                                             "current:bwd=e4m3:pow2=1:out=fp32",
                                             "current:dgrad_in=rowwise:out=fp32",
                                             "current:wgrad_in=fp32:out=fp32",
                                             "mxfp8:out=fp32",
                                             "mxfp8:mxrule=floor:out=fp32",
                                             "mxfp8:wgrad_in=bf16",
                                             "mxfp8:wgrad_in=fp32:out=fp32",
                                             "block128:pow2=0",
                                             "nvfp4-te:rht=bf16",
                                             "block128:pow2=0:margin=1",
                                             "block128:fake=1",
                                             "block128:colsrc=rowwise",
                                             "mxfp8:mxrule=floor",
                                             "mxfp8:mxrule=even:bwd=e5m2",
                                             "mxfp8:fake=1",
                                             "mxfp4:mxrule=even",
                                             "mxfp6-e2m3:mxrule=floor",
                                             "nvfp4:target=4",
                                             "nvfp4:target=4or6:round_bwd=nearest",
                                             "nvfp4:w2d=1:target=4or6",
                                             "nvfp4:rht=1:round_bwd=nearest",
                                             "nvfp4-te:rht=bf16:round_bwd=nearest",
                                             "nvfp4-te:colsrc=rowwise",
                                             "int8:round_bwd=stochastic",
                                             "current:fake=1"};

inline std::vector<std::string> exported_recipes() {
    std::vector<std::string> out;
    for (const Recipe& recipe : recipes()) out.push_back(recipe.name);
    out.insert(out.end(), std::begin(kOtherWays), std::end(kOtherWays));
    return out;
}

}  // namespace fp8lab::test
