#!/usr/bin/env bash
# Unpacks the .tar.gz of the folder given in a bare root, under a path with spaces, and uses it: see scripts/package_test.sh.
# shellcheck source=packaging/try.sh
. "$(dirname "${BASH_SOURCE[0]}")/try.sh"
place="/opt/a längerer place"
mkdir "$place"
tar -C "$place" -xzf "$1"/fp8lab-*.tar.gz
cd "$place"/fp8lab-*

step "the packages that its README names"
apt update
read -ra needed < <(sed -n 's/^ *apt-get install --no-install-recommends //p' README.txt)
install "${needed[@]}"
linked=$(ldd bin/fp8lab)
[[ $linked != *"not found"* ]] || fail "README.txt does not name all that is needed: $linked"
[[ $linked == *"libfmt"*"$PWD/"* ]] || fail "the archive's own libraries are not the ones that are used"

install xvfb
use "$PWD/bin/fp8lab"
grep -q "$PWD/.*share/fp8lab/fonts" "$HOME/doctor.log" || fail "the archive's own faces are not the ones that are used"
