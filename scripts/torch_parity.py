#!/usr/bin/env python3
"""Repeats trainings of this program in PyTorch and compares: scripts/torch_parity.py FOLDER [--device cuda|cpu]

FOLDER: what `build/release/parity_dump FOLDER` wrote (tests/parity/parity.cpp). The decoder here is made of PyTorch's
own operations, with our initial weights and batches. Two comparisons: our float64 training with PyTorch in float64, and
our recipe fp32 with PyTorch in FP32 (TF32 off).
  logits      of the first batch, before any step: largest difference over largest logit
  losses      of 50 steps: largest relative difference
  parameters  after these steps: relative L2 of the tensor that differs most
Of a mixture of experts the rows say in which step a token first has other experts in PyTorch: up to there losses are
compared, and parameters only where no token has. In float64 that is a miss.
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
        for name in ("experts", "active", "shared"):
            setattr(self, name, int(given.get("--" + name, 0)))
        self.balance = given.get("--balance")
        self.bias_rate, self.loss_weight = float(given.get("--bias-rate", 0)), float(given.get("--loss-weight", 0))
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


def gated_mlp(h, p, name):
    gate, up = F.linear(h, p[name + "gate_up.w"]).chunk(2, -1)
    return F.linear(F.silu(gate) * up, p[name + "down.w"])


class Chosen:
    """Of a forward pass: the experts of each block's tokens, how many tokens each has, and the loss that balances."""

    def __init__(self):
        self.experts, self.rows, self.loss = [], [], 0


def mixture(h, p, block, options, chosen):
    h = h.flatten(0, 1)
    scores = F.linear(h, p[block + "router.w"]).softmax(-1)
    experts = (scores.detach() + p[block + "router.bias"].detach()).topk(options.active, -1).indices
    gates = scores.gather(-1, experts)
    gates = gates / gates.sum(-1, keepdim=True)
    y = torch.zeros_like(h)
    for number in range(options.experts):
        tokens, place = (experts == number).nonzero(as_tuple=True)
        part = gated_mlp(h[tokens], p, f"{block}e{number}.")
        y = y.index_add(0, tokens, gates[tokens, place][:, None] * part)
    if options.shared:
        y = y + gated_mlp(h, p, block + "shared.")
    rows = torch.bincount(experts.flatten(), minlength=options.experts)
    if options.balance == "loss":
        share = rows.to(h.dtype) / rows.sum()
        chosen.loss = chosen.loss + options.loss_weight * options.experts * (share * scores.mean(0)).sum()
    chosen.experts.append(experts.sort(-1).values)
    chosen.rows.append(rows)
    return y


def decoder(p, tokens, options, chosen):
    x = F.embedding(tokens, p["embedding"])
    for number in range(1, options.blocks + 1):
        block = f"{number}."
        x = x + attention(x, p, block, options)
        h = norm(x, p[block + "norm2"])
        x = x + (mixture(h, p, block, options, chosen).reshape(h.shape) if options.experts else gated_mlp(h, p, block))
    return F.linear(norm(x, p["norm"]), p.get("head.w", p["embedding"]))


def move_biases(p, options, chosen):
    """After an update: up by the rate where an expert had fewer tokens than the mean, down where it had more."""
    for number, rows in enumerate(chosen.rows, 1):
        bias = p[f"{number}.router.bias"]
        bias.add_((rows.sum() - options.experts * rows).sign().to(bias.dtype), alpha=options.bias_rate)


def train(start, tokens, targets, options, dtype, device):
    """Logits of the first batch, losses, parameters after the last step, the experts that each step chose (steps,
    blocks, tokens, active), and in how many steps the clip acted."""
    p = {name: value.to(device, dtype).clone() for name, value in start.items()}
    trained = [value.requires_grad_() for name, value in p.items() if not name.endswith(".router.bias")]
    optimizer = torch.optim.AdamW(trained, betas=options.betas, eps=options.eps, weight_decay=options.decay)
    first, losses, choices, clipped = None, [], [], 0
    for step in range(len(tokens)):
        chosen = Chosen()
        logits = decoder(p, tokens[step].to(device), options, chosen)
        first = logits.detach() if first is None else first
        loss = F.cross_entropy(logits.flatten(0, 1), targets[step].to(device).flatten(), ignore_index=-1)
        optimizer.zero_grad()
        (loss + chosen.loss).backward()
        clipped += bool(torch.nn.utils.clip_grad_norm_(trained, options.clip) > options.clip)
        optimizer.param_groups[0]["lr"] = options.learning_rate(step)
        optimizer.step()
        losses.append(loss.detach())
        if options.experts:
            choices.append(torch.stack(chosen.experts).cpu())
            if options.balance == "bias":
                move_biases(p, options, chosen)
    choices = torch.stack(choices) if choices else None
    p = {name: value.detach() for name, value in p.items()}
    return first.flatten(0, 1), torch.stack(losses), p, choices, clipped


def first_difference(ours, theirs):
    """The first step in which a token has other experts, the number of all steps where there is none, and a sentence."""
    moved = (ours.long().sort(-1).values != theirs).any(-1)
    steps = moved.flatten(1).any(-1).nonzero().flatten()
    if len(steps) == 0:
        return len(ours), f"every token has the same experts in {len(ours)} steps"
    step = int(steps[0])
    return step, f"step {step + 1}: {int(moved[step].sum())} of {moved[step].numel()} tokens have other experts"


def deviations(ours, theirs, steps):
    """(quantity, deviation) of logits, losses and parameters, as the text above defines them; `steps` are alike."""
    (logits, losses, parameters), (their_logits, their_losses, their_parameters) = ours, theirs

    def wide(tensor):
        return tensor.cpu().double()

    yield "logits", float((wide(logits) - wide(their_logits)).abs().max() / wide(their_logits).abs().max())
    if steps > 0:
        yield "losses", float(((wide(losses) - wide(their_losses)) / wide(their_losses))[:steps].abs().max())
    if steps < len(losses):
        return
    errors = {name: float((wide(value) - wide(their_parameters[name])).norm() / wide(their_parameters[name]).norm())
              for name, value in parameters.items() if their_parameters[name].any()}
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
        *theirs, choices, clipped = train(start, tokens, targets, options, DTYPES[precision], device)
        alike = len(tokens)
        if choices is not None:
            alike, sentence = first_difference(ours[precision + ".choices"], choices)
            print(f"{folder.name:9} {precision:9} {sentence}")
            met = met and (precision == "fp32" or alike == len(tokens))
        mine = ours[precision + ".logits"], ours[precision + ".losses"], last[precision]
        for (quantity, deviation), bar in zip(deviations(mine, theirs, alike), bars):
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
