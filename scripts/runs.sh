#!/usr/bin/env bash
# Trains what the texts say of L8 and L13, seed by seed, and writes the table that they take their numbers from:
# scripts/runs.sh [--seeds FIRST-LAST] [--out FOLDER] [--program FP8LAB] [--table]
# --seeds: 1-10. --out: where the results of each training are kept (build/runs); one that is there is not trained again,
# so a run that was stopped goes on. --program: build/release/fp8lab. --table: trains nothing.
# The table: assets/runs.csv and assets/docs/runs.md (scripts/runs_table.py). A seed takes about 9 minutes of one core.
# Losses depend on the processor, because sums have another order on another one; the number of threads changes nothing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
first=1 last=10 out=$here/build/runs program=$here/build/release/fp8lab train=yes
while [ $# -gt 0 ]; do
    case $1 in
        --seeds) first=${2%-*} last=${2#*-}; shift 2 ;;
        --out) out=$2; shift 2 ;;
        --program) program=$2; shift 2 ;;
        --table) train=no; shift ;;
        *)
            echo "runs: usage: scripts/runs.sh [--seeds FIRST-LAST] [--out FOLDER] [--program FP8LAB] [--table]" >&2
            exit 2
            ;;
    esac
done

L8=bf16,fp32,delayed,current,rowwise,block128,mxfp8,unscaled,unscaled:fwd=e4m3:bwd=e4m3
L8+=,delayed:master=none,delayed:master=none:round_update=stochastic,mxfp4,nvfp4,nvfp4-te
# 8 or 4 bits in some of the three GEMMs only, and the transposed operand cast from the codes along rows.
GEMMS8=bf16
for base in current nvfp4; do
    GEMMS8+=,$base:dgrad_in=bf16:wgrad_in=bf16,$base:fprop_in=bf16:wgrad_in=bf16,$base:fprop_in=bf16:dgrad_in=bf16
    GEMMS8+=,$base:fprop_in=bf16,$base:wgrad_in=bf16
done
GEMMS8+=,rowwise:wgrad_in=bf16,rowwise:colsrc=rowwise,mxfp8:colsrc=rowwise,nvfp4:colsrc=rowwise
# Loss scaling, and amaxes that are an average or a percentile.
SCALES=bf16
for interval in 2000 20; do
    SCALES+=,unscaled:loss_scale=65536:growth_interval=$interval
    SCALES+=,unscaled:overflow=nonsaturate:loss_scale=65536:growth_interval=$interval
done
for algo in ema0.9 p99.99 p99.9 p99; do SCALES+=,delayed:algo=$algo; done
SCALES+=,current:amax=p99.99,delayed:interval=10
# Moments and weights in 16 or 8 bits, and v in E4M3 at other learning rates.
MOMENTS=bf16,bf16:m=e4m3,bf16:m=e4m3:moment_block=tensor,bf16:m=e5m2
MOMENTS+=,bf16:v=bf16,bf16:v=bf16:round_v=stochastic,bf16:v=fp16,bf16:v=e4m3,bf16:v=e5m2
MOMENTS+=,bf16:v=e4m3:round_v=stochastic,bf16:v=e5m2:round_v=stochastic,bf16:m=e4m3:v=bf16:round_v=stochastic
MOMENTS+=,bf16:master=bf16,bf16:round_update=stochastic:master=bf16
RATES="0.004 0.008 0.02 0.04 0.08"
# Micro-batches in L8, "NAME FIELD=VALUE...": sums in fewer bits, amaxes of the last or of each, weights cast only once.
MICRO=("L8-micro accumulate=8" "L8-micro-last accumulate=8 amax_of=last" "L8-micro-each accumulate=8 amax_of=each")
MICRO+=("L8-micro-stale accumulate=8 weight_cache=stale")
for count in 8 64 256; do
    for sums in bf16 e4m3 e5m2; do MICRO+=("L8-micro-$count-$sums accumulate=$count accumulate_in=$sums"); done
done
L13=bf16,fp32,delayed,current,rowwise,block128,mxfp8,unscaled,nvfp4-te,nvfp4-te:wide=last

GEMMS13=bf16,nvfp4,nvfp4:dgrad_in=bf16:wgrad_in=bf16,nvfp4:fprop_in=bf16:wgrad_in=bf16,nvfp4:fprop_in=bf16:dgrad_in=bf16
GEMMS13+=,nvfp4:fprop_in=bf16,nvfp4:wgrad_in=bf16,rowwise:wgrad_in=bf16,rowwise:colsrc=rowwise

# keep NAME "SWITCHES" VERB ARGUMENT...: what the program prints, kept as FOLDER/NAME.json beside the command. The
# switches say how it runs here, and are not told.
keep() {
    local file=$out/$1.json switches=$2 began=$SECONDS
    shift 2
    echo "fp8lab $*" >"${file%.json}.command"
    [ ! -e "$file" ] || return 0
    # shellcheck disable=SC2086
    nice -n 5 "$program" "$@" $switches >"$file.part" 2>"$file.log" || {
        echo "runs: $file: $(tail -n 1 "$file.log")" >&2
        exit 1
    }
    mv "$file.part" "$file"
    rm -f "$file.log"
    echo "runs: $file: $((SECONDS - began)) s" >&2
}

# train NAME ARGUMENT...
train() {
    local name=$1
    shift
    keep "$name" "--backend cpu --threads 1 --json -" train "$@"
}

mkdir -p "$out"
if [ $train = yes ]; then
    for seed in $(seq "$first" "$last"); do
        train "L8-$seed" --recipe "$L8" --schedule cosine --seed "$seed"
        train "L8-scales-$seed" --recipe "$SCALES" --schedule cosine --seed "$seed"
        train "L8-moments-$seed" --recipe "$MOMENTS" --schedule cosine --seed "$seed"
        for rate in $RATES; do
            train "L8-moments-$rate-$seed" --recipe bf16,bf16:v=e4m3 --schedule cosine --lr "$rate" --seed "$seed"
        done
        for micro in "${MICRO[@]}"; do
            read -r name fields <<<"$micro"
            # shellcheck disable=SC2046,SC2086
            keep "$name-$seed" "" run train --set backend=cpu $(printf -- '--set %s ' $fields) --set "seed=$seed" --steps 2000
        done
        train "L8-gemms-$seed" --recipe "$GEMMS8" --schedule cosine --seed "$seed"
    done
    for seed in $(seq "$first" "$last"); do
        train "L13-$seed" --model transformer --recipe "$L13" --seed "$seed"
        train "L13-gemms-$seed" --model transformer --recipe "$GEMMS13" --seed "$seed"
        train "L13-16-$seed" --model transformer --batch 16 --recipe bf16,unscaled --seed "$seed"
        for arm in delayed current; do
            keep "L13-aligned-$arm-$seed" "" run transformer --set align_step=300 --set "arm_b=$arm" --set "seed=$seed" --steps 600
        done
    done
fi
exec python3 "$here/scripts/runs_table.py" "$out"
