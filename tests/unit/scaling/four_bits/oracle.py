"""NVFP4 and MXFP4 with every switch, written from Transformer Engine's documentation and OCP's MX specification,
in numpy and with none of our code: the expected codes and scales of four_bits_test.cpp.

    python3 tests/unit/scaling/four_bits/oracle.py     writes quantiles.bin, codes.bin and checksums.csv beside itself

Inputs. Number i of a kind of data is a quantile of its distribution (4,096 of them, in BF16, drawn once with numpy)
times 1 + k / 8192, k < 1024; which ones, says a hash of i. So numpy and C++ have the same bits, and a million of
them need no file.

Casts. numerics.md 1.4 and 1.5; the rotation as core/scaling/hadamard.h defines its order of sums. Ties go to the
even code. All arithmetic is float32 but the errors that choose between 4 and 6, which are float64 in the order of
the rows of a block.
"""
import os

import numpy as np

f32, f64, u64 = np.float32, np.float64, np.uint64
KINDS = ["normal", "laplace", "student_t", "lognormal", "swiglu_h", "outlier_channel"]
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E4M3 = np.array([m * 2.0**-9 for m in range(8)] + [(8 + m) * 2.0 ** (e - 10) for e in range(1, 16) for m in range(8)])[:127]
SIGNS = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1], f32)


# ---- inputs
def to_bf16(values):
    bits = values.astype(f32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def quantiles(kind):
    rng, n = np.random.default_rng(20), 1 << 20
    if kind == "laplace":
        x = rng.laplace(size=n)
    elif kind == "student_t":
        x = rng.standard_t(3, size=n)
    elif kind == "lognormal":
        x = np.exp(1.5 * rng.standard_normal(n)) * rng.choice([-1, 1], n)
    elif kind == "swiglu_h":
        g, u = 2 * rng.standard_normal(n), 2 * rng.standard_normal(n)
        x = g / (1 + np.exp(-g)) * u
    else:
        x = rng.standard_normal(n)
    return to_bf16(np.sort(x)[128::256])


def hashed(i):  # splitmix64
    z = (i + u64(1)) * u64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> u64(30))) * u64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> u64(27))) * u64(0x94D049BB133111EB)
    return z ^ (z >> u64(31))


def matrix(kind, tables, rows, cols):
    h = hashed(np.arange(rows * cols, dtype=u64))
    table = (tables[kind].astype(np.uint32) << 16).view(f32)
    x = table[(h & u64(4095)).astype(int)] * (1 + ((h >> u64(12)) & u64(1023)).astype(f32) / f32(8192))
    x = x.astype(f32).reshape(rows, cols)
    if kind == "outlier_channel":
        x[:, 3::16] *= f32(30)
    return x


# ---- casts; a block is a row of the last axis
def nearest(grid, v):
    """Codes of the nearest values of a grid that starts at 0, ties to even, saturated."""
    middle = (grid[1:] + grid[:-1]) / 2
    v = v.astype(f64)
    code = np.searchsorted(middle, v, side="left")
    tie = (code < len(middle)) & (middle[np.minimum(code, len(middle) - 1)] == v)
    return code + (tie & (code % 2 == 1))


