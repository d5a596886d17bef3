#!/usr/bin/env bash
# Makes build/web of the checkout at /share, inside the root that scripts/web.sh keeps: build.sh MIRROR [DESKTOP]
# DESKTOP, a folder: then holds what it says to what the desktop said (same_as_desktop.mjs).
# What is fetched and compiled for it is kept in /root/web: delete that folder to begin anew.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
kept=/root/web
prefix=$kept/prefix
fail() { echo "web: $*" >&2; exit 1; }

# changed NAME: whether what stdin says differs from what NAME was made of. made NAME: it is made now.
mkdir -p "$kept/made"
changed() { cat >"$kept/made/$1.new"; ! cmp --quiet "$kept/made/$1.new" "$kept/made/$1"; }
made() { mv "$kept/made/$1.new" "$kept/made/$1"; }
lines() { grep -v '^#' "$here/$1"; }

if lines packages.txt | changed packages; then
    echo "web: installing emscripten and what it needs (3 GB, a few minutes)" >&2
    {
        apt-get update
        lines packages.txt | DEBIAN_FRONTEND=noninteractive xargs apt-get install -y --no-install-recommends
        apt-get clean
    } >"$kept/packages.log" 2>&1 || fail "packages could not be installed: see packages.log in /root/web of the root"
    made packages
fi

if lines archives.txt | changed archives; then
    rm -rf "$kept/sources"
    while read -r sum path; do
        name=${path##*/}
        folder=$kept/sources/${name%%_*}
        mkdir -p "$folder"
        # apt's own download: it knows this machine's proxies and holds the file to its sum.
        /usr/lib/apt/apt-helper download-file "$1/${path//+/%2b}" "$kept/$name" "SHA256:$sum" >"$kept/archives.log" 2>&1 ||
            fail "$name could not be had from $1: $(grep -m 1 '^E: ' "$kept/archives.log")"
        tar -C "$folder" --strip-components=1 -xf "$kept/$name"
        rm "$kept/$name"
    done < <(lines archives.txt)
    made archives
fi

# quietly LOG COMMAND...: its output goes to a file, and is shown where it fails.
quietly() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 || { tail -n 40 "$log" >&2; fail "failed: $* (all of it: $log)"; }
}
toolchain=(-G Ninja -D CMAKE_BUILD_TYPE=Release "-DCMAKE_TOOLCHAIN_FILE=$here/toolchain.cmake")

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig  # emscripten's toolchain sets PKG_CONFIG_LIBDIR
if cat "$here"/archives.txt "$here"/toolchain.cmake "$here"/libraries/* | changed libraries; then
    echo "web: compiling the libraries" >&2
    rm -rf "$kept/libraries" "$prefix"
    quietly "$kept/libraries.log" cmake -S "$here/libraries" -B "$kept/libraries" "${toolchain[@]}" \
        "-DSOURCES=$kept/sources" "-DCMAKE_INSTALL_PREFIX=$prefix"
    quietly "$kept/libraries.log" cmake --build "$kept/libraries" --target install
    made libraries
fi

# Of the flags of a toolchain CMake takes those of the first time.
build=/share/build/web
if [ ! -f "$build/build.ninja" ] || changed configuration <"$here/toolchain.cmake"; then
    rm -rf "$build"
    mkdir -p "$build"
    quietly "$build/configure.log" cmake -S /share -B "$build" "${toolchain[@]}" \
        -DFP8LAB_GUI=OFF -DFP8LAB_TESTS=OFF -DFP8LAB_CUDA=OFF -DFP8LAB_OPENBLAS=OFF -DFP8LAB_THREADS=OFF
    cp "$here/toolchain.cmake" "$kept/made/configuration"
fi
# shellcheck source=scripts/steps.sh
. "$here/../../scripts/steps.sh"
build_with_ninja web "$build" fp8lab fp8lab_assets
[ $# -lt 2 ] || node "$here/same_as_desktop.mjs" "$build/fp8lab.js" "$2"
