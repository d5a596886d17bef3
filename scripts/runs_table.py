#!/usr/bin/env python3
"""Makes assets/runs.csv and assets/docs/runs.md of what scripts/runs.sh trained: scripts/runs_table.py FOLDER

The texts take their numbers from runs.csv (core/lesson/runs.h). runs.md is the same as tables; a test holds the two to
each other. The intervals are of seeds 1 to 10; seeds 11 to 14, where they are, are only compared with them.
"""
import json
import math
import pathlib
import re
import statistics
import sys
from datetime import date

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEEDS, FRESH = range(1, 11), range(11, 15)
T = 2.262  # Student's t, 97.5 %, 9 degrees of freedom


# Of BF16 and `delayed`; in one section of the document.
MICRO = ["L8-micro", "L8-micro-last", "L8-micro-each", "L8-micro-stale",
         *(f"L8-micro-{count}-{sums}" for count in (8, 64, 256) for sums in ("bf16", "e4m3", "e5m2"))]

# BF16, and BF16 with v in E4M3, at other learning rates; with the moments at the usual one in one section.
MOMENTS = ["L8-moments", *(f"L8-moments-{rate}" for rate in ("0.004", "0.008", "0.02", "0.04", "0.08"))]

OF_UPDATES = ("v_zero_pct", "large_updates_ppm")
SECTIONS = {**{run: "L8-micro" for run in MICRO}, **{run: "L8-moments" for run in MOMENTS}}

# In the order of the document. The rows of L13-aligned are of one training for each recipe.
RUNS = {"L8": "L8", "L8-gemms": "L8-gemms", "L8-scales": "L8-scales", **{run: run for run in MOMENTS + MICRO}, "L13": "L13", "L13-gemms": "L13-gemms", "L13-16": "L13-16", "L13-aligned-delayed": "L13-aligned", "L13-aligned-current": "L13-aligned"}


def micro_batches(metrics, state):
    def value(name):
        return metrics[name]["value"] if isinstance(metrics[name], dict) else metrics[name]

    a, b = state["arm_a"], state["arm_b"]
    yield b, "gap_pct", value("gap_b_pct")
    if state["amax_of"] == "max" and state["weight_cache"] == "once":
        yield a, "tail_loss", value("loss_a")
    if state["accumulate_in"] != "fp32":
        yield a, "accumulate_error_pct", value("accumulate_error_a_pct")
    elif state["weight_cache"] == "once":
        for tensor in ("x1", "dy3"):
            yield b, tensor + "_saturated_casts_pct", value("saturated_casts_pct_" + tensor)


def add_gap_of_sums(rows):
    """Of BF16 with micro-batches, against BF16 of L8 with the same seed, in the place of its loss."""
    whole = rows.get(("L8", "bf16", "tail_loss"), {})
    for run in MICRO:
        loss = rows.pop((run, "bf16", "tail_loss"), {})
        gaps = {seed: float(f"{100 * (loss[seed] / whole[seed] - 1):.6g}") for seed in loss if seed in whole}
        if gaps:
            rows[(run, "bf16", "gap_pct")] = gaps


def values_of(result):
    """(recipe, quantity, value) of what `fp8lab train --json`, or `fp8lab run transformer`, wrote."""
    if result.get("lab") == "train":
        yield from micro_batches(result["metrics"], result["state"])
        return
    if "metrics" in result:
        metrics = result["metrics"]
        recipe = result["state"]["arm_b"]
        yield recipe, "gap_pct", metrics["gap_b_pct"]["value"]
        yield recipe, "1.down.x_last_zero_pct", metrics["1.down.x.lost_pct"]["value"]
        return
    first = result["arms"][0]  # BF16
    yield "bf16", "tail_loss", first["tail_loss"]
    for arm in result["arms"][1:]:
        yield arm["recipe"], "gap_pct", arm["gap_pct"]
        if "held_out" in arm:
            yield arm["recipe"], "heldout_gap_pct", 100 * (arm["held_out"]["loss"] / first["held_out"]["loss"] - 1)
        for quantity in OF_UPDATES:
            if arm.get(quantity):
                yield arm["recipe"], quantity, arm[quantity]
        worst = arm["worst_underflow"]
        if arm["recipe"] == "unscaled":
            yield arm["recipe"], worst["tensor"] + "_zero_pct", worst["mean_pct"]
            yield arm["recipe"], worst["tensor"] + "_lost_l1_pct", worst["lost_l1_pct"]
            yield arm["recipe"], worst["tensor"] + "_lost_energy_pct", worst["lost_energy_pct"]


