#!/usr/bin/env python3
"""Writes codes_numpy.json: what every recipe's casts make of the 256 numbers with which exported code is checked, by numpy
and ml_dtypes. Nothing of it comes from this program: the scales follow numerics.md 1.4, 1.5, 3.2 and 3.3."""
import json
import sys

import ml_dtypes
import numpy as np

F = np.float32
TYPES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn,
         "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn, "bf16": ml_dtypes.bfloat16, "fp32": F}
LARGEST = {"e4m3": 448, "e5m2": 57344, "e2m3": 7.5, "e3m2": 28, "e2m1": 6, "int8": 127}


def sample(rows, cols):
    out = []
    for i in range(256):
        n = 40503 * i % 65537 - 32768
        if i % 3 == 0:
            n = n // 2048 * 2048
        out.append(n * 2.0**(7 * i % 11 + i // 16 - 24))
    return np.array(out, F).reshape(rows, cols)


def codes(y, name):
    if name in LARGEST:
        y = np.clip(y, -LARGEST[name], LARGEST[name])
    q = np.rint(y).astype(np.int8) if name == "int8" else y.astype(TYPES[name])
    return q.tobytes().hex()


def tiles(x, height, width):
    """The largest magnitude of each block, at each of its elements."""
    out = np.zeros_like(x)
    for r in range(0, x.shape[0], height):
        for c in range(0, x.shape[1], width):
            out[r:r + height, c:c + width] = np.abs(x[r:r + height, c:c + width]).max()
    return out


def down_to_power(x):
    return np.exp2(np.floor(np.log2(x.astype(np.float64)))).astype(F)


def scaled(x, name, height, width, pow2=False):
    scale = F(LARGEST[name]) / tiles(x, height, width)
    return codes(x * (down_to_power(scale) if pow2 else scale), name)


def mx(x, name):
    exponent = np.ceil(np.log2((tiles(x, 1, 32) / F(LARGEST[name])).astype(np.float64)))
    return codes(x * np.exp2(-exponent).astype(F), name)


def nvfp4(x, height, width):
    amax = tiles(x, height, width)
    outer = F(2688) / amax.max()
    inner = np.minimum(amax * F(outer * (F(1) / F(6))), F(448)).astype(TYPES["e4m3"]).astype(F)
    factor = np.where(inner == 0, F(0), F(1) / np.where(inner == 0, F(1), inner * (F(1) / outer)))
    return codes(x * factor, "e2m1")


def rotated(x):
    signs = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1], F)
    h = np.array([[1]], F)
    for _ in range(4):
        h = np.block([[h, h], [h, -h]])
    y = x.astype(np.float64).reshape(-1, 16) * signs @ h / 4
    return y.astype(F).reshape(x.shape)


def delayed(name):
    """The scale after casts of the sample times 4, 1 and 2 is that of the largest amax in the history of 16."""
    amax = np.abs(sample(2, 128)).max() * F(4)
    return codes(sample(2, 128) * (F(LARGEST[name]) / amax), name)


def main():
    x, w = sample(2, 128), sample(32, 8)
    every = x.shape
    out = {
        "fp32": {"": codes(x, "fp32")},
        "bf16": {"": codes(x, "bf16")},
        "delayed": {"_x": delayed("e4m3"), "_dy": delayed("e5m2")},
        "current": {"_x_w": scaled(x, "e4m3", *every), "_dy": scaled(x, "e5m2", *every)},
        "rowwise": {"_x_w": scaled(x, "e4m3", 1, 128), "_dy": scaled(x, "e5m2", 1, 128)},
        "block128": {"_x_dy": scaled(x, "e4m3", 1, 128, True), "_w": scaled(w, "e4m3", 128, 128, True)},
        "mxfp8": {"": mx(x, "e4m3")},
        "mxfp6-e2m3": {"": mx(x, "e2m3")},
        "mxfp6-e3m2": {"": mx(x, "e3m2")},
        "mxfp4": {"": mx(x, "e2m1")},
        "nvfp4": {"_x_w": nvfp4(x, 1, 16)},
        "nvfp4-te": {"_x_fprop": nvfp4(x, 1, 16), "_w": nvfp4(w, 16, 16), "_x_wgrad": nvfp4(rotated(x), 1, 16)},
        "int8": {"": scaled(x, "int8", *every)},
        "unscaled": {"_x_w": codes(x, "e4m3"), "_dy": codes(x, "e5m2")},
    }
    json.dump(out, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
