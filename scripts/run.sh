#!/usr/bin/env bash
# Sets up, builds and starts FP8 Lab with the arguments given: scripts/run.sh [VERB ...]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$here/scripts/setup.sh" --build
build=$here/build/release
[ -f "$build/build.ninja" ] || cmake -S "$here" --preset release >/dev/null
# Quiet when there is nothing to do; on stderr, since stdout carries only what the command was asked for.
cmake --build "$build" --target fp8lab fp8lab_assets -- --quiet >&2

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
exec "$build/fp8lab" "$@"
