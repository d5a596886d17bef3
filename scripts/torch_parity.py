#!/usr/bin/env python3
"""Repeats trainings of this program in PyTorch and compares: scripts/torch_parity.py FOLDER [--device cuda|cpu]

FOLDER: what `build/release/parity_dump FOLDER` wrote (tests/parity/parity.cpp). The decoder here is made of PyTorch's
own operations, with our initial weights and batches. Two comparisons: our float64 training with PyTorch in float64, and
our recipe fp32 with PyTorch in FP32 (TF32 off).
  logits      of the first batch, before any step: largest difference over largest logit
  losses      of 50 steps: largest relative difference
  parameters  after these steps: relative L2 of the tensor that differs most
Needs PyTorch 1.13 or newer and no other package. Exit status 1: a bar is missed; 2: wrong usage.
"""
import argparse
import json
import math
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F

BARS = {"fp64": (1e-10, 1e-8, 1e-6), "fp32": (1e-5, 1e-4, 1e-3)}
DTYPES = {"fp64": torch.float64, "fp32": torch.float32}


def read_tensors(path):
    """The tensors of a safetensors file by name, and its metadata."""
    data = path.read_bytes()
    start = 8 + struct.unpack_from("<Q", data)[0]
    head = json.loads(data[8:start])
    metadata = head.pop("__metadata__", {})
    tensors = {}
    for name, info in head.items():
        begin, end = info["data_offsets"]
        dtype = {"F32": torch.float32, "F64": torch.float64}[info["dtype"]]
        tensors[name] = torch.frombuffer(bytearray(data[start + begin:start + end]), dtype=dtype).reshape(info["shape"])
    return tensors, metadata


class Options:
    """The options of `fp8lab train` that a checkpoint names; those that it leaves out have their defaults."""

    def __init__(self, command_line):
        words = command_line.split()
        given = dict(zip(words[::2], words[1::2]))
        for name in ("heads", "kv-heads", "blocks", "steps"):
            setattr(self, name.replace("-", "_"), int(given["--" + name]))
        self.kv_heads = self.kv_heads or self.heads
        self.warmup = int(given.get("--warmup", 100))
        self.lr, self.decay = float(given["--lr"]), float(given["--weight-decay"])
        self.betas = float(given.get("--beta1", 0.9)), float(given.get("--beta2", 0.999))
        self.eps, self.clip = float(given.get("--eps", 1e-8)), float(given["--clip"])
        if given["--schedule"] != "cosine" or given["--optimizer"] != "adamw":
            sys.exit("torch_parity: only --schedule cosine and --optimizer adamw are compared")

    def learning_rate(self, step):
        """A linear warm-up times a cosine from the peak to 2 % of it."""
        cosine = 0.5 * (1 + math.cos(math.pi * step / self.steps))
        return self.lr * min(1, (step + 1) / self.warmup) * (0.02 + 0.98 * cosine)


def norm(x, gain):
    if hasattr(F, "rms_norm"):
        return F.rms_norm(x, gain.shape, gain, 1e-6)
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * gain


def rotate(x):
    """RoPE over halves, base 10,000; x (batch, heads, context, head size)."""
    context, size = x.shape[-2:]
    frequencies = 10000 ** (-torch.arange(0, size, 2, dtype=torch.float64, device=x.device) / size)
    angles = torch.arange(context, dtype=torch.float64, device=x.device)[:, None] * frequencies
    angles = torch.cat([angles, angles], -1)
    first, second = x.chunk(2, -1)
    return x * angles.cos().to(x.dtype) + torch.cat([-second, first], -1) * angles.sin().to(x.dtype)


