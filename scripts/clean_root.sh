#!/usr/bin/env bash
# Tries FP8 Lab on a bare machine: a new root of a distribution (debootstrap, chroot) with a clone of HEAD.
#   scripts/clean_root.sh SUITE                   the README's commands: run.sh doctor (no display), then test.sh
#   scripts/clean_root.sh SUITE COMMAND [ARG...]  this command, inside the clone, instead
#   scripts/clean_root.sh --share DIR SUITE ...   DIR of this machine is /share inside, for reading and writing
#   scripts/clean_root.sh --keep NAME SUITE COMMAND [ARG...]
#                                                 in a root that is kept under this name for the next time; it has no clone
# SUITE is bookworm or trixie (Debian), or noble (Ubuntu). Needs root and debootstrap, on Debian or Ubuntu.
#
# The bare root and the downloaded packages are kept in ${XDG_CACHE_HOME:-~/.cache}/fp8lab/clean_root: delete that folder to
# begin anew. Each run unpacks a root of its own there and, without --keep, removes it. What is not committed is not tried.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
fail() { echo "clean_root: $*" >&2; exit 1; }
usage() { echo "clean_root: usage: scripts/clean_root.sh [--share DIR] [--keep NAME] bookworm|trixie|noble [COMMAND [ARG...]]" >&2; exit 2; }

share="" keep=""
while [[ ${1:-} == --* ]]; do
    [ $# -ge 2 ] || usage
    case $1 in
        --share) share=$(cd "$2" 2>/dev/null && pwd) || fail "--share: $2 is not a folder" ;;
        --keep)
            [[ $2 =~ ^[a-z0-9_]+$ ]] || fail "--keep: $2 is not a name of small letters, digits and _"
            keep=$2
            ;;
        *) usage ;;
    esac
    shift 2
done
[ -z "$keep" ] || [ $# -ge 2 ] || usage
suite=${1:-}
case $suite in
    bookworm | trixie) vendor=debian keys=debian-archive-keyring components=main ;;
    noble) vendor=ubuntu keys=ubuntu-keyring components=main,universe ;;
    *) usage ;;
esac
keyring=/usr/share/keyrings/$vendor-archive-keyring.gpg
shift
[ "$(id -u)" -eq 0 ] || fail "only root can make a root: sudo scripts/clean_root.sh $suite"
for tool in debootstrap git unshare chroot; do
    command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install debootstrap git util-linux coreutils"
done
[ -f "$keyring" ] || fail "$keyring is missing, and without it the packages of $suite cannot be trusted: apt-get install $keys"

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/fp8lab/clean_root
base=$cache/$suite.tar.gz
archives=$cache/$suite-archives
mkdir -p "$archives"

