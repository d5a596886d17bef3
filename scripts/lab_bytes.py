#!/usr/bin/env python3
"""Shows that a change of the labs' code changes no byte of what they say.

scripts/lab_bytes.py record DIR before the change, scripts/lab_bytes.py compare DIR after it.

record writes one file per case into DIR (gzip: read it with zcat). A case is one state of a lab or one scene, with what
`run` prints of it (metrics, state) and every figure of `--export` as SVG and CSV. The sentences of `--words` stand in
each SVG; scenes, defaults and experiments are recorded with `--words` too. The states of each lab are:
  its defaults; each field at both ends, in each of its choices, on and off; a tensor of one's own, and words that no
  file has; the first and the last value of each field in each experiment (choices of a field `experiment` or `view`);
  16 states in which about a quarter of the fields have another value, drawn with the lab's name as seed.
Labs that train do 20 steps. The other cases are the lists of `list`, every scene, and what `check` says of the evidence
in tests/compat. Errors are recorded with their exit code. Names and ranges of fields come from the program's messages.
--evidence FOLDER checks that folder too: `compat_samples FOLDER` writes the start, the solver and all near misses of every
exercise there. The processor's name, versions, measured times and progress are replaced. Nothing runs on a GPU.

compare prints the first line that differs of each case that differs, and ends with 1; else "N cases, none differs".
Trainings at full length are not repeated here: the tests of the course do that.
"""

import argparse
import concurrent.futures
import gzip
import itertools
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = ["--steps", "20"]
DRAWN_STATES = 16
LONGEST_SECONDS = 120  # a case that lasts longer is a fault of the program
EXPERIMENTS = ("experiment", "view")
REFUSED = ("no%such", "live", "cuda", "noise")  # not drawn; L8's task noise with the largest batch lasts minutes
# What fields that take a text are set to, besides a word that none of them knows. own.* is written into each folder.
TEXTS = {"file": ["own.npy"], "series": ["own.txt"], "options": ["out=fp32"], "filter": ["qkv"],
         "compare": ["transformer-0"], "w_more": ["nvfp4"], "a_more": ["e4m3"], "uses": ['{"norm.weight":"x"}']}


