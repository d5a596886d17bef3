#!/usr/bin/env python3
"""What transformers and compressed-tensors read in checkpoints that `fp8lab convert` wrote.

  scripts/convert_parity.py decode FOLDER OUT   FOLDER has one folder a layout, e4m3-block128 and so on; writes the values of
                                                their matrices as OUT/LAYOUT.safetensors, in the dtype that the library
                                                gives, and the versions of the libraries as OUT/versions.json
  scripts/convert_parity.py input FILE          a small model in BF16 to convert
  scripts/convert_parity.py golden FP8LAB       makes tests/unit/convert/golden anew

tests/unit/convert compares the values with those of the program's own reader: those that are committed, and, where the
libraries are installed, those that they give today. Needs torch, safetensors, transformers and compressed-tensors. Exit
status 3: one of them is missing.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import compressed_tensors
    import safetensors
    import torch
    import transformers
    from compressed_tensors.compressors.base import BaseCompressor
    from compressed_tensors.quantization import QuantizationConfig
    from safetensors.torch import load_file, save_file
    from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight
except ImportError as error:
    print(f"convert_parity: {error}")
    sys.exit(3)

LAYOUTS = "e4m3-block128", "e4m3-row", "mxfp8", "nvfp4", "mxfp4"
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/unit/convert/golden"


def make_input(path):
    """Student's t with 5 degrees of freedom and rows of different size, as weights are; k is three times larger."""
    torch.manual_seed(1)

    def weight(rows, cols, size=0.02):
        t = torch.distributions.StudentT(5.0).sample((rows, cols))
        return (t * size * torch.exp2(0.5 * torch.randn(rows, 1))).to(torch.bfloat16)

    layer = "model.layers.0."
    save_file({
        layer + "self_attn.q_proj.weight": weight(128, 64),
        layer + "self_attn.k_proj.weight": weight(128, 64, 0.06),
        layer + "self_attn.v_proj.weight": weight(128, 64),
        layer + "mlp.down_proj.weight": weight(72, 160),
        layer + "input_layernorm.weight": torch.ones(64, dtype=torch.bfloat16),
        "model.embed_tokens.weight": weight(8, 64),
        "lm_head.weight": weight(8, 64),
    }, path, metadata={"format": "pt"})


def decode(folder, out):
    out.mkdir(parents=True, exist_ok=True)
    for layout in LAYOUTS:
        stored = load_file(folder / layout / "model.safetensors")
        config = json.loads((folder / layout / "config.json").read_text())["quantization_config"]
        values = {}
        for name in (name for name in stored if "proj.weight" in name):
            base, ending = name.rsplit(".", 1)
            if ending not in ("weight", "weight_packed"):
                continue
            own = {key[len(base) + 1:]: value for key, value in stored.items() if key.startswith(base + ".")}
            if config["quant_method"] == "fp8":
                value = _dequantize_fp8_weight(own["weight"], own["weight_scale_inv"], config["weight_block_size"],
                                               torch.float32)
            else:
                scheme = QuantizationConfig.model_validate(config).config_groups["group_0"]
                value = BaseCompressor.get_value_from_registry(config["format"]).decompress(own, scheme)["weight"]
            values[name] = value.contiguous()
        save_file(values, out / f"{layout}.safetensors")
    versions = {"compressed-tensors": compressed_tensors.__version__, "safetensors": safetensors.__version__,
                "torch": torch.__version__, "transformers": transformers.__version__}
    (out / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


def make_golden(program):
    GOLDEN.mkdir(parents=True, exist_ok=True)
    make_input(GOLDEN / "model.safetensors")
    with tempfile.TemporaryDirectory() as scratch:
        for layout in LAYOUTS:
            subprocess.run([program, "convert", GOLDEN / "model.safetensors", "--to", layout, "-o",
                            pathlib.Path(scratch) / layout], check=True, stdout=subprocess.DEVNULL)
        decode(pathlib.Path(scratch), GOLDEN)


if __name__ == "__main__":
    words = sys.argv[1:]
    if len(words) == 3 and words[0] == "decode":
        decode(pathlib.Path(words[1]), pathlib.Path(words[2]))
    elif len(words) == 2 and words[0] == "input":
        make_input(pathlib.Path(words[1]))
    elif len(words) == 2 and words[0] == "golden":
        make_golden(words[1])
    else:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
