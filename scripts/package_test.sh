#!/usr/bin/env bash
# Makes the packages in a clean root of a distribution, and tries them in others that have no compiler and no -dev package:
#   scripts/package_test.sh SUITE [DIR]     DIR: packages that are there already, instead of making them
# SUITE and what is needed: see scripts/clean_root.sh. What is tried: packaging/try_deb.sh, packaging/try_archive.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
suite=${1:-}
packages=${2:-}
if [ -z "$suite" ] || [ $# -gt 2 ]; then
    echo "package_test: usage: scripts/package_test.sh SUITE [DIR]" >&2
    exit 2
fi

if [ -z "$packages" ]; then
    packages=$(mktemp -d)
    trap 'rm -rf "$packages"' EXIT
    "$here/scripts/clean_root.sh" --share "$packages" "$suite" sh -euc '
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends file >/dev/null
        ./scripts/package.sh
        cp build/packages/* /share'
fi
for try in packaging/try_deb.sh packaging/try_archive.sh; do
    "$here/scripts/clean_root.sh" --share "$packages" "$suite" "$try" /share
done
echo "package_test: $suite: every package was installed, used and removed"
