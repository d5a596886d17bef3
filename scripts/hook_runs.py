#!/usr/bin/env python3
"""Small PyTorch trainings with a known fault, logged with assets/hooks/fp8lab_hook.py:
    scripts/hook_runs.py run FAULT SEED OUT.jsonl    trains 240 steps on a CPU, about 3 seconds
    scripts/hook_runs.py check                       compares the hook's counters with a count element by element

Two SwiGLU blocks of width 64 (hidden 128) between two linear layers; x is N(0, 1), 256 rows, fresh in every step; the
target is tanh(x A). AdamW, lr 2e-3. FAULT:
    healthy  none
    poison   row 7 of x is multiplied by 1e6 in step 150
    align    from step 150 on, gate and up of channel 5 of the second block point in one direction and grow by 1.09 a
             step; nothing reads the channel, so that the loss does not tell
    both     the row in step 60, and align: assets/runs/tiny-swiglu.jsonl is `run both 1`
    small    the loss is multiplied by 1e-4
Needs PyTorch and nothing else. Exit status 1: a check failed; 77: there is no PyTorch. tests/unit/cli/watch_hook_test.cpp
runs it.
"""
import copy
import io
import json
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError as error:
    print(f"hook_runs: {error}", file=sys.stderr)
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "assets/hooks"))
import fp8lab_hook  # noqa: E402

STEPS, ALIGNED, CHANNEL, HIDDEN = 240, 150, 5, 128


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.n = torch.nn.LayerNorm(64)
        self.gate_up = torch.nn.Linear(64, 2 * HIDDEN, bias=False)
        self.down = torch.nn.Linear(HIDDEN, 64, bias=False)

    def forward(self, x):
        gate, up = self.gate_up(self.n(x)).chunk(2, -1)
        return x + self.down(torch.nn.functional.silu(gate) * up)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = torch.nn.Linear(32, 64)
        self.b = torch.nn.ModuleList([Block(), Block()])
        self.out = torch.nn.Linear(64, 4)

    def forward(self, x):
        x = self.inp(x)
        for block in self.b:
            x = block(x)
        return self.out(x)


class Alignment:
    """One channel of a block: gate and up get the same direction and a growing length; down does not read it."""

    def __init__(self, block):
        self.block = block
        row = block.gate_up.weight[CHANNEL].detach().clone()
        self.direction = row / row.norm()

    @torch.no_grad()
    def grow(self, steps):
        row = self.direction * min(200.0, 1.5 * 1.09 ** steps)
        self.block.gate_up.weight[CHANNEL] = row
        self.block.gate_up.weight[HIDDEN + CHANNEL] = row
        self.block.down.weight[:, CHANNEL] = 0


def run(fault, seed, path):
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model = Model()
    teacher = torch.randn(32, 4) * .3
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    watch = fp8lab_hook.Watch(model, path, overwrite=True, recipe="bf16")
    poisoned = {"poison": 150, "both": 60}.get(fault)
    aligns, alignment = fault in ("align", "both"), None
    for step in range(STEPS):
        x = torch.randn(256, 32)
        if step == poisoned:
            x[7] *= 1e6
        if aligns and step >= ALIGNED:
            alignment = alignment or Alignment(model.b[1])
            alignment.grow(step - ALIGNED)
        loss = ((model(x) - torch.tanh(x @ teacher)) ** 2).mean() * (1e-4 if fault == "small" else 1)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0 if poisoned else 1e3)
        optimizer.step()
        watch.step(loss)
    watch.close()


def counted_by_hand(values):
    """The members of a record, element by element."""
    out = dict(n=len(values), nan=0, inf=0, zero=0, amax=0.0, amin=0.0, top=None, bins=[])
    binades, sizes = {}, []
    for value in values:
        if math.isnan(value):
            out["nan"] += 1
        elif math.isinf(value):
            out["inf"] += 1
        elif value == 0:
            out["zero"] += 1
        else:
            sizes.append(abs(value))
            binade = math.frexp(value)[1] - 1
            binades[binade] = binades.get(binade, 0) + 1
    if sizes:
        top = max(binades)
        bins = [0] * 64
        for binade, count in binades.items():
            bins[min(63, top - binade)] += count
        while bins[-1] == 0:
            bins.pop()
        out.update(amax=max(sizes), amin=min(sizes), top=top, bins=bins)
    return out


