// How published models name the codes of a weight and its scales, and which tensors beside them are no weights. A row a
// convention; all multiply, value = code x scale, but the global scale of compressed-tensors, which divides.
//
//   row                 written by                                          source
//   torchao             torchao                                             ao: torchao/prototype/safetensors
//   compressed-tensors  llm-compressor: NVFP4, MXFP4                        compressed-tensors: compressors/nvfp4, mxfp4
//   gpt-oss             gpt-oss: MXFP4 in blocks of 16 bytes                gpt-oss: gpt_oss/torch/weights.py
//   hf-fp8              DeepSeek-V3, transformers; the name is historical   transformers: integrations/finegrained_fp8.py
//   scale               compressed-tensors' FP8, MXFP8 and INT8; ModelOpt;  vllm: quantization/modelopt.py; Model-Optimizer:
//                       newer files of ComfyUI                              modelopt/torch/export/quant_utils.py
//   comfy               ComfyUI, files with a tensor scaled_fp8             ComfyUI: its notes on quantization
//   ds4                 DeepSeek-V4                                         vllm: models/deepseek_v4.py
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fp8lab {

struct Layout {
    std::string_view id;
    std::string_view codes;        // how the name of the codes ends; empty: any name
    std::string_view scale;        // what stands there in the name of the scales
    std::string_view global = {};  // and in that of the tensor's global scale; empty: there is none
    bool divides = false;          // the global scale
    bool in_blocks = false;        // codes (.., G, 16) in U8 are FP4 of shape (.., 32 G)
    bool plain_name =
        false;  // a tensor of that name may be another parameter: it is a scale beside codes only

    // The name of the scales of these codes, or of their global scale; empty: not of this convention.
    std::string scale_of(std::string_view codes_name) const { return named(codes_name, scale); }
    std::string global_of(std::string_view codes_name) const { return named(codes_name, global); }
    // The name of the codes that have these scales; empty: not of this convention.
    std::string codes_of(std::string_view scale_name) const;

  private:
    std::string named(std::string_view codes_name, std::string_view ending) const;
};
std::span<const Layout> layouts();  // the first one whose scales are there holds

// What a tensor of that name is, where it is neither codes nor their scales: "a scale of activations"; empty: it is none
// of these. Its values are never judged.
std::string_view aside_of(std::string_view name);
// Whether a tensor is called as scales are: without its codes it is no weight either.
bool is_scale_name(std::string_view name);

// What is known by name or by a tensor beside it, and not read.
struct Unread {
    std::string_view ending;  // of the name
    std::string_view dtype;   // of it; empty: any
    std::string_view beside =
        {};                       // with this behind its name, or behind its module's, a tensor's name begins
    std::string_view scale = {};  // what stands for the ending in the name of its scales
    std::string_view why;
};
std::span<const Unread> unread_layouts();

}  // namespace fp8lab