def read(folder):
    """{(run, recipe, quantity): {seed: value}} of what every seed has, and the devices."""
    rows, devices = {}, set()
    for file in sorted(folder.glob("*.json")):
        run, seed = file.stem.rsplit("-", 1)
        result = json.loads(file.read_text())
        devices.add(re.sub(r" \d+ threads?,", "", result["device"]))  # their number changes nothing
        for recipe, quantity, value in values_of(result):
            if run != "L8-moments" and quantity in OF_UPDATES:
                continue
            rows.setdefault((RUNS[run], recipe, quantity), {})[int(seed)] = float(f"{value:.6g}")
    add_gap_of_sums(rows)
    return {key: values for key, values in rows.items() if all(seed in values for seed in SEEDS)}, devices


class Spread:
    def __init__(self, values):
        first = [values[seed] for seed in SEEDS]
        self.mean, self.sd = statistics.fmean(first), statistics.stdev(first)
        self.low, self.high = min(first), max(first)
        reach = T * self.sd * math.sqrt(1 + 1 / len(first))
        self.lower, self.upper = self.mean - reach, self.mean + reach
        # The last decimal is at most a third of the standard deviation.
        self.decimals = min(max(math.ceil(-math.log10(self.sd / 3)), 0), 4) if self.sd else 0

    def text(self, value):
        out = f"{abs(value):,.{self.decimals}f}"
        out = out.replace(",", "\u2009" if len(out) > 5 and not self.decimals else "")
        return ("\u2212" if value < 0 and out.strip("0.") else "") + out

    def holds(self, value):
        """Whether the interval as it is told, rounded, has the value."""
        return round(self.lower, self.decimals) <= value <= round(self.upper, self.decimals)


def table(rows):
    lines = ["| run | recipe | quantity | mean | lowest | highest | sd | 95 % of one more seed |", "|---" * 8 + "|"]
    for (run, recipe, quantity), values in rows:
        s = Spread(values)
        numbers = " | ".join(s.text(v) for v in (s.mean, s.low, s.high, s.sd))
        lines.append(f"| {run} | `{recipe}` | {quantity} | {numbers} | {s.text(s.lower)} to {s.text(s.upper)} |")
    return lines


def fresh(rows):
    """The seeds that no interval was made of, and which of them lie outside."""
    rows = [(key, values) for key, values in rows if all(seed in values for seed in FRESH)]
    if not rows:
        return []
    lines = ["", f"## Seeds {FRESH[0]} to {FRESH[-1]}, run once", "", "", ""]
    head = "| run | recipe | quantity | 95 % of one more seed | " + " | ".join(map(str, FRESH)) + " |"
    lines += [head, "|---" * (head.count("|") - 1) + "|"]
    inside = total = 0
    for (run, recipe, quantity), values in rows:
        s = Spread(values)
        cells = []
        for seed in FRESH:
            total += 1
            inside += s.holds(values[seed])
            cells.append(s.text(values[seed]) if s.holds(values[seed]) else f"**{s.text(values[seed])}**")
        lines.append(f"| {run} | `{recipe}` | {quantity} | {s.text(s.lower)} to {s.text(s.upper)} | " +
                     " | ".join(cells) + " |")
    lines[3] = (f"{inside} of {total} values lie in the intervals of seeds {SEEDS[0]} to {SEEDS[-1]}, "
                f"{100 * inside / total:.1f} %. Those outside are bold. No interval was made again. The gaps of a seed\n"
                "are against the same BF16 run, so several of one seed may lie outside together.")
    return lines


