#!/usr/bin/env bash
# Trains L8 and L13 with their default settings on this machine and writes what the labs show before there is a run of one's
# own: scripts/record_runs.sh [FP8LAB]. Writes assets/runs/train.json and transformer.json, 35 and 9 kB: the losses of
# every step and how long all steps took. FP8LAB: the program (default: build/release). A few minutes; the machine should do
# nothing else, or the labs say that a training takes longer than it does.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${1:-$here/build/release/fp8lab}
if [ $# -gt 1 ] || [ ! -x "$program" ]; then
    echo "record_runs: usage: scripts/record_runs.sh [FP8LAB]; without it the program of build/release" >&2
    exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
machine=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
machine="${machine:-$(uname -m)}, $(nproc) cores"
mkdir -p "$here/assets/runs"

# record LAB SEED ARGUMENT...: one file. The arguments are those that the lab's "Copy command" gives.
record() {
    local lab=$1 seed=$2 began ended
    shift 2
    began=$(date +%s.%N)
    "$program" train "$@" --csv "$work/$lab.csv" >/dev/null
    ended=$(date +%s.%N)
    awk -F, -v command="fp8lab train $*" -v machine="$machine" -v date="$(date -u +%F)" -v seed="$seed" \
        -v seconds="$(awk "BEGIN { printf \"%.1f\", $ended - $began }")" '
        /^#/ || $1 == "step" { next }
        !($2 in loss) { arms[++count] = $2 }
        { loss[$2] = loss[$2] (loss[$2] == "" ? "" : ",") sprintf("%.5g", $3) }
        END {
            printf "{\"command\": \"%s\", \"machine\": \"%s\", \"date\": \"%s\", \"seconds\": %s, \"seed\": %s,\n", \
                command, machine, date, seconds, seed
            printf " \"arms\": [\n"
            for (i = 1; i <= count; ++i)
                printf "{\"recipe\": \"%s\", \"loss\": [%s]}%s\n", arms[i], loss[arms[i]], i < count ? "," : ""
            printf "]}\n"
        }' "$work/$lab.csv" >"$here/assets/runs/$lab.json"
    echo "record_runs: assets/runs/$lab.json" >&2
}
record train 1 --recipe bf16,delayed --task teacher --layers 32,64,64,1 --activation tanh --batch 256 --steps 2000 --lr 0.002 --schedule cosine --optimizer adamw --weight-decay 0 --loss mse --seed 1
record transformer 1 --recipe bf16,delayed --task text --model transformer --d 64 --blocks 2 --heads 4 --kv-heads 0 --ffn 192 --context 64 --tie 0 --batch 8 --steps 600 --lr 0.005 --schedule cosine --optimizer adamw --weight-decay 0 --loss cross-entropy --seed 1 --beta2 0.95 --clip 1
