#!/usr/bin/env python3
"""Writes inspect_numpy.json: five tensors of the sample under four recipes, computed with numpy.

Casts are made here from the formats' definitions in float64: the values of a format as a sorted table, each element to
the nearest, ties to the even code. tests/unit/cli/inspect_test.cpp compares. Run it after the sample was trained anew:
    python3 tests/unit/cli/inspect_numpy.py
"""
import json
import pathlib
import struct

import numpy as np

HERE = pathlib.Path(__file__).parent
SAMPLE = HERE.parents[2] / "assets/models/transformer-600.safetensors"
TENSORS = ["act.blocks.4.attention.p", "adam.v.embedding.weight", "blocks.2.gate_up.weight", "dact.head",
           "grad.blocks.1.norm1.weight"]


def read(path):
    data = path.read_bytes()
    start = 8 + struct.unpack_from("<Q", data)[0]
    head = json.loads(data[8:start])
    out = {}
    for name in TENSORS:
        begin, end = head[name]["data_offsets"]
        out[name] = np.frombuffer(data[start + begin:start + end], np.float32).reshape(head[name]["shape"])
    return out


def table(exponent_bits, mantissa_bits, bias, largest):
    """All values of a format that are not negative, in the order of their codes."""
    values = []
    for code in range(1 << (exponent_bits + mantissa_bits)):
        exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        value = (mantissa if exponent == 0 else mantissa + (1 << mantissa_bits)) * 2.0 ** (
            max(exponent, 1) - bias - mantissa_bits)
        if value <= largest:
            values.append(value)
    return np.array(values)


E4M3, E5M2, E2M1 = table(4, 3, 7, 448), table(5, 2, 15, 57344), table(2, 1, 1, 6)


def cast(x, values):
    size = np.minimum(np.abs(x).astype(np.float64), values[-1])
    above = np.clip(np.searchsorted(values, size), 1, len(values) - 1)
    low, high = values[above - 1], values[above]
    middle = (low + high) / 2
    up = (size > middle) | ((size == middle) & (above % 2 == 0))
    return np.sign(x) * np.where(up, high, low)


def one_scale(x, values):
    scale = np.float32(values[-1]) / np.abs(x).max()
    inverse = np.float32(1) / scale
    return (cast(x * scale, values).astype(np.float32) * inverse).astype(np.float32)


def blocks(x, width, scale_of):
    out = np.empty_like(x)
    for row in range(x.shape[0]):
        for begin in range(0, x.shape[1], width):
            block = x[row, begin:begin + width]
            out[row, begin:begin + width] = scale_of(block)
    return out


def mxfp8(x):
    def block(b):
        amax = np.abs(b).max()
        if amax == 0:
            return b
        exponent = np.ceil(np.log2(np.float64(amax / np.float32(448))))
        scale = np.float32(2.0 ** exponent)
        return (cast(b / scale, E4M3) * scale).astype(np.float32)
    return blocks(x, 32, block)


def measure(x, q):
    x, q = x.astype(np.float64), q.astype(np.float64)
    signal, noise = (x ** 2).sum(1), ((x - q) ** 2).sum(1)
    rows = signal > 0
    with np.errstate(divide="ignore"):
        worst = 10 * np.log10(signal[rows] / noise[rows]).min()
    return {"sqnr_db": 10 * np.log10(signal.sum() / noise.sum()),
            "underflow_pct": 100 * ((x != 0) & (q == 0)).mean(),
            "worst_row_db": worst}


result = {}
for name, x in read(SAMPLE).items():
    matrix = x.reshape(-1, x.shape[-1]) if x.ndim > 1 else x.reshape(1, -1)
    sizes = np.abs(matrix[matrix != 0]).astype(np.float64)
    entry = {"amax": sizes.max(), "least": sizes.min(), "binades": np.log2(sizes.max()) - np.log2(sizes.min()),
             "zeros_pct": 100 * (matrix == 0).mean(), "values": x.size}
    unscaled = cast(matrix, E4M3).astype(np.float32)
    for recipe, q in {"unscaled": unscaled, "current": one_scale(matrix, E4M3), "e5m2": one_scale(matrix, E5M2),
                      "mxfp8": mxfp8(matrix)}.items():
        for metric, value in measure(matrix, q).items():
            entry[f"{metric}_{recipe}"] = value
    result[name] = {key: float(value) for key, value in entry.items() if np.isfinite(value)}
(HERE / "inspect_numpy.json").write_text(json.dumps(result, indent=1) + "\n")
