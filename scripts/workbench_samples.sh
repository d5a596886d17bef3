#!/usr/bin/env bash
# Trains what the Workbench opens with: scripts/workbench_samples.sh [FOLDER] [--NAME VALUE]...
# FOLDER: where the files go (default: assets/models). --NAME VALUE: as tests/samples/samples.cpp says; without them,
# 600 steps of L13's transformer with 4 blocks and seed 1. The files follow from the options alone, up to the last bits
# of the processor's matrix products.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$here/assets/models
if [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; then
    folder=$1
    shift
fi
program=$here/build/release/workbench_samples
if [ ! -x "$program" ] || [ ! -x "$here/build/release/faulty_samples" ]; then
    echo "workbench_samples: not built: cmake --preset release && cmake --build build/release --target workbench_samples faulty_samples" >&2
    exit 2
fi
mkdir -p "$folder"
"$program" "$folder" "$@"
# The six faulty files of exercise W.5 are made from the usual sample.
if [ -f "$folder/transformer-600.safetensors" ]; then
    "$here/build/release/faulty_samples" "$folder"
fi
