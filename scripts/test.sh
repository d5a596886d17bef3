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
# run.sh leaves the CUDA backend out where no GPU is; its tests are compiled wherever the toolkit is.
[ "$preset" != release ] || options+=(-DFP8LAB_CUDA=ON)
configure_with_cmake test "$build" --preset "$preset" "${options[@]}"
grep -q '^FP8LAB_CUDA:BOOL=OFF$' "$build/CMakeCache.txt" || builds_cuda "$build" ||
    echo "test: no CUDA toolkit 12.9 or newer here, so the CUDA backend and its tests are not built" >&2
build_with_ninja test "$build"
if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1; then
    echo "test: GPU found: $(nvidia-smi -L | head -1)"
else
    echo "test: no GPU here (no NVIDIA driver): everything runs on the CPU"
fi
trap - INT
style=0
scripts/style.sh "$build" || style=$?
ctest --preset "$preset" --parallel "$(nproc)"
exit "$style"
