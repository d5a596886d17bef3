#!/usr/bin/env python3
"""How fast verbs end by a signal in the midst of work that lasts: scripts/signals.py [--only WORD] [PROGRAM].

Starts each call below, sends SIGINT, SIGTERM or SIGHUP once it is at work, and prints the time from the signal to the
end, the time of the processor that was used in it, the exit code, and what the program said. Exits with 1 when a call
takes more than a second or ends with another code. For a machine that has nothing else to do; CI does not run it.
Needs 3 GB of memory, 5 GB below TMPDIR (holes in files, no blocks), and a display for `screenshot` and `bench ui`.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_SECONDS = 1.0
WATCHDOG_SECONDS = 120
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
LARGE = "train --backend cpu --model transformer --d 1024 --ffn 4096 --context 512 --batch 8 --steps 100 --recipe "

# Name, call, seconds until the signal, and how the call waits where it does not work.
CALLS = [
    ("train bf16", LARGE + "bf16 --csv DIR/large.csv --save DIR/large", 8),
    ("train nvfp4-te", LARGE + "nvfp4-te --csv DIR/large.csv", 20),
    ("train delayed", LARGE + "delayed --csv DIR/large.csv", 12),
    ("train two arms", LARGE + "bf16,delayed --csv DIR/large.csv", 12),
    ("train, preparing", LARGE.replace("--steps", "--blocks 4 --steps") + "bf16,delayed", 0.5),
    ("train MLP", "train --backend cpu --layers 1024,8192,1024 --batch 1024 --steps 1000 --recipe bf16,mxfp8", 6),
    ("train 2,000 arms", "train --backend cpu --layers 16,32,1 --batch 64 --steps 100000 --recipe " +
     ",".join(["bf16"] * 2000), 6),
    ("train, evaluating", "train --backend cpu --model transformer --d 256 --ffn 1024 --context 256 --batch 8 "
     "--steps 1 --recipe bf16,delayed", 1.5),
    ("infer --calibrate", "infer DIR/text/1-bf16.safetensors --weights mxfp8 --activations e4m3 --calibrate 1000000", 6),
    ("infer --all-mixes", "infer ROOT/assets/models/digits-s1.safetensors --weights mxfp8 --activations mxfp8 --all-mixes",
     0.12),
    ("inspect", "inspect DIR/large.safetensors", 5),
    ("inspect, one piece", "inspect DIR/fortran.npy", 0.8),
    ("inspect, one row", "inspect DIR/row.npy", 0.8),
    ("quantize", "quantize DIR/half.npy --recipe nvfp4,mxfp8,delayed", 2),
    ("cast", "cast --to e4m3 -i DIR/large.npy -o DIR/codes", 3),
    ("cast of stdin", "cast --to e4m3 -i - -o DIR/codes", 1),
    ("decode", "decode --from e4m3 -i DIR/zeros -o DIR/values", 2),
    ("simulate of stdin", "simulate --amax -", 1),
    ("check of a class", "check DIR/class", 1.5),
    ("check --rerun", "check --rerun DIR/class", 1.5),
    ("check of a scene", "check DIR/long.f8scene", 5),
    ("validate --full", "validate --backend cpu --full", 12),
    ("generate", "generate --resume DIR/text --characters 1000000", 5),
    ("run train", "run train --set steps=100000 --steps 100000", 5),
    ("run transformer", "run transformer --steps 100000", 3),
    ("run wide", "run wide", 0.1),
    ("bench step", LARGE.replace("train --backend cpu --model transformer --d 1024 --ffn 4096 --context 512 --batch 8 "
                                 "--steps 100 --recipe ", "bench step --backend cpu --layers 1024,8192,1024 --batch 1024 "
                                 "--repeat 1000 --json"), 12),
    ("bench cast", "bench cast --backend cpu --repeat 10000 --json", 6),
    ("list", "list exercises", 0.02),
    ("codes", "codes fp16", 0.02),
    ("memory", "memory --plan te --json", 0.02),
    ("report", "report -o DIR/report.html --profile DIR/profile", 0.02),
    ("screenshot", "screenshot --lab train --set steps=100000 --steps 100000 -o DIR/picture.png", 5),
    ("bench ui", "bench ui --backend cpu --json", 8),
    ("window", "", 4),
]


def npy(path, shape, fortran=False, values=None):
    """An .npy of float32 zeros that take no room on the disk."""
    head = f"{{'descr': '<f4', 'fortran_order': {fortran}, 'shape': {shape}, }}".ljust(117) + "\n"
    count = 1
    for n in shape:
        count *= n
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00\x76\x00" + head.encode())
        out.truncate(128 + 4 * count)


def safetensors(path, tensors):
    """As many tensors of 2^26 float32 zeros."""
    size = 1 << 28
    header = json.dumps({f"t{i}": {"dtype": "F32", "shape": [8192, 8192], "data_offsets": [i * size, (i + 1) * size]}
                         for i in range(tensors)}).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(header)) + header)
        out.truncate(8 + len(header) + tensors * size)


def prepare(program, folder):
    safetensors(folder / "large.safetensors", 8)
    npy(folder / "large.npy", (1 << 23, 64))
    npy(folder / "fortran.npy", (8192, 8192), fortran=True)
    npy(folder / "row.npy", (1, 1 << 26))
    npy(folder / "half.npy", (1 << 22, 64))
    with open(folder / "zeros", "wb") as out:
        out.truncate(1 << 29)
    scene = (ROOT / "assets/scenes/L08-a-twin.f8scene").read_text()
    scene = scene.replace('"steps": 2000', '"steps": 100000').replace('"state": {}', '"state": {"steps": 100000}')
    (folder / "long.f8scene").write_text(scene)
    (folder / "class").mkdir()
    submissions = sorted((ROOT / "tests/compat").rglob("*.f8lab"))
    for i in range(400):
        source = submissions[i % len(submissions)]
        shutil.copy(source, folder / "class" / f"{i:03}{source.suffix}")
    shutil.copytree(ROOT / "tests/compat/ba6ae7b/profile", folder / "profile")
    subprocess.run([program, *("train --backend cpu --model transformer --d 256 --ffn 1024 --context 128 --batch 1 "
                               "--steps 1 --recipe bf16 --save").split(), folder / "text"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(program, call, number, wait, folder):
    """Seconds to the end, of them on the processor, exit code, the last line; None: it had ended before."""
    words = [word.replace("DIR", str(folder)).replace("ROOT", str(ROOT)) for word in call.split()]
    environment = dict(os.environ, FP8LAB_HOME=str(folder / "home"))
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
        child = subprocess.Popen([program, *words], stdin=subprocess.PIPE, stdout=out, stderr=err, env=environment)
        time.sleep(wait)
        if child.poll() is not None:
            return None
        before = processor_seconds(child.pid)
        start = time.monotonic()
        child.send_signal(number)
        alarm = start + WATCHDOG_SECONDS
        while time.monotonic() < alarm:
            pid, status, used = os.wait4(child.pid, os.WNOHANG)
            if pid:
                child.returncode = os.waitstatus_to_exitcode(status)
                break
            time.sleep(0.002)
        else:
            child.kill()
            child.wait()
            return WATCHDOG_SECONDS, float("nan"), -1, "was killed"
        seconds = time.monotonic() - start
    said = (folder / "err").read_text(errors="replace").rstrip("\n").rsplit("\n", 1)[-1]
    return seconds, used.ru_utime + used.ru_stime - before, child.returncode, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=ROOT / "build/release/fp8lab")
    parser.add_argument("--only", default="", help="calls with this in their name")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fp8lab-signals-"))
    late = 0
    print(f"{'call':<20}{'signal':<10}{'s':>7}{'CPU s':>8}{'code':>6}  last line")
    try:
        prepare(options.program, folder)
        for name, call, wait in CALLS:
            if options.only not in name:
                continue
            for number in SIGNALS:
                found = measure(options.program, call, number, wait, folder)
                if found is None:
                    print(f"{name:<20}{number.name:<10}{'-':>7}{'-':>8}{'-':>6}  was done before the signal", flush=True)
                    continue
                seconds, used, code, said = found
                wrong = seconds > MOST_SECONDS or code != 128 + number
                late += wrong
                print(f"{name:<20}{number.name:<10}{seconds:>7.3f}{used:>8.2f}{code:>6}  {said[:100]}"
                      f"{'  TOO LATE' if seconds > MOST_SECONDS else ''}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{late} calls took more than {MOST_SECONDS:.0f} s or ended with another code" if late else "all ended in time")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