def own_files(folder):
    values = [(-1) ** i * 1.1 ** (i % 97) / 16 for i in range(64 * 64)]
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 64), }".ljust(117) + "\n"
    (folder / "own.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + head.encode() + struct.pack("<4096f", *values))
    (folder / "own.txt").write_text("".join(f"{1.5 ** i}\n" for i in range(24)))


class Program:
    def __init__(self, binary):
        self.binary = str(pathlib.Path(binary).resolve())
        self.environment = {"LANG": "C.UTF-8", "CUDA_VISIBLE_DEVICES": ""}
        listed = json.loads(self("list", "labs", "--json").stdout)
        self.device = listed["device"]  # the processor
        self.labs = {lab["name"]: lab["description"].split("  ")[0] for lab in listed["labs"]}  # delayed: L5

    def __call__(self, *arguments, cwd="/"):
        return subprocess.run([self.binary, "--threads", "1", *arguments], cwd=cwd, capture_output=True, text=True,
                              env=self.environment | {"HOME": str(cwd)}, stdin=subprocess.DEVNULL,
                              timeout=LONGEST_SECONDS)

    def names(self, kind):
        return [row["name"] for row in json.loads(self("list", kind, "--json").stdout)[kind]]

    def normalised(self, text):
        text = text.replace(self.device, "DEVICE")
        text = re.sub(r'("version": ")[^"]*|(name="version" value=")[^"]*|(^# version: ).*',
                      lambda m: next(g for g in m.groups() if g) + "VERSION", text, flags=re.MULTILINE)
        text = re.sub(r"^\w+: (?:step \d+ of|the experiment of|\d+ of \d+ files).*\n", "", text, flags=re.MULTILINE)
        text = re.sub(r"/\S*/assets/models/", "MODELS/", text)  # the program's own folder
        return re.sub(r'("(?:step_ms_\w+|steps_per_second)": \{\s*"unit": "[^"]*",\s*"value": ).*', r"\1TIME", text)

    def said(self, arguments, cwd):
        run = self(*arguments, cwd=cwd)
        out = f"$ fp8lab {' '.join(arguments)}\nexit {run.returncode}\n{run.stdout}{run.stderr}"
        for path in sorted(pathlib.Path(cwd).glob("figures/*")):
            out += f"--- {path.name}\n{path.read_text()}"
            path.unlink()
        return self.normalised(out)


class LabStates:
    def __init__(self, program, lab, folder):
        self.trains = program("run", lab, "--steps", "1").returncode == 0
        defaults = json.loads(program("run", lab).stdout)["state"]
        names = program("run", lab, "--set", "no-field=1").stderr.split("valid: ")[1].split()
        self.values = {name: self.values_of(program, lab, name, defaults.get(name), folder) for name in names}

    @staticmethod
    def values_of(program, lab, name, default, folder):
        message = program("run", lab, "--set", f"{name}=no%such", cwd=folder).stderr.strip()
        valid = message.rpartition("; valid: ")[2]
        ends = re.fullmatch(r"(\S+) to (\S+)", valid)
        if ends and "is not a number" in message:
            low, high = map(float, ends.groups())
            values = (low, (low * high) ** 0.5 if low > 0 else (low + high) / 2, high)
            return [str(int(x) if isinstance(default, int) else x) for x in values]
        if "unknown value" in message or "is not a switch" in message:
            return valid.split()
        return ["no%such", *TEXTS.get(name, [])]

    def all(self, lab):
        yield []
        for name, values in self.values.items():
            yield from ([f"{name}={value}"] for value in values)
        for kind in [name for name in self.values if name in EXPERIMENTS]:
            others = [(name, values) for name, values in self.values.items() if name != kind]
            for value, (name, values) in itertools.product(self.values[kind], others):
                yield from ([f"{kind}={value}", f"{name}={end}"] for end in (values[0], values[-1]))
        draw = random.Random(lab)
        for _ in range(DRAWN_STATES):
            yield [f"{name}={draw.choice([value for value in values if value not in REFUSED] or values)}"
                   for name, values in self.values.items() if draw.random() < 0.25]


def cases(program, only, evidence):
    """(name of the file, commands, folder they run in; none: an empty one)"""
    chosen = [lab for lab, mark in program.labs.items() if not only or {lab, mark} & only]
    with tempfile.TemporaryDirectory() as folder:
        own_files(pathlib.Path(folder))
        states = {lab: LabStates(program, lab, folder) for lab in chosen}
    for scene in program.names("scenes"):
        mark = re.sub(r"^L0?(\d+).*|^W-.*", lambda m: "L" + m[1] if m[1] else "Workbench", scene)
        lab = next(lab for lab, its in program.labs.items() if its == mark)
        if lab in chosen:
            call = ["run", scene, *(STEPS if states[lab].trains else [])]
            yield f"scene {scene}", [call + ["--export", "figures"], call + ["--words"]], None
    if not only:
        for kind in ("labs", "formats", "recipes", "scenes", "exercises", "lessons", "terms", "claims"):
            yield f"list {kind}", [["list", kind, "--json"], ["list", kind, *program.names(kind)]], None
        for path in sorted([*evidence, *ROOT.glob("tests/compat/*/evidence"), *ROOT.glob("tests/compat/*/*.f8lab")]):
            yield f"check {path.parent.name} {path.name}", [["check", "--csv", "-", path.name]], path.parent
    for lab in chosen:
        numbers = itertools.count(1)
        for state in states[lab].all(lab):
            settings = [word for setting in state for word in ("--set", setting)]
            call = ["run", lab, *settings, *(STEPS if states[lab].trains else [])]
            name = " ".join(state) if len(state) < 3 else f"drawn {next(numbers)}"
            told = not state or len(state) == 1 and state[0].startswith(EXPERIMENTS)
            others = [call, call + ["--words"]] if told else []
            yield f"{lab} {name or 'defaults'}", [call + ["--export", "figures"], *others], None


def text_of(program, commands, where):
    with tempfile.TemporaryDirectory() as folder:
        own_files(pathlib.Path(folder))
        return "".join(program.said(command, where or folder) for command in commands)


def difference(before, after):
    command = ""
    for old, new in itertools.zip_longest(before.split("\n"), after.split("\n")):
        if old != new:
            return f"  {command}\n  before: {old}\n  now:    {new}"
        command = old if old.startswith("$ fp8lab ") else command
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--binary", default=ROOT / "build/release/fp8lab", help="default: build/release/fp8lab")
    parser.add_argument("--evidence", type=pathlib.Path, action="append", default=[], help="a folder, checked too")
    parser.add_argument("--only", default="", help="labs, as L5 or delayed, separated by commas")
    parser.add_argument("--jobs", type=int, default=2, help="programs that run at the same time (default: 2)")
    options = parser.parse_args()
    program = Program(options.binary)
    only = {word for word in options.only.split(",") if word}
    if only - set(program.labs) - set(program.labs.values()):
        parser.error(f"--only: labs are {', '.join(program.labs)}")
    evidence = [path.resolve(strict=True) for path in options.evidence]
    if options.what == "compare" and not options.folder.is_dir():
        parser.error(f"{options.folder}: no such folder")
    options.folder.mkdir(parents=True, exist_ok=True)
    all_cases = [(re.sub(r"[^\w.=%+ -]", "_", name) + ".txt.gz", commands, where)
                 for name, commands, where in cases(program, only, evidence)]
    gone = {path.name for path in options.folder.glob("*.gz")} - {name for name, _, _ in all_cases}
    differing = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for (name, _, _), text in zip(all_cases, pool.map(lambda case: text_of(program, *case[1:]), all_cases)):
            path = options.folder / name
            if options.what == "record":
                path.write_bytes(gzip.compress(text.encode(), mtime=0))
            before = gzip.decompress(path.read_bytes()).decode() if path.exists() else "not recorded"
            before = program.normalised(before)
            if before != text:
                differing += 1
                print(f"{name}\n{difference(before, text)}", flush=True)
    if gone and not only:
        sys.exit(f"{len(gone)} files in {options.folder} are of no case any more: {', '.join(sorted(gone)[:10])}")
    ended = "all recorded" if options.what == "record" else f"{differing} differ" if differing else "none differs"
    print(f"{len(all_cases)} cases, {ended}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
