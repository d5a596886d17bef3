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
if cat "$here"/archives.txt "$here"/toolchain.cmake "$here"/libraries/CMakeLists.txt "$here"/libraries/*/CMakeLists.txt | changed libraries; then
    echo "web: compiling the libraries" >&2
    rm -rf "$kept/libraries" "$prefix"
    quietly "$kept/libraries.log" cmake -S "$here/libraries" -B "$kept/libraries" "${toolchain[@]}" \
        "-DSOURCES=$kept/sources" "-DCMAKE_INSTALL_PREFIX=$prefix"
    quietly "$kept/libraries.log" cmake --build "$kept/libraries" --target install
    made libraries
fi

# Of a toolchain's flags, and of what pkg-config says, CMake takes those of the first time.
build=/share/build/web
if [ ! -f "$build/build.ninja" ] || cat "$kept/made/libraries" "$here/build.sh" | changed configuration; then
    mkdir -p "$build"
    rm -f "$build/CMakeCache.txt"
    quietly "$build/configure.log" cmake -S /share -B "$build" "${toolchain[@]}" \
        -DFP8LAB_BROWSER=ON -DFP8LAB_TESTS=OFF -DFP8LAB_CUDA=OFF -DFP8LAB_OPENBLAS=OFF -DFP8LAB_THREADS=OFF
    cat "$kept/made/libraries" "$here/build.sh" >"$kept/made/configuration"
fi
# shellcheck source=scripts/steps.sh
. "$here/../../scripts/steps.sh"
build_with_ninja web "$build" fp8lab fp8lab_page fp8lab_assets

# The folder for a server: the page, its program, and the assets. Of the fonts the letters that the program has a use for.
page=$build/page
cp /share/app/desktop/fp8lab.svg "$page"
letters=$(sed -n '/ kGlyphs\[\] = {/,/;/p' /share/labs/ui/fonts.cpp | grep -o "0x[0-9A-F]*" | sed s,0x,, | paste -d- - - | paste -sd,)
fonts=$kept/fonts
if { echo "$letters"; sed -n '/pyftsubset/p' "$here/build.sh"; } | changed fonts; then
    rm -rf "$fonts"
    mkdir -p "$fonts"
    for font in /usr/share/fonts/opentype/inter/Inter-{Regular,SemiBold}.otf /usr/share/fonts/truetype/jetbrains-mono/JetBrainsMono-{Regular,SemiBold}.ttf; do
        quietly "$kept/fonts.log" pyftsubset "$font" --unicodes="$letters" --layout-features= --output-file="$fonts/${font##*/}"
    done
    made fonts
fi
node "$here/pack.mjs" /share/assets "$fonts" "$here/page" "$page"

[ $# -ge 2 ] || exit 0
node "$here/same_as_desktop.mjs" "$build/fp8lab.js" "$2"
node "$here/test/page_test.mjs" "$page" /share/build/web_tested