HEAD = """# Trainings, seed by seed

What the texts say of trainings in L8 and L13 is taken from these tables. `scripts/runs.sh` makes them again; these are of
{devices}, {date}, seeds 1 to 10. The value of each seed is in `assets/runs.csv`.

- **gap_pct**: the tail loss, the mean of the last 100 losses, against that of BF16 with the same seed, in %. The row
  `fp32` is the noise floor.
- **heldout_gap_pct**: the same of the held-out loss after the last step.
- **tail_loss**: of BF16.
- **TENSOR_zero_pct**: how many of its elements the cast turned into 0, in %, mean of all steps. **TENSOR_lost_l1_pct** and
  **TENSOR_lost_energy_pct** are their share of the sum of absolute values and of the sum of squares.
- **L8-scales**: loss scaling, and amaxes that are an average (ema) or a percentile (p) of |x|; without a scale of its own
  the row `unscaled` of L8 is beside it, with the largest amax the rows `delayed` and `current`.
- **L8-moments**: AdamW's moments m and v, or the weights (master), in 16 or 8 bits between two updates, and BF16 in every GEMM.
  **L8-moments-RATE**: at that learning rate, against `bf16` at the same rate. **v_zero_pct**: elements of v that became 0 when
  they were rounded, in %; **large_updates_ppm**: updates of more than 10 times the learning rate, in a million; means of all
  steps, where every seed has some.
- **L8-micro**: each step has 8 micro-batches. **L8-micro-last, L8-micro-each**: the amax of the last one, or of each, goes
  into the history instead of the largest; **L8-micro-stale**: FP8 weights are cast in the first step only;
  **L8-micro-K-FORMAT**: K micro-batches, their weight gradients added in FORMAT. gap_pct of `bf16` is against `bf16` of L8.
  **accumulate_error_pct**: the distance of these sums from their sum in float64, % of its norm, mean of all steps.
  **TENSOR_saturated_casts_pct**: the share of its casts in which an element saturates.
- **L8-gemms, L13-gemms**: BASE:fprop_in=bf16 leaves fprop in BF16 and casts the operands of the other GEMMs as BASE says;
  with all three GEMMs as BASE says: the row BASE of L8 and L13. With colsrc=rowwise the operand that is read along columns
  is cast from the codes along rows.
- **1.down.x_last_zero_pct**: of 1.down.x in the last step, with a channel that is aligned after step 300.
- **95 % of one more seed**: the prediction interval, mean \u00b1 t s \u221a1.1 with t = 2.262 (10 values, 9 degrees of
  freedom). If the values are normal, one more seed lies in it with a probability of 95 %. Where the interval of a gap
  has 0 in it, one seed cannot tell the recipe from BF16.

Casts and scales are exact on every machine. A loss depends on the order in which a processor adds, so the same seed ends
at another value on another processor.

| run | command, with seed 1 |
|---|---|
"""


def commands(folder):
    """A line for each command of seed 1, as scripts/runs.sh keeps them beside the results."""
    return [f"| {run} | `{(folder / (run + '-1.command')).read_text().strip()}` |" for run in RUNS]


def document(rows, folder, devices):
    day = date.fromtimestamp(max(file.stat().st_mtime for file in folder.glob("*-10.json")))
    out = [HEAD.format(devices=", ".join(sorted(devices)), date=day) + "\n".join(commands(folder))]
    for section in dict.fromkeys(SECTIONS.get(run, run) for run in RUNS.values()):
        part = [row for row in rows if SECTIONS.get(row[0][0], row[0][0]) == section]
        if part:
            out += ["", f"## {section}", ""] + table(part)
    return "\n".join(out + fresh(rows)) + "\n"


def main():
    if len(sys.argv) != 2:
        sys.exit("runs_table: usage: scripts/runs_table.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    found, devices = read(folder)
    if not found:
        sys.exit(f"runs_table: {folder} has no run with seeds 1 to 10")
    rows = sorted(found.items(), key=lambda row: (row[0][0], row[0][2] != "gap_pct", row[0][2]))
    seeds = [*SEEDS, *(seed for seed in FRESH if all(seed in values for values in found.values()))]
    csv = ["# Made by scripts/runs.sh. The columns: assets/docs/runs.md", "run,recipe,quantity," + ",".join(map(str, seeds))]
    for key, values in rows:
        csv.append(",".join(key) + "," + ",".join(f"{values[seed]:.6g}" for seed in seeds))
    (ROOT / "assets/runs.csv").write_text("\n".join(csv) + "\n")
    (ROOT / "assets/docs/runs.md").write_text(document(rows, folder, devices))


if __name__ == "__main__":
    main()
