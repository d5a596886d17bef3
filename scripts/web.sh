#!/usr/bin/env bash
# Makes the browser edition, build/web, in a Debian 13 root that it keeps (scripts/clean_root.sh: root and debootstrap).
# It alone fetches: packages and, held to their SHA256, source archives of Debian (packaging/web). The root has 3 GB.
#   scripts/web.sh          build/web/page, a folder for any web server, and build/web/fp8lab.js, the command line in Node
#   scripts/web.sh --serve  and serves the page at http://localhost:8000, until Ctrl C
#   scripts/web.sh --test   and holds what the command line says to what build/release/fp8lab says, and tests the page in a
#                           headless Chromium; what is handed in there is graded by build/release/fp8lab
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
    --serve) command -v python3 >/dev/null || fail "--serve needs python3" ;;
    *) echo "web: usage: scripts/web.sh [--serve|--test]" >&2; exit 2 ;;
esac
# shellcheck disable=SC2016  # apt's variable
mirror=$(apt-get indextargets --format '$(REPO_URI)' | sed 's,/*$,,' | grep -m 1 '/debian$' || echo http://deb.debian.org/debian)
"$here/scripts/clean_root.sh" --keep web --share "$here" trixie /share/packaging/web/build.sh "$mirror" "${arguments[@]}"
case ${1:-} in
    --serve) exec python3 -m http.server --bind 127.0.0.1 --directory "$here/build/web/page" 8000 ;;
    --test)
        "$here/build/release/fp8lab" check "$here/build/web_tested/submission.f8lab"
        "$here/build/release/fp8lab" check --rerun "$here/build/web_tested/submission.f8lab"
        ;;
esac
