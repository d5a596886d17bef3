#!/usr/bin/env bash
# Sets up, builds and runs all tests: scripts/test.sh [PRESET] (default release; dev, asan, tsan, headless)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=${1:-release}

"$here/scripts/setup.sh"
cd "$here"
[ -f "build/$preset/build.ninja" ] || cmake --preset "$preset"
cmake --build --preset "$preset"
if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1; then
    echo "test: GPU found: $(nvidia-smi -L | head -1)"
else
    echo "test: no GPU here (no NVIDIA driver): everything runs on the CPU"
fi
ctest --preset "$preset" --parallel "$(nproc)"
