#!/usr/bin/env bash
# Installs what FP8 Lab needs, from the distribution's packages only. Idempotent: when nothing is missing it
# returns at once and asks for no rights. On systems without apt it names the packages that are missing.
#   scripts/setup.sh            everything: application, tests, fuzz targets
#   scripts/setup.sh --build    what building and running the application needs
set -euo pipefail

# Debian 12 / Ubuntu 24.04 names. One line per purpose.
packages=(
    build-essential cmake ninja-build pkg-config git ca-certificates   # tool chain
    libeigen3-dev libopenblas-dev libhwy-dev                           # linear algebra, SIMD dispatch
    libfmt-dev libcli11-dev nlohmann-json3-dev libmd4c-dev             # text, options, JSON, Markdown
    libimgui-dev libglfw3-dev libgl-dev libfreetype-dev libstb-dev     # window, fonts, PNG
    fonts-inter fonts-jetbrains-mono libgl1-mesa-dri                   # faces; software GL where no GPU driver is
    doctest-dev                                                        # tests: without it the build cannot be configured
)
[ "${1:-}" = "--build" ] || packages+=(
    xvfb openbox xdotool                                               # a display without a monitor, real events
    clang-16 libclang-rt-16-dev                                        # fuzz targets
)

if ! command -v dpkg-query >/dev/null 2>&1; then
    missing=()
    for tool in cmake ninja g++ pkg-config; do command -v "$tool" >/dev/null 2>&1 || missing+=("$tool"); done
    for header in Eigen/Core hwy/highway.h fmt/core.h CLI/CLI.hpp nlohmann/json.hpp md4c.h GLFW/glfw3.h imgui.h stb/stb_image_write.h doctest/doctest.h; do
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

missing=()
for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "setup: missing packages: ${missing[*]}. Run as root: apt-get install ${missing[*]}" >&2; exit 1; }
    sudo=(sudo)
fi
echo "setup: installing ${missing[*]}" >&2
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || {
    echo "setup: apt-get could not install: ${missing[*]}" >&2
    exit 1
}
