#!/usr/bin/env python3
"""What assets/hooks/fp8lab_hook.py costs: steps of a transformer in PyTorch without it and logging every 1st, 10th, 100th.

    scripts/hook_cost.py [--d 2048] [--blocks 8] [--batch 4] [--tokens 2048] [--rounds 5]

Prints the median time of a step for each, over rounds that alternate; one round is 100 steps. Needs torch; takes the GPU where
there is one.
"""
import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "assets" / "hooks"))
from fp8lab_hook import Watch

STEPS = 100


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.norm, self.norm2 = heads, nn.RMSNorm(d), nn.RMSNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.gate_up, self.down = nn.Linear(d, 8 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x):
        batch, tokens, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, d))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


def main():
    options = argparse.ArgumentParser()
    for name, default in dict(d=2048, blocks=8, batch=4, tokens=2048, rounds=5).items():
        options.add_argument("--" + name, type=int, default=default)
    options = options.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1)
    model = nn.Sequential(*(Block(options.d, max(options.d // 128, 1)) for _ in range(options.blocks))).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device.type == "cuda")
    x = torch.randn(options.batch, options.tokens, options.d, device=device)
    target = torch.randn_like(x)

    def step(watch):
        with torch.autocast(device.type, torch.bfloat16):
            loss = functional.mse_loss(model(x).float(), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if watch:
            watch.step(loss.detach())

    def sync():
        if device.type == "cuda":
            torch.cuda.synchronize()

    def time_of(every, path):
        watch = Watch(model, path, every=every, overwrite=True) if every else None
        sync()
        begin = time.perf_counter()
        for _ in range(STEPS):
            step(watch)
        sync()
        took = (time.perf_counter() - begin) / STEPS * 1e3
        if watch:
            watch.close()
        return took

    for _ in range(3):
        step(None)
    times = {0: [], 100: [], 10: [], 1: []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        for _ in range(options.rounds):
            for every, taken in times.items():
                taken.append(time_of(every, path))
        size = path.stat().st_size / STEPS
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, {options.blocks} blocks, d {options.d}, "
          f"{options.batch} x {options.tokens} tokens, {4 * options.blocks} linear layers")
    bare = statistics.median(times[0])
    for every, taken in times.items():
        median = statistics.median(taken)
        print(f"{f'every {every}' if every else 'without':10} {median:8.2f} ms/step  {100 * (median / bare - 1):+6.1f} %  "
              f"({min(taken):.2f} to {max(taken):.2f})")
    print(f"{size:.0f} bytes of log a step, logged every step")


if __name__ == "__main__":
    main()
