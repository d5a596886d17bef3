#!/usr/bin/env bash
# Makes the browser edition, build/web, in a Debian 13 root that it keeps (scripts/clean_root.sh: root and debootstrap).
# It alone fetches: packages and, held to their SHA256, source archives of Debian (packaging/web). The root has 3 GB.
#   scripts/web.sh          build/web/fp8lab.js, the command line in Node: node build/web/fp8lab.js codes e4m3
#   scripts/web.sh --test   and holds what it says to what build/release/fp8lab says
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
fail() { echo "web: $*" >&2; exit 1; }

# The desktop's output for each command of same_as_desktop.txt: 1.out, 1.status, ...
ask_desktop() {
    local command number=0 status
    rm -rf "$1"
    mkdir -p "$1"
    while IFS= read -r command; do
        number=$((number + 1)) status=0
        read -ra words <<<"$command"
        "$here/build/release/fp8lab" "${words[@]}" >"$1/$number.out" 2>/dev/null </dev/null || status=$?
        echo "$status" >"$1/$number.status"
    done < <(grep -v '^[#* ]' "$here/packaging/web/same_as_desktop.txt")
}

arguments=()
case ${1:-} in
    "") ;;
    --test)
        [ -x "$here/build/release/fp8lab" ] || fail "--test needs the desktop's program: scripts/run.sh doctor builds it"
        ask_desktop "$here/build/web_desktop"
        arguments=(/share/build/web_desktop)
        ;;
    *) echo "web: usage: scripts/web.sh [--test]" >&2; exit 2 ;;
esac
# shellcheck disable=SC2016  # apt's variable
mirror=$(apt-get indextargets --format '$(REPO_URI)' | sed 's,/*$,,' | grep -m 1 '/debian$' || echo http://deb.debian.org/debian)
"$here/scripts/clean_root.sh" --keep web --share "$here" trixie /share/packaging/web/build.sh "$mirror" "${arguments[@]}"
