#!/usr/bin/env bash
# Makes the packages for the distribution that it runs on, in build/packages: a .deb of the program, one of the CUDA
# backend where nvcc is, and a .tar.gz that can be unpacked anywhere:
#   scripts/package.sh [OPTION...]      options for cmake, e.g. -DFP8LAB_MAINTAINER="NAME <ADDRESS>"
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$here/scripts/setup.sh" --build
for tool in file dpkg-shlibdeps; do  # cpack looks for the libraries that a binary needs with both
    command -v "$tool" >/dev/null || { echo "package: $tool is missing: apt-get install file dpkg-dev" >&2; exit 1; }
done
build=$here/build/package
cmake -S "$here" --preset release -B "$build" -DFP8LAB_TESTS=OFF -DFP8LAB_CUDA_ARCHS=all "$@" >/dev/null
cmake --build "$build"
rm -rf "$here/build/packages"
cpack --config "$build/CPackConfig.cmake" -B "$build" -D CPACK_OUTPUT_FILE_PREFIX="$here/build/packages" >"$build/cpack.log" || {
    cat "$build/cpack.log" >&2
    exit 1
}
ls -sh "$here/build/packages"