def attend(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    future = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(future, -math.inf)
    return scores.softmax(-1) @ v


def attention(x, p, block, options):
    size, group = x.shape[-1] // options.heads, options.heads // options.kv_heads
    qkv = F.linear(norm(x, p[block + "norm1"]), p[block + "qkv.w"]).unflatten(-1, (-1, size)).transpose(1, 2)
    q, k, v = qkv.split([options.heads, options.kv_heads, options.kv_heads], 1)
    k, v = rotate(k).repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    return F.linear(attend(rotate(q), k, v).transpose(1, 2).flatten(2), p[block + "out.w"])


def decoder(p, tokens, options):
    x = F.embedding(tokens, p["embedding"])
    for number in range(1, options.blocks + 1):
        block = f"{number}."
        x = x + attention(x, p, block, options)
        gate, up = F.linear(norm(x, p[block + "norm2"]), p[block + "gate_up.w"]).chunk(2, -1)
        x = x + F.linear(F.silu(gate) * up, p[block + "down.w"])
    return F.linear(norm(x, p["norm"]), p.get("head.w", p["embedding"]))


def train(start, tokens, targets, options, dtype, device):
    """Logits of the first batch, losses, parameters after the last step, and in how many steps the clip acted."""
    p = {name: value.to(device, dtype).clone().requires_grad_() for name, value in start.items()}
    optimizer = torch.optim.AdamW(p.values(), betas=options.betas, eps=options.eps, weight_decay=options.decay)
    first, losses, clipped = None, [], 0
    for step in range(len(tokens)):
        logits = decoder(p, tokens[step].to(device), options)
        first = logits.detach() if first is None else first
        loss = F.cross_entropy(logits.flatten(0, 1), targets[step].to(device).flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        clipped += bool(torch.nn.utils.clip_grad_norm_(p.values(), options.clip) > options.clip)
        optimizer.param_groups[0]["lr"] = options.learning_rate(step)
        optimizer.step()
        losses.append(loss.detach())
    return first.flatten(0, 1), torch.stack(losses), {name: value.detach() for name, value in p.items()}, clipped


def deviations(ours, theirs):
    """(quantity, deviation) of logits, losses and parameters, as the text above defines them."""
    (logits, losses, parameters), (their_logits, their_losses, their_parameters) = ours, theirs

    def wide(tensor):
        return tensor.cpu().double()

    yield "logits", float((wide(logits) - wide(their_logits)).abs().max() / wide(their_logits).abs().max())
    yield "losses", float(((wide(losses) - wide(their_losses)) / wide(their_losses)).abs().max())
    errors = {name: float((wide(value) - wide(their_parameters[name])).norm() / wide(their_parameters[name]).norm())
              for name, value in parameters.items()}
    worst = max(errors, key=lambda name: math.inf if math.isnan(errors[name]) else errors[name])
    yield f"parameters ({worst})", errors[worst]


def compare(folder, device):
    """Prints the rows of one model. Returns whether all bars are met."""
    start, metadata = read_tensors(folder / "start" / "1-fp32.safetensors")
    end, _ = read_tensors(folder / "end" / "1-fp32.safetensors")
    ours, _ = read_tensors(folder / "ours.safetensors")
    options = Options(metadata["command_line"])
    tokens, targets = ours["tokens"].long(), ours["targets"].long()
    last = {"fp32": {name: end[name] for name in start}, "fp64": {name: ours["end." + name] for name in start}}
    met = True
    for precision, bars in BARS.items():
        *theirs, clipped = train(start, tokens, targets, options, DTYPES[precision], device)
        mine = ours[precision + ".logits"], ours[precision + ".losses"], last[precision]
        for (quantity, deviation), bar in zip(deviations(mine, theirs), bars):
            ok = deviation <= bar  # not of NaN
            met = met and ok
            verdict = "ok" if ok else "MISSED"
            print(f"{folder.name:9} {precision:9} {quantity:26} {deviation:9.1e}  {bar:7.0e}  {verdict}")
    acted = clipped > 0 and options.warmup > 1
    print(f"{folder.name:9} {len(tokens)} steps, loss {theirs[1][0]:.4f} to {theirs[1][-1]:.4f}; gradients clipped in "
          f"{clipped}, warm-up in {min(options.warmup - 1, len(tokens))}{'' if acted else '  MISSED: both must act'}")
    return met and acted


def main():
    parser = argparse.ArgumentParser(usage="torch_parity.py FOLDER [--device cuda|cpu]")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    models = sorted(path.parent for path in arguments.folder.glob("*/ours.safetensors"))
    if not models:
        parser.error(f"{arguments.folder} has no */ours.safetensors; parity_dump writes them")
    torch.set_float32_matmul_precision("highest")
    if hasattr(F, "scaled_dot_product_attention"):  # the fused kernels of FP32 may multiply in TF32, in pieces
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
    device = torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU"
    print(f"PyTorch {torch.__version__} on {device}, {', '.join(path.name for path in models)}")
    print(f"{'model':9} {'precision':9} {'quantity':26} {'deviation':>9}  {'bar':>7}")
    met = [compare(path, arguments.device) for path in models]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
