#!/usr/bin/env bash
# Installs what FP8 Lab needs, from the distribution's packages only. Idempotent: when nothing is missing it
# returns at once and asks for no rights. On systems without apt it names the packages that are missing.
#   scripts/setup.sh            application and tests
#   scripts/setup.sh --build    what building and running the application needs
#   scripts/setup.sh --fuzz     application, tests, and clang for the fuzz targets
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/steps.sh
. "$here/scripts/steps.sh"
interrupted_while setup

# Debian's and Ubuntu's names. One line per purpose.
packages=(
    build-essential cmake ninja-build pkg-config git ca-certificates   # tool chain
    libeigen3-dev libopenblas-dev libhwy-dev                           # linear algebra, SIMD dispatch
    libfmt-dev libcli11-dev nlohmann-json3-dev libmd4c-dev             # text, options, JSON, Markdown
    libimgui-dev libglfw3-dev libgl-dev libfreetype-dev libstb-dev     # window, fonts, PNG
    fonts-inter fonts-jetbrains-mono libgl1-mesa-dri                   # faces; software GL where no GPU driver is
)
case ${1:-} in
    --build) ;;
    --fuzz | "")
        packages+=(
            doctest-dev                                                # tests
            xvfb openbox xdotool x11-xkb-utils                         # a display without a monitor, real events
        )
        # The first that has std::source_location: Debian 12 and Ubuntu 24.04, Debian 13.
        if [ "${1:-}" = --fuzz ]; then
            clang=16
            [ -n "$(apt-cache madison clang-16 2>/dev/null)" ] || clang=19
            packages+=("clang-$clang" "libclang-rt-$clang-dev")
        fi
        ;;
    *)
        echo "setup: usage: scripts/setup.sh [--build|--fuzz]" >&2
        exit 2
        ;;
esac

if ! command -v dpkg-query >/dev/null 2>&1; then
    missing=()
    for tool in cmake ninja g++ pkg-config; do command -v "$tool" >/dev/null 2>&1 || missing+=("$tool"); done
    for header in Eigen/Core hwy/highway.h fmt/core.h CLI/CLI.hpp nlohmann/json.hpp md4c.h GLFW/glfw3.h imgui.h stb/stb_image_write.h; do
        for root in /usr/include /usr/local/include /usr/include/imgui /opt/homebrew/include; do
            [ -e "$root/$header" ] && continue 2
        done
        missing+=("$header")
    done
    [ ${#missing[@]} -eq 0 ] && exit 0
    echo "setup: this system has no apt. Not found: ${missing[*]}" >&2
    echo "setup: install them with your package manager; the Debian names are: ${packages[*]}" >&2
    exit 1
fi

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
missing=()
for package in "${packages[@]}"; do is_installed "$package" || missing+=("$package"); done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "setup: missing packages: ${missing[*]}. Run as root: apt-get install ${missing[*]}" >&2; exit 1; }
    sudo=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# apt CALL...: its output in the log, how far it is on stderr.
apt() {
    local kind what percent status=1
    begin_steps
    while IFS=: read -r kind what percent _; do
        case $kind in
            dlstatus | pmstatus)
                [[ $percent =~ ^[0-9]+ ]] && progress "setup: ${1/#install/installing}" "${BASH_REMATCH[0]}" 100
                ;;
            "apt ended") status=$what ;;
        esac
    done < <("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -y -q -o APT::Status-Fd=3 "$@" 3>&1 >>"$log" 2>&1 </dev/null; echo "apt ended:$?")
    end_steps
    return "$status"
}
failed() {  # DOING
    echo "setup: $1: $(reason_in "$log") (missing: ${missing[*]}; the next start tries again)" >&2
    exit 1
}

if [ -n "$(dpkg --audit 2>/dev/null)" ]; then
    echo "setup: an earlier installation was cut off; finishing it first (dpkg --configure -a)" >&2
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive dpkg --configure -a >"$log" 2>&1 </dev/null || failed "cannot finish an earlier installation"
fi
echo "setup: ${#missing[@]} packages of this distribution are missing: ${missing[*]}" >&2
apt update || failed "cannot fetch the lists of packages (is there a network?)"
grep -qE '^(Err|W: Failed to fetch)' "$log" && echo "setup: some lists of packages could not be fetched; going on with those of before" >&2
need=$(LC_ALL=C apt-get install -s --no-install-recommends "${missing[@]}" 2>"$log" | grep -c '^Inst' || true)
[ "$need" -gt 0 ] || failed "the packages cannot be installed"
size=$(LC_ALL=C "${sudo[@]}" apt-get install --assume-no --no-install-recommends "${missing[@]}" 2>/dev/null | grep -oE 'Need to get [0-9.,]+ .?B|[0-9.,]+ .?B of additional disk space' | paste -sd, || true)
echo "setup: installing $need packages with what they need (${size:-size unknown}): about $(duration $((20 + need / 2)))" >&2
apt install --no-install-recommends "${missing[@]}" || failed "cannot install packages"