def records(path):
    lines = [json.loads(line) for line in open(path)]
    return lines[0], {(line["step"], line["tensor"]): line for line in lines if "tensor" in line}, [
        (line["step"], line["loss"]) for line in lines if "loss" in line]


failed = []


def check(what, got, expected):
    if got != expected:
        failed.append(what)
        print(f"hook_runs: {what}: {got} instead of {expected}", file=sys.stderr)


def check_record(what, line, values):
    expected = counted_by_hand(values)
    check(what, {key: line[key] for key in expected}, expected)


def check_tensors():
    torch.manual_seed(3)
    wide = torch.randn(4000) * torch.exp2(torch.randn(4000) * 12)
    for name, tensor in {
        "normal": torch.randn(50, 40), "wide": wide, "bf16": wide.bfloat16(), "fp16": torch.randn(300).half(),
        "powers": torch.exp2(torch.arange(-149., 128.)), "one": torch.tensor([-3.0]), "none": torch.zeros(0),
        "zeros": torch.zeros(7), "odd": torch.tensor([math.nan, math.inf, -math.inf, 0.0, -2.0, 1e-45]),
        "not contiguous": torch.randn(20, 30).t()[::2],
    }.items():
        line = fp8lab_hook.record(fp8lab_hook.count(tensor))
        check_record(name, line, tensor.flatten().tolist())


def check_watch(path):
    """Two micro-batches a step, every second step, one layer of two, an evaluation in between."""
    torch.manual_seed(4)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    watch = fp8lab_hook.Watch(model, path, every=2, names="2", recipe="bf16", note="mine")
    seen = {}

    def keep(kind):
        return lambda module, inputs, outputs: seen.setdefault((watch.now, kind), []).extend(
            (inputs if kind == "x" else outputs)[0].flatten().tolist())

    model[2].register_full_backward_hook(keep("dy"))
    losses = []
    for step in range(4):
        seen[step, "w"] = model[2].weight.flatten().tolist()
        total = 0
        for _ in range(2):
            x = torch.randn(3, 6)
            seen.setdefault((step, "x"), []).extend(torch.tanh(model[0](x)).flatten().tolist())
            loss = (model(x) ** 2).mean()
            loss.backward()
            total += float(loss.detach())
        with torch.no_grad():
            model(torch.randn(3, 6) * 1e3)
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
        watch.step(total)
        losses.append((step, total))
    watch.close()
    model(torch.randn(3, 6)).sum().backward()
    head, lines, logged = records(path)
    check("head", (head["fp8lab"], head["every"], head["kinds"], head["recipe"], head["note"]), (1, 2, "xwd", "bf16", "mine"))
    check("records", sorted(lines), sorted((step, f"2.{kind}") for step in (0, 2) for kind in ("x", "w", "dy")))
    check("losses", logged, losses)
    for (step, name), line in lines.items():
        check_record(f"step {step}, {name}", line, seen[step, name.split(".")[1]])