def rotated(x):
    y = (x.reshape(-1, 16) * SIGNS).astype(f32)
    for apart in (1, 2, 4, 8):
        pairs = y.reshape(-1, 16 // (2 * apart), 2, apart)
        low, high = pairs[:, :, 0], pairs[:, :, 1]
        y = np.stack([low + high, low - high], axis=2).reshape(-1, 16)
    y = y * f32(0.25)
    assert y.dtype == f32
    hadamard = np.array([[1.0]])
    for _ in range(4):
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    exact = (x.reshape(-1, 16).astype(f64) * SIGNS) @ hadamard / 4
    assert np.abs(y - exact).max() <= 2e-6 * np.abs(exact).max()
    return y.reshape(x.shape)


def padded(x, height, width):
    rows, cols = x.shape
    return np.pad(x, ((0, -rows % height), (0, -cols % width)))


def blocks_of(x, height, width):  # (blocks down, blocks across, height * width)
    p = padded(x, height, width)
    r, c = p.shape
    return p.reshape(r // height, height, c // width, width).transpose(0, 2, 1, 3).reshape(
        r // height, c // width, height * width)


def back_to(x, blocks, height, width):
    down, across, _ = blocks.shape
    whole = blocks.reshape(down, across, height, width).transpose(0, 2, 1, 3).reshape(down * height, across * width)
    return whole[:x.shape[0], :x.shape[1]]


def nvfp4(x, square, target):
    """Of a matrix whose rows run along K: codes (signed E2M1) and E4M3 bytes."""
    height = 16 if square else 1
    v = blocks_of(x, height, 16)
    amax = np.abs(v).max(-1)
    tensor = amax.max()
    top = f32(448 if target == "6" else 256) * f32(6)
    s = f32(min(top / tensor, np.finfo(f32).max))
    tensor_inv = f32(tensor / top)

    def one(becomes):
        scale = nearest(E4M3, amax * (s * (f32(1) / f32(becomes))))
        value = E4M3[scale].astype(f32)
        with np.errstate(divide="ignore"):
            factor = np.where(scale == 0, f32(0), np.minimum(f32(1) / (value * (f32(1) / s)), np.finfo(f32).max))
        scaled = (v * factor[..., None]).astype(f32)
        code = nearest(E2M1, np.abs(scaled))
        unit = (value * tensor_inv).astype(f32)
        back = np.copysign((E2M1[code].astype(f32) * unit[..., None]), scaled).astype(f32)
        d = v.astype(f64) - back.astype(f64)
        error = np.zeros(amax.shape)
        for k in range(v.shape[-1]):
            error += d[..., k] * d[..., k]
        return code + 8 * np.signbit(scaled), scale, error

    code, scale, error = one(4 if target == "4" else 6)
    if target == "4or6":
        code4, scale4, error4 = one(4)
        four = error4 < error
        code, scale = np.where(four[..., None], code4, code), np.where(four, scale4, scale)
    return back_to(x, code, height, 16), scale


def mxfp4(x, rule):
    v = blocks_of(x, 1, 32)
    amax = np.abs(v).max(-1)
    mantissa, exponent = np.frexp(amax.astype(f64))  # amax = (2 mantissa) 2^(exponent - 1)
    floor = exponent - 1
    if rule == "up":
        q = (amax / f32(6)).astype(f32)
        m, e = np.frexp(q.astype(f64))
        power = np.where(m == 0.5, e - 1, e)
    elif rule == "floor":
        power = floor - 2
    else:  # the significand rounded to one mantissa bit, a tie at 1.75 up to 2
        power = floor + (2 * mantissa >= 1.75) - 2
    power = np.where(amax == 0, -127, np.clip(power, -127, 127))
    scaled = (v * np.exp2(-power.astype(f64))[..., None].astype(f32)).astype(f32)
    code = nearest(E2M1, np.abs(scaled)) + 8 * np.signbit(scaled)
    return back_to(x, code, 1, 32), power + 127


# ---- the switches
def configurations():
    for along in ("cols", "rows"):
        for rht in (0, 1):
            for square in (0, 1):
                for target in ("6", "4", "4or6"):
                    yield f"nvfp4 {'16x16' if square else '1x16'} {target} {'rht' if rht else 'plain'} {along}"
            for rule in ("up", "floor", "even"):
                yield f"mxfp4 1x32 {rule} {'rht' if rht else 'plain'} {along}"


# Of the million; 1000 is no multiple of 16: partial blocks, and padding where the matrix is rotated.
MILLION = ["nvfp4 1x16 6 rht rows", "nvfp4 1x16 4 plain rows", "nvfp4 16x16 4or6 plain cols", "nvfp4 16x16 6 rht rows",
           "mxfp4 1x32 up plain rows", "mxfp4 1x32 up rht cols"]
# As data.
WHOLE = ["nvfp4 1x16 6 plain cols", "nvfp4 16x16 4or6 rht cols", "mxfp4 1x32 up plain cols"]


def cast(x, configuration):
    """Codes in the layout of x (padded along K where it is rotated) and scales, row by row of blocks."""
    name, block, how, rht, along = configuration.split()
    rows_along = along == "rows"
    k = np.ascontiguousarray(x.T) if rows_along else x
    if rht == "rht":
        k = rotated(padded(k, 1, 16))
    if block == "16x16":  # the same blocks along both; errors are summed in the order of the rows of x
        codes, scales = nvfp4(k.T if rows_along else k, True, how)
    else:
        codes, scales = nvfp4(k, False, how) if name == "nvfp4" else mxfp4(k, how)
        if rows_along:
            codes, scales = codes.T, scales.T
    return np.ascontiguousarray(codes).astype(np.uint8), np.ascontiguousarray(scales).astype(np.uint8)


def checksum(data):  # FNV-1a, 64 bits
    h = 0xCBF29CE484222325
    for byte in data.tobytes():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    tables = {kind: quantiles(kind) for kind in KINDS}
    with open(os.path.join(here, "quantiles.bin"), "wb") as out:
        for kind in KINDS:
            out.write(tables[kind].astype("<u2").tobytes())
    with open(os.path.join(here, "codes.bin"), "wb") as whole, open(os.path.join(here, "checksums.csv"), "w") as sums:
        sums.write("data,rows,cols,cast,codes,scales\n")
        for kind in KINDS:
            for side, wanted in ((256, list(configurations())), (1000, MILLION)):
                x = matrix(kind, tables, side, side)
                for configuration in wanted:
                    codes, scales = cast(x, configuration)
                    sums.write(f"{kind},{side},{side},{configuration},{checksum(codes):016x},{checksum(scales):016x}\n")
                    if side == 256 and configuration in WHOLE:  # two codes a byte, the first in the low half
                        flat = codes.reshape(-1)
                        whole.write((flat[0::2] | flat[1::2] << 4).astype(np.uint8).tobytes())
                        whole.write(scales.tobytes())


if __name__ == "__main__":
    main()