# Where this machine's apt gets packages from, else the distribution's own address.
address() {  # END OTHERWISE: the first address that ends so
    local found
    # shellcheck disable=SC2016  # apt's variable, not ours
    found=$(apt-get indextargets --format '$(REPO_URI)' | sed 's,/*$,,' | grep -m 1 "/$1\$" || true)
    echo "${found:-$2}"
}
if [ "$vendor" = debian ]; then
    mirror=$(address debian http://deb.debian.org/debian)
    security=$(address debian-security http://deb.debian.org/debian-security)
else
    mirror=$(address ubuntu http://archive.ubuntu.com/ubuntu)
    security=$mirror
fi

# What runs inside has mounts and process numbers of its own, so that the kernel undoes every mount and ends every
# process with it, however it ends. A job in the background, because a shell that waits for one hears signals at once.
job=
apart() {
    unshare --mount --pid --fork --kill-child env --default-signal=INT,QUIT "$@" <&0 &
    job=$!
    local status=0
    wait "$job" || status=$?
    job=
    return "$status"
}

root=
# shellcheck disable=SC2317  # called by the trap
clean_up() {
    trap '' INT TERM HUP
    [ -n "$job" ] && { kill -KILL "$job" || true; wait "$job" || true; } 2>/dev/null
    [ -n "$root" ] || return 0
    ln -f "$root"/var/cache/apt/archives/*.deb "$archives" 2>/dev/null || true
    if cut -d ' ' -f 5 /proc/self/mountinfo | grep -F "/${root##*/}" >/dev/null; then
        echo "clean_root: $root is left: something is mounted in it" >&2
        return
    fi
    [ -z "$keep" ] || [ ! -e "$root/$ready" ] || return 0
    # Again where a process that is just ending wrote into it meanwhile.
    rm -rf --one-file-system "$root" 2>/dev/null || { sleep 1; rm -rf --one-file-system "$root"; }
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# A kept root is whole once it has this file.
ready=etc/fp8lab-root
if [ -n "$keep" ]; then
    exec {lock}>"$cache/$suite-$keep.lock"
    flock --nonblock "$lock" || fail "the root $keep is in use: wait until the other run has ended"
    root=$cache/$suite-$keep
    [ -e "$root/$ready" ] || rm -rf --one-file-system "$root"
    mkdir -p "$root"
else
    root=$(mktemp -d "$cache/$suite.XXXXXX")
fi
chmod 755 "$root"
if [ -e "$root/$ready" ]; then
    :
elif [ ! -f "$base" ]; then
    echo "== bare root of $suite from $mirror, made once" >&2
    apart debootstrap --variant=minbase --force-check-gpg --keyring="$keyring" --components="$components" \
        "$suite" "$root" "$mirror" >"$cache/$suite.log" || fail "debootstrap failed: see $cache/$suite.log"
    chroot "$root" apt-get clean
    tar -C "$root" --exclude='./proc/*' --exclude='./sys/*' -czf "$base.part" .
    mv "$base.part" "$base"
else
    tar -C "$root" -xzf "$base"
fi

# Like a machine beside this one: the same network and proxies, security updates, no service started.
etc=$root/etc
cp -L /etc/resolv.conf "$etc/resolv.conf"
apt-config dump | grep -E '^Acquire::(http|https|Retries|Check|GzipIndexes|Languages)' >"$etc/apt/apt.conf.d/90host" || true
{
    echo "deb $mirror $suite ${components/,/ }"
    echo "deb $mirror $suite-updates ${components/,/ }"
    echo "deb $security $suite-security ${components/,/ }"
} >"$etc/apt/sources.list"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
ln -f "$archives"/*.deb "$root/var/cache/apt/archives" 2>/dev/null || true
if [ -z "$keep" ]; then
    git clone --quiet --depth 1 "file://$here" "$root/root/fp8lab"
    what="$suite, $(git -C "$root/root/fp8lab" rev-parse --short HEAD)"
    folder=/root/fp8lab
else
    what="$suite, the root $keep"
    folder=/root
fi
mkdir -p "$root/share"
touch "$root/$ready"

variables=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "TERM=${TERM:-dumb}")
for name in http_proxy https_proxy no_proxy; do
    [ -n "${!name:-}" ] && variables+=("$name=${!name}")
done
# Not exec: process 1 would ignore signals.
# shellcheck disable=SC2016  # expanded inside
inside='root=$1 share=$2 folder=$3; shift 3
mount --bind "$root" "$root"  # / is a mount inside, as on a machine
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t devpts -o newinstance,ptmxmode=0666,gid=5,mode=620 devpts "$root/dev/pts"
mkdir -p "$root/dev/shm" && mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
[ -z "$share" ] || mount --bind "$share" "$root/share"
chroot "$root" /usr/bin/env --ignore-environment --chdir="$folder" "$@" || exit $?'

# Sets cpu to the seconds of processor that the children took. By a file: in a pipe `times` tells of another shell.
measure_cpu() {
    times >"$root/times"
    cpu=$(awk -F '[ms ]' 'NR == 2 { printf "%d", 60 * ($1 + $4) + $2 + $5 }' "$root/times")
    rm "$root/times"
}

summary=
attempt() {
    local status=0 start=$SECONDS name=${*//$'\n'/ } cpu before minutes
    [ ${#name} -le 60 ] || name="${name:0:57}..."
    measure_cpu
    before=$cpu
    echo "== $suite: $name" >&2
    apart bash -euc "$inside" inside "$root" "$share" "$folder" "${variables[@]}" "$@" || status=$?
    measure_cpu
    minutes=$(((SECONDS - start) / 60))
    summary+="; $name: exit $status after $minutes min $(((SECONDS - start) % 60)) s, $((cpu - before)) s of CPU"
    return "$status"
}
status=0
if [ $# -gt 0 ]; then
    attempt "$@" || status=$?
else
    { attempt ./scripts/run.sh doctor && attempt ./scripts/test.sh; } || status=$?
fi
echo "clean_root: $what$summary" >&2
exit "$status"
