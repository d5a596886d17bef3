#!/usr/bin/env bash
# Measures this machine's GPU and writes one recording for labs L7 to L10, L13 and L17: scripts/record.sh OUT.json [FP8LAB]
# OUT.json: assets/recordings/ID.json makes it one that the labs offer. FP8LAB: the program (default: build/headless,
# then build/release). Takes about 9 minutes on an H200; the GPU should do nothing else. What does not fit into its
# memory is left out, with a line on stderr.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-}
if [ -z "$out" ] || [ $# -gt 2 ]; then
    echo "record: usage: scripts/record.sh OUT.json [FP8LAB]" >&2
    exit 2
fi
program=${2:-}
for candidate in "$here/build/headless/fp8lab" "$here/build/release/fp8lab"; do
    if [ -z "$program" ] && [ -x "$candidate" ]; then program=$candidate; fi
done
if [ -z "$program" ]; then
    echo "record: nothing is built: cmake --preset headless && cmake --build build/headless" >&2
    exit 2
fi

# Algorithms are chosen anew, for the library of today, and quickly: there are hundreds of products.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache FP8LAB_TUNING=quick
results=()

# measure NAME ARGUMENT...: one result of the recording.
measure() {
    local name=$1 began=$SECONDS
    shift
    if "$program" bench "$@" --json >"$work/$name.json" 2>"$work/$name.log"; then
        results+=("$work/$name.json")
        echo "record: $name: $((SECONDS - began)) s" >&2
    else
        local status=$?
        echo "record: $name: left out: $(tail -n 1 "$work/$name.log")" >&2
        # 3: the GPU cannot do it; anything else is for the whole recording.
        [ "$status" -eq 3 ] || exit "$status"
    fi
}
# steps REPEATS RECIPES BATCH LAYERS...
steps() {
    local repeats=$1 recipes=$2 batch=$3 layers
    shift 3
    for layers in "$@"; do
        measure "step $layers, batch $batch" step --backend cuda --brief --repeat "$repeats" --recipe "$recipes" \
            --batch "$batch" --layers "$layers"
    done
}

# A transformer of 124 million parameters, 200 steps: its JSON behind what a recording needs to know of it.
train_124m() {
    local name="train, 124 million parameters" began=$SECONDS
    if "$program" train --model transformer --backend cuda --task zipf:50257 --d 768 --heads 12 --ffn 2048 --blocks 12 \
        --context 1024 --tie 1 --batch 8 --recipe bf16,delayed --steps 200 --lr 6e-4 --json "$work/$name.json" \
        >/dev/null 2>"$work/$name.log"; then
        sed -i "1s/^{/{\"bench\": \"train\", \"date\": \"$(date -u +%F)\", \"batch\": 8, \"sizes\": {\"d\": 768, \"blocks\": 12, \"context\": 1024},/" \
            "$work/$name.json"
        results+=("$work/$name.json")
        echo "record: $name: $((SECONDS - began)) s" >&2
    else
        echo "record: $name: left out: $(tail -n 1 "$work/$name.log")" >&2
    fi
}

measure grid gemm --grid
if [ ${#results[@]} -eq 0 ]; then exit 3; fi
measure gemm gemm --backend cuda
measure accumulate accumulate --backend cuda
all=bf16,delayed,current,rowwise,block128
measure "blocks, d 768" blocks --backend cuda --shape 768,12,2048,1024,12 --batch 8 --recipe "$all"
measure "blocks, d 4096" blocks --backend cuda --shape 4096,32,14336,2048,1 --batch 4 --recipe "$all"
small=("768,3072,768" "1024,4096,1024" "2048,8192,2048" "4096,4096,4096")
for batch in 32 512 2048; do
    steps 80 "$all" "$batch" "${small[@]}" 4096,16384,4096
    steps 30 "$all" "$batch" 8192,32768,8192
done
train_124m
steps 60 "$all" 4096 1024,4096,1024
steps 60 "$all" 8192 "${small[@]}" 4096,16384,4096
steps 24 "$all" 8192 8192,32768,8192
steps 24 bf16,delayed,current 16384 8192,32768,8192
steps 30 "$all" 32768 4096,16384,4096
# A token of each sequence through 4 layers of the sizes of Llama-3-8B, behind 2,047 others.
for kv in bf16 e4m3; do
    for batch in 1 2 4 8 16 32 64 128 256; do
        for weights in bf16 e4m3-row e4m3-weight-only; do
            # Inputs in BF16 are for the launch that takes up to 8 sequences.
            if [ "$weights" = e4m3-weight-only ] && [ "$batch" -gt 8 ]; then continue; fi
            measure "infer, weights $weights, cache $kv, batch $batch" infer --backend cuda --weights "$weights" \
                --kv "$kv" --batch "$batch"
        done
    done
done

# What the grid says of the machine.
fact() { sed -nE "s/.*\"$1\":\"([^\"]*)\".*/\1/p" "$work/grid.json" | head -n 1; }
{
    printf '{"gpu": "%s", "driver": "%s", "cuda": "%s", "cublaslt": "%s", "date": "%s",\n "command": "%s",\n "results": [\n' \
        "$(fact GPU)" "$(fact driver)" "$(fact 'CUDA runtime')" "$(fact cublaslt)" "$(fact date)" \
        "scripts/record.sh (fp8lab bench gemm --grid, gemm, accumulate, blocks, step --brief, infer; fp8lab train)"
    separator=""
    for result in "${results[@]}"; do
        printf '%s' "$separator"
        cat "$result"
        separator=","
    done
    printf ']}\n'
} >"$work/recording.json"
cp "$work/recording.json" "$out"
echo "record: $out: ${#results[@]} results in $SECONDS s" >&2
