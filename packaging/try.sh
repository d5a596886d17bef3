# shellcheck shell=bash
# What try_deb.sh and try_archive.sh share: to be sourced, by root, in a root that may be spoilt.
set -euo pipefail
# The program keeps what it keeps apart from what a package could leave.
HOME=$(mktemp -d)
export HOME DEBIAN_FRONTEND=noninteractive

step() { echo "-- $*"; }
fail() { echo "$0: $*" >&2; exit 1; }
apt() { apt-get -y -qq "$@" >"$HOME/apt.log" 2>&1 || { cat "$HOME/apt.log" >&2; fail "apt-get $*"; }; }
install() { apt install --no-install-recommends "$@"; }

# FILE is a picture of a window, not an empty one: a PNG that does not compress to nothing.
is_picture() {
    if [ "$(head -c 4 "$1" | tail -c 3)" != PNG ] || [ "$(stat -c %s "$1")" -lt 20000 ]; then
        fail "$1 is no picture of a window"
    fi
}

# PROGRAM does a lab's numbers, draws a picture, and opens its window, which SIGTERM closes.
use() {
    local program=$1 log=$HOME/window.log shown="" status=0
    step "$program doctor"
    "$program" doctor | tee "$HOME/doctor.log"
    ! grep -q "^fonts .*no: " "$HOME/doctor.log" || fail "doctor finds no fonts"
    step "$program run L5"
    "$program" run L5 >"$HOME/l5.json"
    grep -q '"a.mean_underflow_pct"' "$HOME/l5.json" || fail "run L5 gave no metrics"
    step "$program screenshot, and the window, under Xvfb"
    Xvfb :87 -screen 0 1440x900x24 >/dev/null 2>&1 &
    local server=$!
    export DISPLAY=:87
    for _ in $(seq 100); do [ -e /tmp/.X11-unix/X87 ] && break; sleep 0.1; done
    "$program" screenshot --lab train -o "$HOME/train.png"
    is_picture "$HOME/train.png"
    : >"$log"
    "$program" --trace-startup --profile "$HOME/profile" 2>"$log" &
    local window=$!
    for _ in $(seq 300); do
        grep -q "first frame" "$log" && shown=yes && break
        kill -0 "$window" 2>/dev/null || break
        sleep 0.1
    done
    [ -n "$shown" ] || fail "the window drew no frame: $(cat "$log")"
    kill -TERM "$window"
    wait "$window" || status=$?
    [ "$status" -eq 143 ] || fail "the window ended with $status: $(cat "$log")"
    kill "$server"
    wait "$server" || true
    unset DISPLAY
}
