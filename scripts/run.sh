#!/usr/bin/env bash
# Sets up, builds and starts FP8 Lab with the arguments given: scripts/run.sh [VERB ...]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/steps.sh
. "$here/scripts/steps.sh"
build=$here/build/release
interrupted_while run

# The CUDA backend takes minutes to compile: only where a GPU with FP8 can use it. Sets why, in words.
wants_cuda() {
    local nvcc version capability
    if [ ! -d /proc/driver/nvidia/gpus ] && ! command -v nvidia-smi >/dev/null; then  # WSL has the second only
        why="no NVIDIA GPU here"
        return 1
    fi
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | grep -xE '[0-9]+\.[0-9]+' | sort -V | tail -n 1 || true)
    if [ -z "$capability" ]; then
        why="nvidia-smi finds no GPU here"
        return 1
    elif [ "${capability/./}" -lt 89 ]; then
        why="the GPU here has compute capability $capability, and FP8 needs 8.9"
        return 1
    fi
    nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
    version=$("$nvcc" --version 2>/dev/null | sed -nE 's/.*release ([0-9]+\.[0-9]+).*/\1/p' || true)
    if [ "$(printf '%s\n' 12.9 "${version:-0}" | sort -V | head -n 1)" != 12.9 ]; then
        why="there is an NVIDIA GPU, but the CUDA toolkit is ${version:-missing} and 12.9 or newer is needed"
        return 1
    fi
    why="with the CUDA backend for this GPU (a few minutes more)"
}
cuda=OFF
if wants_cuda; then cuda=ON; else why="$why, so the CUDA backend is not built"; fi

if [ ! -x "$build/fp8lab" ]; then
    echo "run: first start: sets up, then builds for about $(duration $((300 / $(nproc) + 15))) on $(nproc) cores; $why" >&2
fi
"$here/scripts/setup.sh" --build
if [ ! -f "$build/build.ninja" ] || { [ "$cuda" = ON ] && ! builds_cuda "$build"; }; then
    tests=OFF
    ! grep -q '^FP8LAB_TESTS:BOOL=ON$' "$build/CMakeCache.txt" 2>/dev/null || tests=ON
    configure_with_cmake run "$build" -S "$here" --preset release -DFP8LAB_CUDA=$cuda -DFP8LAB_TESTS=$tests || {
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
    verbs=$("$build/fp8lab" --help | awk 'tolower($0) == "subcommands:" { on = 1; next } on && /^  [a-z]/ { print $1 }')
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
