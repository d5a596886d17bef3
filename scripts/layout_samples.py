#!/usr/bin/env python3
"""Makes small checkpoints in published layouts, with the values that they hold: tests/unit/tensors/layouts.

Each layout is built here from its definition (core/tensors/scales/layouts.h names the sources), without the program's own
reader: codes are drawn at random, and the right values follow from them in Python's arithmetic. Only the standard
library is needed. Run it without arguments after a change; the files that it makes are committed.

  NAME.safetensors        a checkpoint; NAME/ where it needs a configuration or an index beside it
  right.safetensors       the values, as F32, named NAME:TENSOR
  expected.json           per checkpoint and tensor: "values" (with the words for its scales), "refused" or "aside" with
                          the reason, "scale", "unscaled"; and the notes that are said of the file
"""

import json
import math
import pathlib
import random
import struct

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/unit/tensors/layouts"
RIGHT, EXPECTED = {}, {}


def f32(x):
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def minifloat(code, exponent_bits, mantissa_bits, bias, special):
    """`special`: the code without its sign -> NaN or Inf; None: it is an ordinary number."""
    sign = -1.0 if code >> (exponent_bits + mantissa_bits) & 1 else 1.0
    magnitude = code & ((1 << (exponent_bits + mantissa_bits)) - 1)
    odd = special(magnitude, code)
    if odd is not None:
        return sign * odd
    exponent, mantissa = magnitude >> mantissa_bits, magnitude & ((1 << mantissa_bits) - 1)
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


def e4m3(c):
    return minifloat(c, 4, 3, 7, lambda m, _: math.nan if m == 0x7F else None)


def e5m2(c):
    return minifloat(c, 5, 2, 15, lambda m, _: math.inf if m == 0x7C else math.nan if m > 0x7C else None)


def fnuz(exponent_bits, mantissa_bits, bias):
    return lambda c: minifloat(c, exponent_bits, mantissa_bits, bias, lambda m, code: math.nan if code == 0x80 else None)


def small(exponent_bits, mantissa_bits, bias):
    return lambda c: minifloat(c, exponent_bits, mantissa_bits, bias, lambda m, code: None)


def e8m0(byte):
    return math.nan if byte == 255 else 2.0 ** (byte - 127)


E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
DECODE = {"F8_E4M3": e4m3, "F8_E5M2": e5m2, "F8_E4M3FNUZ": fnuz(4, 3, 8), "F8_E5M2FNUZ": fnuz(5, 2, 16),
          "F6_E2M3": small(2, 3, 1), "F6_E3M2": small(3, 2, 3), "I8": lambda c: c - 256 if c > 127 else c}


class Tensor:
    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, list(shape), bytes(data)


def floats(values, shape, dtype="F32"):
    if dtype == "BF16":  # the values have 8 bits of mantissa or fewer
        return Tensor(dtype, shape, b"".join(struct.pack("<f", v)[2:] for v in values))
    return Tensor(dtype, shape, struct.pack(f"<{len(values)}{'d' if dtype == 'F64' else 'f'}", *values))


def codes(dtype, shape, seed, finite=True):
    r = random.Random(seed)
    out = []
    while len(out) < math.prod(shape):
        c = r.randrange(256)
        if not finite or dtype == "I8" or math.isfinite(DECODE[dtype](c)):
            out.append(c)
    return Tensor(dtype, shape, out)


