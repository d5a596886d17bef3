#!/usr/bin/env bash
# Sets up, builds and runs all tests: scripts/test.sh [PRESET] (default release; dev, asan, tsan, headless)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=${1:-release}
cd "$here"
# shellcheck source=scripts/steps.sh
. scripts/steps.sh
interrupted_while test

scripts/setup.sh
build=build/$preset
options=(-DFP8LAB_TESTS=ON)
# Warnings are errors where this script makes the build folder. One that is there keeps its choice: another would compile
# everything anew.
[ -f "$build/build.ninja" ] || options+=(-DFP8LAB_WERROR=ON)
# run.sh leaves the CUDA backend out where no GPU is; its tests are compiled wherever nvcc is.
case $preset in release | headless | dev) options+=(-DFP8LAB_CUDA=ON) ;; esac
mkdir -p "$build"
cmake --preset "$preset" "${options[@]}" >"$build/configure.log" 2>&1 || {
    echo "test: cannot configure the build: $(reason_in "$build/configure.log") (all of it: $build/configure.log)" >&2
    exit 1
}
build_with_ninja test "$build"
if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1; then
    echo "test: GPU found: $(nvidia-smi -L | head -1)"
else
    echo "test: no GPU here (no NVIDIA driver): everything runs on the CPU"
fi
ctest --preset "$preset" --parallel "$(nproc)"
