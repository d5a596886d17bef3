#!/usr/bin/env python3
"""Trains the networks of assets/models, which L11 lowers, and experts: scripts/models.py [build/release/fp8lab] [name...]

Each is a checkpoint of `fp8lab train` without the optimiser's moments, which inference does not read.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT / "assets" / "models"
RUNS = {f"digits-s{seed}": ["--recipe", "fp32", "--task", "digits", "--seed", str(seed)] for seed in (1, 2, 3)}
RUNS["teacher-s1"] = ["--recipe", "fp32", "--task", "teacher", "--schedule", "cosine", "--seed", "1"]
for number in (1, 2, 3):
    RUNS[f"transformer-s{number}"] = [
        "--recipe", "bf16", "--model", "transformer", "--task", "text", "--schedule", "cosine", "--seed", str(number)
    ]
for number in range(1, 6):
    RUNS[f"moe-{number}"] = ["--recipe", "bf16", "--model", "moe", "--task", "text", "--seed", str(number)]


def without_moments(data: bytes) -> bytes:
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    out, kept = {"__metadata__": header.pop("__metadata__")}, b""
    for name, info in sorted(header.items()):
        if name.startswith(("m.", "v.")):
            continue
        begin, end = info["data_offsets"]
        out[name] = {**info, "data_offsets": [len(kept), len(kept) + end - begin]}
        kept += body[begin:end]
    text = json.dumps(out, separators=(",", ":"), sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + kept


def main() -> None:
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "release" / "fp8lab")
    MODELS.mkdir(parents=True, exist_ok=True)
    names = sys.argv[2:] or list(RUNS)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, "train", "--backend", "cpu", "--save", folder, *RUNS[name]], check=True)
            (saved,) = pathlib.Path(folder).glob("*.safetensors")
            (MODELS / f"{name}.safetensors").write_bytes(without_moments(saved.read_bytes()))


if __name__ == "__main__":
    main()