class Odd(torch.nn.Module):
    """A layer that is called by keyword and gives a list, as no torch.nn.Linear does."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, *, input):
        return [input * self.weight, "no tensor"]


def check_refused(what, error, call):
    try:
        call()
        check(what, "nothing", error.__name__)
    except error as raised:
        check(what, "fp8lab_hook: " in str(raised), True)


def check_construction(folder):
    linear, path = torch.nn.Linear(2, 2), folder + "/there.jsonl"
    for every in (0, -1, 1.5):
        check_refused(f"every={every}", ValueError, lambda: fp8lab_hook.Watch(linear, path, every=every))
    check_refused("kinds", ValueError, lambda: fp8lab_hook.Watch(linear, path, kinds="g"))
    check_refused("names", ValueError, lambda: fp8lab_hook.Watch(linear, path, names="none"))
    check("refused before a file is made", pathlib.Path(path).exists(), False)
    pathlib.Path(path).write_text("kept")
    check_refused("a file that exists", FileExistsError, lambda: fp8lab_hook.Watch(linear, path))
    check_refused("its InspectLogger", FileExistsError, lambda: fp8lab_hook.InspectLogger(path))
    check("the old log", pathlib.Path(path).read_text(), "kept")
    fp8lab_hook.Watch(linear, path, overwrite=True).close()
    check("overwrite", records(path)[0]["fp8lab"], 1)


def check_goes_on(folder):
    """What a hook cannot log does not stop the training."""
    odd = torch.nn.ModuleDict(dict(odd=Odd()))
    path = folder + "/odd.jsonl"
    watch = fp8lab_hook.Watch(odd, path, types=(Odd,))
    for loss in (torch.tensor([1.0, 3.0]), object()):
        odd["odd"](input=torch.tensor([2.0, 4.0]))[0].sum().backward()
        watch.step(loss)
    watch.close()
    head, lines, losses = records(path)
    check_record("by keyword", lines[0, "odd.x"], [2.0, 4.0])
    check_record("a list", lines[0, "odd.dy"], [1.0, 1.0])
    check("a loss of two elements is their mean", losses, [(0, 2.0)])

    model = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False))
    watch = fp8lab_hook.Watch(model, folder + "/copies.jsonl")
    saved = io.BytesIO()
    torch.save(model, saved)
    saved.seek(0)
    x, copies = torch.ones(1, 2), [copy.deepcopy(model), torch.load(saved, weights_only=False)]
    for each in [model, *copies]:
        loss = each(x).sum()
    model(x).sum().backward()
    watch.step(loss)
    loss.backward()  # of a copy: not logged either
    late = model(x * 3).sum()
    watch.step()
    late.backward()
    watch.step()
    watch.close()
    lines = records(folder + "/copies.jsonl")[1]
    check("copies are not logged", lines[0, "0.x"]["n"], 4)
    check("a gradient behind its step is left out", sorted(lines), [(0, "0.dy"), (0, "0.w"), (0, "0.x"), (1, "0.w"), (1, "0.x")])

    counts, fp8lab_hook.count = fp8lab_hook.count, lambda tensor: 1 / 0
    watch = fp8lab_hook.Watch(model, folder + "/raises.jsonl")
    model(x).sum().backward()
    fp8lab_hook.count = counts
    watch.file.close()  # as a disk that is full
    watch.step(1.0)
    watch.close()


def check_crash(path):
    """Losses between two logged steps are written where an exception ends the program; layers not called are told."""
    code = f"""
import sys, torch
sys.path.insert(0, {str(pathlib.Path(fp8lab_hook.__file__).parent)!r})
from fp8lab_hook import Watch
model = torch.nn.ModuleDict(dict(a=torch.nn.Linear(2, 2), never=torch.nn.Linear(2, 2)))
watch = Watch(model, {path!r}, every=100)
for step in range(5):
    model["a"](torch.ones(1, 2)).sum().backward()
    watch.step(torch.tensor(float(step)))
raise SystemError
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    check("the end", ended.returncode, 1)
    check("the layer that is not called", "nothing is logged of: never" in ended.stderr, True)
    check("losses of a crash", records(path)[2], [(step, float(step)) for step in range(5)])


def check_inspect_logger(path):
    logger = fp8lab_hook.InspectLogger(path)
    logger.log_scalar("a_gradient_cur_amax", torch.tensor(2.5e-9), 3, level=20)
    lines = [json.loads(line) for line in open(path)]
    check("InspectLogger", lines, [{"fp8lab": 1}, {"step": 3, "name": "a_gradient_cur_amax",
                                                 "value": float(torch.tensor(2.5e-9))}])


def main(arguments):
    if arguments == ["check"]:
        with tempfile.TemporaryDirectory() as folder:
            check_tensors()
            check_watch(folder + "/watch.jsonl")
            check_inspect_logger(folder + "/inspect.jsonl")
            check_construction(folder)
            check_goes_on(folder)
            check_crash(folder + "/crash.jsonl")
        return 1 if failed else 0
    if len(arguments) != 4 or arguments[0] != "run":
        print(__doc__, file=sys.stderr)
        return 2
    run(arguments[1], int(arguments[2]), arguments[3])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