def fp4(shape, seed, dtype, stored=None):
    """Two a byte, the low half first. Returns the tensor and its values."""
    r = random.Random(seed)
    nibbles = [r.randrange(16) for _ in range(math.prod(shape))]
    packed = [a | b << 4 for a, b in zip(nibbles[::2], nibbles[1::2])]
    if stored is None:
        stored = list(shape) if dtype == "F4" else [*shape[:-1], shape[-1] // 2]
    return Tensor(dtype, stored, packed), [E2M1[n] for n in nibbles]


def fp6(dtype, shape, seed):
    """Four in three bytes, the first in the lowest bits."""
    r = random.Random(seed)
    sixes = [r.randrange(64) for _ in range(math.prod(shape))]
    packed = b"".join(
        (a | b << 6 | c << 12 | d << 18).to_bytes(3, "little") for a, b, c, d in zip(*[iter(sixes)] * 4))
    return Tensor(dtype, shape, packed), [DECODE[dtype](c) for c in sixes]


def scale_values(n, seed):
    r = random.Random(seed)
    return [f32(2.0 ** r.uniform(-8, -2)) for _ in range(n)]


def bf16_values(n, seed):
    r = random.Random(seed)
    return [2.0 ** r.randint(-8, -2) * (1 + r.randrange(128) / 128) for _ in range(n)]


def expand(shape, extents, scales):
    """The scale of each element, by its index: no reader's loop."""
    counts = [-(-n // b) for n, b in zip(shape, extents)]
    out = []
    for i in range(math.prod(shape)):
        index = []
        for n in reversed(shape):
            index.insert(0, i % n)
            i //= n
        at = 0
        for k, b, n in zip(index, extents, counts):
            at = at * n + k // b
        out.append(scales[at])
    return out


def product(values, scales):
    return [f32(v * s) for v, s in zip(values, scales)]


def decoded(tensor):
    return [DECODE[tensor.dtype](c) for c in tensor.data]


def write(path, tensors, metadata=None):
    header = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, t in tensors.items():
        header[name] = {"dtype": t.dtype, "shape": t.shape, "data_offsets": [at, at + len(t.data)]}
        at += len(t.data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t.data for t in tensors.values()))


def sample(name, tensors, expect, metadata=None, beside=None, notes=()):
    """`expect`: per tensor ("values", words, values), ("refused", why), ("aside", what), "scale", "unscaled", "other"."""
    path = OUT / (f"{name}/model.safetensors" if beside else f"{name}.safetensors")
    write(path, tensors, metadata)
    for file, content in (beside or {}).items():
        (path.parent / file).write_text(json.dumps(content) + "\n")
    record(name, path, expect, notes)


def record(name, path, expect, notes=()):
    entry = {"file": str(path.relative_to(OUT)), "tensors": {}, "notes": list(notes)}
    for tensor, e in expect.items():
        e = (e,) if isinstance(e, str) else e
        entry["tensors"][tensor] = {"role": e[0], "says": e[1] if len(e) > 1 else ""}
        if len(e) > 2:
            RIGHT[f"{name}:{tensor}"] = floats(e[2], [len(e[2])])
    EXPECTED[name] = entry


def scaled(name, codes_name, scale_name, shape, scale_shape, extents, words, dtype="F8_E4M3", scale="F32", **more):
    """One weight of 8-bit codes and its scales."""
    seed = sum(map(ord, name))
    w = codes(dtype, shape, seed)
    n = math.prod(scale_shape)
    if scale in ("F8_E8M0", "U8"):
        stored = [random.Random(seed + k).randrange(110, 128) for k in range(n)]
        s, values = Tensor(scale, scale_shape, stored), [e8m0(b) for b in stored]
    else:
        values = (bf16_values if scale == "BF16" else scale_values)(n, seed + 1)
        s = floats(values, scale_shape, scale)
    right = product(decoded(w), expand(shape, extents, values))
    sample(name, {codes_name: w, scale_name: s},
           {codes_name: ("values", f"{scale_name}, {words}", right), scale_name: "scale"}, **more)


W, M = "layers.0.down.weight", "layers.0.down"
BLOCKS = "one scale per {} x {}".format


def fp8():
    inv = W + "_scale_inv"
    scaled("hf-fp8", W, inv, [3, 200], [1, 2], [3, 128], BLOCKS(128, 128))
    scaled("hf-fp8-ragged-rows", W, inv, [200, 3], [2, 1], [128, 3], BLOCKS(128, 128), scale="BF16")
    scaled("hf-fp8-e8m0", W, inv, [3, 200], [1, 2], [3, 128], BLOCKS(128, 128), scale="F8_E8M0")
    scaled("hf-fp8-u8", W, inv, [3, 200], [1, 2], [3, 128], BLOCKS(128, 128), scale="U8")
    scaled("hf-fp8-one", W, inv, [3, 5], [1, 1], [3, 5], "one scale")
    scaled("hf-fp8-experts", "mlp.experts.gate_up_proj", "mlp.experts.gate_up_proj_scale_inv", [2, 3, 140], [2, 1, 2],
           [1, 3, 128], "one scale per 1 x 128 x 128")
    ct = W + "_scale"
    scaled("ct-fp8-tensor", W, ct, [4, 6], [1], [4, 6], "one scale")
    scaled("ct-fp8-scalar", W, ct, [4, 6], [], [4, 6], "one scale")
    scaled("ct-fp8-channel", W, ct, [4, 6], [4, 1], [1, 6], "one scale per row", scale="BF16")
    scaled("ct-fp8-channel-1d", W, ct, [4, 6], [4], [1, 6], "one scale per row")
    scaled("ct-fp8-group", W, ct, [3, 256], [3, 2], [1, 128], BLOCKS(1, 128))
    scaled("ct-fp8-experts", "experts.w1.weight", "experts.w1.weight_scale", [2, 4, 6], [2, 4, 1], [1, 1, 6],
           "one scale per 1 x 1 x 6")
    scaled("ct-fp8-expert", "experts.w1.weight", "experts.w1.weight_scale", [2, 4, 6], [2, 1, 1], [1, 4, 6],
           "one scale per 1 x 4 x 6")
    scaled("ct-fp8-experts-2d", "experts.w1.weight", "experts.w1.weight_scale", [2, 4, 6], [2, 4], [1, 1, 6],
           "one scale per 1 x 1 x 6")
    scaled("ct-fp8-conv", "conv.weight", "conv.weight_scale", [5, 2, 2, 3, 3], [5, 1, 1, 1, 1], [1, 2, 2, 3, 3],
           "one scale per 1 x 2 x 2 x 3 x 3")
    scaled("ct-fp8-e5m2", W, ct, [4, 6], [4, 1], [1, 6], "one scale per row", dtype="F8_E5M2")
    scaled("mo-fp8-pb-wo", W, ct, [3, 200], [1, 1, 2, 1], [3, 128], BLOCKS(128, 128))
    scaled("mxfp8", W, ct, [3, 64], [3, 2], [1, 32], BLOCKS(1, 32), scale="U8")
    scaled("mxfp8-e8m0", W, ct, [3, 64], [3, 2], [1, 32], BLOCKS(1, 32), scale="F8_E8M0")
    scaled("ds4", W, M + ".scale", [3, 200], [1, 2], [3, 128], BLOCKS(128, 128), scale="F8_E8M0")
    scaled("ds4-base", W, M + ".scale", [3, 200], [1, 2], [3, 128], BLOCKS(128, 128))
    scaled("torchao-rows", M + "._weight_qdata", M + "._weight_scale", [4, 6], [4, 1], [1, 6], "one scale per row",
           metadata={W: '{"_type": "Float8Tensor"}'})
    scaled("int8", W, ct, [4, 6], [4, 1], [1, 6], "one scale per row", dtype="I8")
    scaled("int8-1d", W, ct, [4, 6], [4], [1, 6], "one scale per row", dtype="I8", scale="BF16")
    scaled("fnuz-e4m3", W, ct, [4, 6], [1], [4, 6], "one scale", dtype="F8_E4M3FNUZ")
    scaled("fnuz-e5m2", W, ct, [4, 6], [1], [4, 6], "one scale", dtype="F8_E5M2FNUZ")
    w, s = codes("F8_E4M3", [4, 6], 3), scale_values(1, 3)
    sample("comfy", {W: w, M + ".scale_weight": floats(s, []), M + ".scale_input": floats([0.5], []),
                     "scaled_fp8": Tensor("F8_E4M3", [0], b"")},
           {W: ("values", M + ".scale_weight, one scale", product(decoded(w), s * 24)), M + ".scale_weight": "scale",
            M + ".scale_input": ("aside", "a scale of activations"), "scaled_fp8": ("aside", "a note of ComfyUI")})


def nvfp4(name, codes_name, scale_name, global_name, divides, extra=None, metadata=None):
    shape = [4, 32]
    w, values = fp4(shape, sum(map(ord, name)), "U8")
    s = codes("F8_E4M3", [4, 2], 11)
    s.data = bytes(b & 0x7F for b in s.data)
    g = f32(28402.623 if divides else 3.5208e-5)
    right = product(values, expand(shape, [1, 16], decoded(s)))
    right = [f32(v / g if divides else v * g) for v in right]
    tensors = {codes_name: w, scale_name: s, global_name: floats([g], [1] if divides else [])}
    expect = {codes_name: ("values", f"{scale_name}, one scale per 1 x 16, a global scale", right),
              scale_name: "scale", global_name: "scale"}
    for aside, what in (extra or {}).items():
        tensors[aside] = floats([300.0], [1])
        expect[aside] = ("aside", what)
    sample(name, tensors, expect, metadata)


def mx4(name, codes_name, scale_name, dtype, scale, shape=(4, 64), stored=None, extents=(1, 32), words=None,
        scale_shape=None):
    shape = list(shape)
    w, values = fp4(shape, sum(map(ord, name)), dtype, stored)
    scale_shape = scale_shape or [*shape[:-1], shape[-1] // 32]
    bytes_ = [random.Random(k).randrange(110, 128) for k in range(math.prod(scale_shape))]
    right = product(values, expand(shape, list(extents), [e8m0(b) for b in bytes_]))
    sample(name, {codes_name: w, scale_name: Tensor(scale, scale_shape, bytes_)},
           {codes_name: ("values", f"{scale_name}, {words or BLOCKS(*extents)}", right), scale_name: "scale"})


def four_and_six():
    nvfp4("ct-nvfp4", W + "_packed", W + "_scale", W + "_global_scale", True,
          {M + ".input_global_scale": "a scale of activations"})
    nvfp4("mo-nvfp4", W, W + "_scale", W + "_scale_2", False, {M + ".input_scale": "a scale of activations"})
    nvfp4("torchao-nvfp4", M + "._weight_qdata", M + "._weight_scale", M + "._weight_per_tensor_scale", False,
          metadata={W: '{"_type": "NVFP4Tensor", "_data": {"is_swizzled_scales": false}}'})
    mx4("ct-mxfp4", W + "_packed", W + "_scale", "U8", "U8")
    mx4("ds4-fp4-i8", W, M + ".scale", "I8", "F8_E8M0")
    mx4("ds4-fp4-f4", W, M + ".scale", "F4", "F8_E8M0")
    mx4("gpt-oss", "mlp.mlp1_weight.blocks", "mlp.mlp1_weight.scales", "U8", "U8", (2, 3, 64), [2, 3, 2, 16],
        (1, 1, 32), "one scale per 1 x 1 x 32")
    mx4("gpt-oss-hf", "mlp.experts.down_proj_blocks", "mlp.experts.down_proj_scales", "U8", "U8", (2, 3, 64),
        [2, 3, 2, 16], (1, 1, 32), "one scale per 1 x 1 x 32")
    for dtype in ("F6_E2M3", "F6_E3M2"):
        w, values = fp6(dtype, [3, 64], 7)
        exponents = [120, 121, 122, 123, 124, 125]
        right = product(values, expand([3, 64], [1, 32], [e8m0(b) for b in exponents]))
        sample(dtype.lower().replace("_", "-"), {W: w, W + "_scale": Tensor("F8_E8M0", [3, 2], exponents)},
               {W: ("values", W + "_scale, one scale per 1 x 32", right), W + "_scale": "scale"})


def fused():
    def qkv(name, config, ok, rows=(8, 4, 4), why=None):
        w, s = codes("F8_E4M3", [sum(rows), 6], 5), scale_values(3, 5)
        q, scale = "attn.qkv_proj.weight", "attn.qkv_proj.weight_scale"
        each = [s[k] for k, n in enumerate(rows) for _ in range(6 * n)]
        expect = ("values", scale + ", one scale per part", product(decoded(w), each)) if ok else ("refused", why)
        notes = [] if ok else [f"not read: {why}: {q}"]
        sample(name, {q: w, scale: floats(s, [3])}, {q: expect, scale: "scale"}, notes=notes,
               beside={"config.json": config} if config else None)

    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 8}
    qkv("fused-qkv", heads, True)
    qkv("fused-qkv-nested", {"text_config": {**heads, "head_dim": 2}}, True)
    qkv("fused-qkv-384", {**heads, "num_key_value_heads": 1, "head_dim": 64}, True, (256, 64, 64))
    text = "3 scales for a fused matrix: how many of its 16 rows each part has is in config.json only, "
    qkv("fused-qkv-alone", None, False, why=text + "which is not there")
    qkv("fused-qkv-other", {**heads, "head_dim": 16}, False, why=text + "and that one has other sizes")


def refused():
    def one(name, tensors, expect, why, metadata=None, beside=None):
        bad = [t for t, e in expect.items() if e == ("refused", why)]
        sample(name, tensors, expect, metadata, beside, [f"not read: {why}: {', '.join(bad)}"])

    i32 = Tensor("I32", [2, 3], bytes(24))
    why = "INT4 in words of 32 bits, as GPTQ and AWQ pack it, is not read"
    one("gptq", {M + ".g_idx": i32, M + ".qweight": i32, M + ".qzeros": i32, M + ".scales": floats([1] * 6, [2, 3])},
        {M + ".qweight": ("refused", why), M + ".qzeros": ("aside", "zero points"),
         M + ".g_idx": ("aside", "an order of groups"), M + ".scales": "scale"}, why)
    why = "INT4 in words of 32 bits, as compressed-tensors packs it, is not read"
    one("ct-int4", {W + "_packed": i32, W + "_scale": floats([1, 2], [2, 1], "BF16"),
                    W + "_shape": Tensor("I64", [2], bytes(16))},
        {W + "_packed": ("refused", why), W + "_scale": "scale", W + "_shape": ("aside", "the shape of packed codes")},
        why)
    why = "the 4-bit codes of bitsandbytes are not read"
    one("bnb-nf4", {W: Tensor("U8", [32, 1], bytes(32)), W + ".absmax": floats([1], [1]),
                    W + ".quant_map": floats([0] * 16, [16]),
                    W + ".quant_state.bitsandbytes__nf4": Tensor("U8", [3], b"{ }")},
        {W: ("refused", why), W + ".absmax": ("aside", "scales of bitsandbytes"),
         W + ".quant_map": ("aside", "a code book"),
         W + ".quant_state.bitsandbytes__nf4": ("aside", "a state of bitsandbytes")}, why)
    why = "the INT8 codes of bitsandbytes are not read"
    one("bnb-int8", {W: Tensor("I8", [2, 3], bytes(6)), M + ".SCB": floats([1, 1], [2])},
        {W: ("refused", why), M + ".SCB": ("aside", "scales of bitsandbytes")}, why)
    ok, s = codes("F8_E4M3", [4, 6], 9), scale_values(4, 9)
    good = {"ok.weight": ok, "ok.weight_scale": floats(s, [4, 1])}
    read = {"ok.weight": ("values", "ok.weight_scale, one scale per row", product(decoded(ok), expand([4, 6], [1, 6], s))),
            "ok.weight_scale": "scale"}
    why = "scales of shape (3, 2) fit no division of (4, 6)"
    one("misfit", {**good, W: ok, W + "_scale": floats([1] * 6, [3, 2])},
        {**read, W: ("refused", why), W + "_scale": "scale"}, why)
    why = "scales of shape (2, 1) fit two divisions of (150, 4)"
    one("two-divisions", {W: codes("F8_E4M3", [150, 4], 2), W + "_scale_inv": floats([1, 2], [2, 1])},
        {W: ("refused", why), W + "_scale_inv": "scale"}, why,
        beside={"config.json": {"quantization_config": {"quant_method": "fp8", "weight_block_size": [96, 2]}}})
    four, _ = fp4([2, 32], 1, "U8")
    ones = Tensor("F8_E4M3", [2, 2], [0x38] * 4)
    why = "2 global scales"
    one("two-globals", {**good, W: four, W + "_scale": ones, W + "_scale_2": floats([1, 2], [2])},
        {**read, W: ("refused", why), W + "_scale": "scale", W + "_scale_2": "scale"}, why)
    why = "its scales are swizzled for a GPU (is_swizzled_scales)"
    q = M + "._weight_qdata"
    one("torchao-swizzled", {q: four, M + "._weight_scale": ones},
        {q: ("refused", why), M + "._weight_scale": "scale"}, why,
        metadata={W: '{"_type": "NVFP4Tensor", "_data": {"is_swizzled_scales": true}}'})
    why = "codes with a zero point, which is not 0, are not read"
    one("int8-zero-point", {W: codes("I8", [2, 3], 1), W + "_scale": floats([1, 2], [2, 1]),
                            W + "_zero_point": Tensor("I8", [2, 1], [0, 3])},
        {W: ("refused", why), W + "_scale": "scale", W + "_zero_point": ("aside", "zero points")}, why)
    why = "U8 codes with scales in F32 are not known"
    one("u8-f32", {W: Tensor("U8", [2, 4], bytes(8)), W + "_scale": floats([1, 2], [2, 1])},
        {W: ("refused", why), W + "_scale": "scale"}, why)
    why = "FP4 codes without a scale"
    one("packed-alone", {W + "_packed": four}, {W + "_packed": ("refused", why)}, why)


def others():
    w, s = codes("I8", [2, 3], 1), [0.5, 2.0]
    sample("int8-zero-point-0", {W: w, W + "_scale": floats(s, [2, 1]), W + "_zero_point": Tensor("I8", [2, 1], [0, 0])},
           {W: ("values", W + "_scale, one scale per row", product(decoded(w), expand([2, 3], [1, 3], s))),
            W + "_scale": "scale", W + "_zero_point": ("aside", "zero points")})
    w = codes("F8_E4M3", [5, 4], 8)
    odd = [math.nan, math.inf, 0.0, 2.0**-140, -2.0]
    sample("odd-scales", {W: w, W + "_scale": floats(odd, [5, 1])},
           {W: ("values", W + "_scale, one scale per row", product(decoded(w), expand([5, 4], [1, 4], odd))),
            W + "_scale": "scale"})
    w = codes("F8_E4M3", [2, 3], 4)
    sample("plain", {W: w, M + ".bias": codes("F8_E4M3", [3], 4), "norm.weight": floats([1, 2], [2])},
           {W: ("unscaled", "codes without a scale", decoded(w)), M + ".bias": ("unscaled", "codes without a scale"),
            "norm.weight": ("values", "", [1, 2])})
    sample("scale-beside-bf16", {W: floats([1, 2], [1, 2], "BF16"), W + "_scale": floats([4], [1])},
           {W: ("values", "", [1, 2]), W + "_scale": "scale"},
           notes=["a scale stands beside values that are no codes: it is not applied: " + W])
    sample("scale-of-norm", {"norm.weight": floats([1, 2], [2]), "norm.scale": floats([3, 4], [2])},
           {"norm.weight": ("values", "", [1, 2]), "norm.scale": ("values", "", [3, 4])})
    w, s = codes("F8_E4M3", [4, 6], 12), scale_values(4, 12)
    right = ("values", W + "_scale, one scale per row", product(decoded(w), expand([4, 6], [1, 6], s)))
    tensors, expect = {W: w, W + "_scale": floats(s, [4, 1])}, {W: right, W + "_scale": "scale"}
    group = {"quant_method": "compressed-tensors", "config_groups": {
        "group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}}
    sample("config-agrees", tensors, expect, beside={"config.json": {"quantization_config": group}})
    sample("config-differs", tensors, expect,
           beside={"config.json": {"model_type": "llama"}, "hf_quant_config.json": {"quantization": {"quant_algo": "NVFP4"}}},
           notes=["hf_quant_config.json says 4 bits, one scale per 1 x 16; the tensors have 8 bits, one scale per row, "
                  "and are read so: " + W])
    w, s = codes("F8_E4M3", [150, 4], 13), scale_values(2, 13)
    sample("config-decides", {W: w, W + "_scale_inv": floats(s, [2, 1])},
           {W: ("values", W + "_scale_inv, one scale per 96 x 4", product(decoded(w), expand([150, 4], [96, 4], s))),
            W + "_scale_inv": "scale"},
           beside={"config.json": {"quantization_config": {"quant_method": "fp8", "weight_block_size": [96, 96]}}})
    w, s = codes("F8_E4M3", [4, 6], 14), scale_values(1, 14)
    folder = OUT / "shards"
    files = {W: "model-00001-of-00002.safetensors", W + "_scale": "model-00002-of-00002.safetensors"}
    write(folder / files[W], {W: w})
    write(folder / files[W + "_scale"], {W + "_scale": floats(s, [1])})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}) + "\n")
    right = ("values", W + "_scale, one scale", product(decoded(w), s * 24))
    record("shards", folder / "model.safetensors.index.json", {W: right, W + "_scale": "scale"})
    record("shard-alone", folder / files[W], {W: right})
    record("scales-alone", folder / files[W + "_scale"], {W + "_scale": "scale"})


def shipped():
    """assets/models/three-scales.safetensors: the same FP4 codes with a dividing and a multiplying global scale, and FP8."""
    r = random.Random(1)
    w = codes("F8_E4M3", [64, 128], 1)
    w.data = bytes([0x7E]) + w.data[1:]  # 448
    packed, _ = fp4([64, 128], 2, "U8")
    packed.data = bytes([0x77]) + packed.data[1:]  # 6 and 6
    blocks = Tensor("F8_E4M3", [64, 8], [0x7E] + [r.randrange(0x30, 0x70) for _ in range(511)])
    write(OUT.parents[3] / "assets/models/three-scales.safetensors",
          {"fp8.weight": w, "fp8.weight_scale_inv": floats([0.002], [1, 1]),
           "ct.weight_packed": packed, "ct.weight_scale": blocks, "ct.weight_global_scale": floats([8960.0], [1]),
           "mo.weight": packed, "mo.weight_scale": blocks, "mo.weight_scale_2": floats([1 / 8960.0], [])})


if __name__ == "__main__":
    shipped()
    fp8()
    four_and_six()
    fused()
    refused()
    others()
    write(OUT / "right.safetensors", RIGHT)
    (OUT / "expected.json").write_text(json.dumps(EXPECTED, indent=1) + "\n")
