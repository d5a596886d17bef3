#!/usr/bin/env bash
# Sets up, builds and starts FP8 Lab with the arguments given: scripts/run.sh [VERB ...]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/steps.sh
. "$here/scripts/steps.sh"
build=$here/build/release
interrupted_while run

# The CUDA backend takes minutes to compile: only where a GPU could use it. Also under WSL, which has no /proc/driver.
has_gpu() { [ -d /proc/driver/nvidia/gpus ] || { command -v nvidia-smi && nvidia-smi -L; } >/dev/null 2>&1; }
has_nvcc() { command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; }
cuda=OFF
why="no NVIDIA GPU here, so the CUDA backend is not built"
if has_gpu && has_nvcc; then
    cuda=ON
    why="with the CUDA backend for this GPU (a few minutes more)"
elif has_gpu; then
    why="there is an NVIDIA GPU, but no CUDA toolkit (nvcc 12.9 or newer): without the CUDA backend"
fi

if [ ! -x "$build/fp8lab" ]; then
    echo "run: first start: sets up, then builds for about $(duration $((300 / $(nproc) + 15))) on $(nproc) cores; $why" >&2
fi
"$here/scripts/setup.sh" --build
configured() { grep -q "^$1\$" "$build/CMakeCache.txt" 2>/dev/null; }
if [ ! -f "$build/build.ninja" ] || { [ "$cuda" = ON ] && ! configured FP8LAB_CUDA:BOOL=ON; }; then
    mkdir -p "$build"
    tests=OFF
    configured FP8LAB_TESTS:BOOL=ON && tests=ON
    cmake -S "$here" --preset release -DFP8LAB_CUDA=$cuda -DFP8LAB_TESTS=$tests >"$build/configure.log" 2>&1 || {
        echo "run: cannot configure the build: $(reason_in "$build/configure.log") (all of it: $build/configure.log)" >&2
        rm -f "$build/build.ninja"
        exit 1
    }
fi
targets=(fp8lab fp8lab_assets)
[ "$cuda" = OFF ] || targets+=(fp8lab-cuda)
build_with_ninja run "$build" "${targets[@]}"

# Only the window needs a display: without one, say so and name what works here. It opens when no argument is a verb.
opens_window=yes
if [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
    verbs=$("$build/fp8lab" --help | awk '/^Subcommands:/ { on = 1; next } on && /^  [a-z]/ { print $1 }')
    for argument in "$@"; do
        grep -qxF -e "$argument" <<<"$verbs"$'\n-h\n--help\n--version' && opens_window=no
    done
fi
if [ "$opens_window" = yes ] && [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
    cat >&2 <<'TEXT'
fp8lab: window: no display here (DISPLAY and WAYLAND_DISPLAY are empty).
The laboratory also works without one:
  ./scripts/run.sh doctor                                        what this machine can do
  ./scripts/run.sh train --recipe bf16,delayed --steps 200       BF16 and FP8 side by side
  ./scripts/run.sh run bits --export DIR                         a lab's numbers and figures
  xvfb-run ./scripts/run.sh screenshot --lab train -o train.png  the window as a picture
  ./scripts/run.sh --help                                        everything else
TEXT
    exit 1
fi
trap - INT
exec "$build/fp8lab" "$@"
