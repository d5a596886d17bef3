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
        # clang 16 is the first with std::source_location. Debian 13 has none below 17.
        if [ "${1:-}" = --fuzz ]; then
            clang=16
            grep -qsE '^VERSION_CODENAME=(bookworm|noble)$' /etc/os-release || clang=19
            packages+=("clang-$clang" "libclang-rt-$clang-dev")
        fi
        ;;
    *)
        echo "setup: usage: scripts/setup.sh [--build|--fuzz]" >&2
        exit 2
        ;;
esac

if ! { command -v apt-get && command -v dpkg-query; } >/dev/null 2>&1; then
    missing=()
    for tool in cmake ninja g++ pkg-config; do command -v "$tool" >/dev/null 2>&1 || missing+=("$tool"); done
    for module in openblas libhwy freetype2; do pkg-config --exists "$module" 2>/dev/null || missing+=("$module"); done
    headers=(Eigen/Core fmt/core.h CLI/CLI.hpp nlohmann/json.hpp md4c.h GLFW/glfw3.h GL/gl.h imgui.h stb/stb_image.h)
    [ "${1:-}" = --build ] || headers+=(doctest/doctest.h)
    for header in "${headers[@]}"; do
        for root in /usr/include /usr/local/include /usr/include/{eigen3,imgui,doctest}; do
            # Some distributions have them without the folder.
            { [ -e "$root/$header" ] || [ -e "$root/${header#*/}" ]; } && continue 2
        done
        missing+=("$header")
    done
    [ ${#missing[@]} -eq 0 ] && exit 0
    echo "setup: this system has no apt. Not found: ${missing[*]}" >&2
    echo "setup: install them with your package manager; the Debian names are: ${packages[*]}" >&2
    exit 1
fi

# Only packages of this machine's architecture count: one for i386 does not help.
native=$(dpkg --print-architecture)
is_installed() { dpkg-query -W -f='${db:Status-Status} ${Architecture}\n' "$1" 2>/dev/null | grep -xE "installed ($native|all)" >/dev/null; }
find_missing() {
    missing=()
    for package in "${packages[@]}"; do is_installed "$package" || missing+=("$package"); done
}
find_missing
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
    if ! { command -v sudo >/dev/null 2>&1 && sudo true; }; then
        echo "setup: ${#missing[@]} packages are missing, and sudo does not work here. As root, run: apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
    sudo=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# apt CALL...: its output in the log, how far it is on stderr. sudo closes descriptor 3, so that a shell behind it opens it.
apt() {
    local kind what percent before="" status=1
    while IFS=: read -r kind what percent _; do
        case $kind in
            dlstatus | pmstatus)
                [ "$kind" = "$before" ] || begin_steps
                before=$kind
                [ "$kind" = dlstatus ] && what=downloading || what=installing
                [[ ! $percent =~ ^[0-9]+ ]] || progress "setup: $what" "${BASH_REMATCH[0]}" 100 "${BASH_REMATCH[0]} %"
                ;;
            "apt ended") status=$what ;;
        esac
    done < <("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C \
        sh -c 'exec apt-get -y -q -o APT::Status-Fd=3 "$@" 3>&1 >&2' apt-get "$@" 2>>"$log" </dev/null; echo "apt ended:$?")
    end_steps
    return "$status"
}
failed() {  # WHAT
    echo "setup: $1: $(reason <"$log") (missing: ${missing[*]}; the next start tries again)" >&2
    exit 1
}

if [ -n "$(dpkg --audit 2>/dev/null)" ]; then
    echo "setup: an earlier installation was cut off; finishing it first" >&2
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C dpkg --configure -a >"$log" 2>&1 </dev/null ||
        { : >"$log" && apt install --fix-broken; } || failed "cannot finish an earlier installation"
    find_missing
    [ ${#missing[@]} -eq 0 ] && exit 0
fi
echo "setup: ${#missing[@]} packages of this distribution are missing: ${missing[*]}" >&2
# A source that fails need not be one that is used: whether it matters shows below.
apt update || true
if grep -qE '^(Err|E: |W: Failed to fetch)' "$log"; then
    unfetched=" (some lists of packages could not be fetched: is there a network?)"
else
    unfetched=""
    : >"$log"
fi
plan=$("${sudo[@]}" env LC_ALL=C apt-get install --assume-no --no-install-recommends "${missing[@]}" 2>>"$log" </dev/null || true)
[[ $plan =~ ([0-9]+)\ newly\ installed ]] || failed "the packages cannot be installed$unfetched"
need=${BASH_REMATCH[1]}
[[ $plan =~ Need\ to\ get\ ([0-9.,]+\ .?B) ]] && get=${BASH_REMATCH[1]} || get="size unknown"
[[ $plan =~ ([0-9.,]+\ .?B)\ of\ additional\ disk ]] && disk=${BASH_REMATCH[1]} || disk="size unknown"
echo "setup: installing $need packages ($get to download, $disk on the disk): about $(duration $((20 + need / 2)))" >&2
: >"$log"
apt install --no-install-recommends "${missing[@]}" || failed "cannot install packages$unfetched"
