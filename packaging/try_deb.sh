#!/usr/bin/env bash
# Installs the .deb packages of the folder given into a bare root, uses them, and removes them: see scripts/package_test.sh.
# shellcheck source=packaging/try.sh
. "$(dirname "${BASH_SOURCE[0]}")/try.sh"
cd "$1"
packages=(./fp8lab_*.deb)
cuda=(./fp8lab-cuda_*.deb)
[ -e "${cuda[0]}" ] && packages+=("${cuda[@]}")

# Every file but those that apt, dpkg and this test write.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /share -o -path /root -o -path /tmp -o -path /run \
        -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune -o -print | sort
}

step "apt-get install ${packages[*]}"
apt update
install "${packages[@]}"
! dpkg-query -W -f '${Package}\n' | grep -E -- '-dev$|^(g\+\+|gcc|cmake)(-[0-9]+)?$' || fail "the package brought a compiler or a -dev package"
# Tools of the test, after it: the program starts with what its package brought.
fp8lab doctor >/dev/null
install xvfb man-db desktop-file-utils groff-base
apt purge fp8lab
files >/tmp/before
install "${packages[@]}"

use fp8lab
step "dpkg --verify, man page, desktop entry"
dpkg --verify fp8lab || fail "files were changed"
page=$(MANWIDTH=80 man --warnings fp8lab 2>&1)
for verb in $(fp8lab --help | awk 'tolower($0) == "subcommands:" { on = 1; next } on && /^  [a-z]/ { print $1 }'); do
    grep -q "^   $verb\$" <<<"$page" || fail "the man page lacks $verb"
done
! grep -E "warning:|error:" <<<"$page" || fail "the man page has errors"
desktop-file-validate /usr/share/applications/fp8lab.desktop

if [ ${#packages[@]} -gt 1 ]; then
    step "doctor with a driver (a file that is named so) and without cuBLASLt"
    mkdir /tmp/driver
    cp "$(ldconfig -p | awk '/libz.so.1/ { print $NF; exit }')" /tmp/driver/libcuda.so.1
    LD_LIBRARY_PATH=/tmp/driver fp8lab doctor | grep ^gpu | tee /tmp/gpu
    grep -q "libcublasLt" /tmp/gpu || fail "doctor does not name the library that is missing"
fi

step "purge"
apt purge fp8lab
files >/tmp/after
diff /tmp/before /tmp/after || fail "the lines with > were left behind"
! dpkg-query -W 'fp8lab*' 2>/dev/null | grep . || fail "dpkg still knows the package"
