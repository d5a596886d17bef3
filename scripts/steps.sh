# shellcheck shell=bash
# What run.sh, setup.sh and test.sh show of long work. On a terminal one line, drawn anew; elsewhere a line a minute.
# All of it on stderr: stdout carries only what a command was asked for. Source this file.

duration() {  # SECONDS in words
    if [ "$1" -lt 90 ]; then echo "$1 s"; else echo "$((($1 + 30) / 60)) min"; fi
}

# progress WHAT DONE TOTAL: of the work that begin_steps began.
begin_steps() { steps_began=$SECONDS steps_told=$SECONDS; }
progress() {
    local passed=$((SECONDS - steps_began)) left=""
    if [ "$passed" -ge 5 ] && [ "$2" -gt 0 ]; then left=", about $(duration $((passed * ($3 - $2) / $2))) left"; fi
    if [ -t 2 ]; then
        printf '\r\033[K%s: %d of %d%s' "$1" "$2" "$3" "$left" >&2
    elif [ $((SECONDS - steps_told)) -ge 60 ]; then
        steps_told=$SECONDS
        printf '%s: %d of %d%s\n' "$1" "$2" "$3" "$left" >&2
    fi
}
end_steps() { [ ! -t 2 ] || printf '\r\033[K' >&2; }

# Why something failed, in one sentence, from the line of its output that says so.
disk_full="the disk is full: make room (about 300 MB), then start again; it goes on from here"
reason_of() {  # LINE
    if [[ $1 == *[Nn]"o space left on device"* ]]; then echo "$disk_full"; else echo "${1:-it does not say why}"; fi
}
names_reason() { [[ $1 == *"rror: "* || $1 == "CMake Error"* || $1 == "E: "* || $1 == *"o space left on device"* || $1 == "FAILED: "* ]]; }
reason_in() {  # LOG
    local line
    while IFS= read -r line; do
        if names_reason "$line"; then reason_of "$line"; return; fi
    done <"$1"
    reason_of "$(tail -n 1 "$1")"
}

# build_with_ninja WHO FOLDER [TARGET...]: shows how far it is; a failure is one sentence and where the log lies.
build_with_ninja() {
    local who=$1 folder=$2 line log=$2/build.log began=$SECONDS status=1 reason=""
    shift 2
    # A full disk takes no log either, and the sentence must come all the same.
    : 2>/dev/null >"$log" || true
    begin_steps
    while IFS= read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
            progress "$who: building" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
        elif [[ $line == "ninja ended: "* ]]; then
            status=${line#ninja ended: }
        elif [[ $line == *"o space left on device"* ]] || { [ -z "$reason" ] && [[ $line == *"rror: "* ]]; }; then
            reason=$line
        fi
        { printf '%s\n' "$line" >>"$log"; } 2>/dev/null || true
    done < <(NINJA_STATUS='[%f/%t] ' cmake --build "$folder" ${1:+--target "$@"} 2>&1; echo "ninja ended: $?")
    end_steps
    if [ "$status" -ne 0 ]; then
        echo "$who: the build failed: $(reason_of "$reason") (all of it: $log)" >&2
        return 1
    fi
    [ $((SECONDS - began)) -lt 5 ] || echo "$who: built in $(duration $((SECONDS - began)))" >&2
}

# interrupted_while WHO: Ctrl-C is one sentence.
interrupted_while() {
    # shellcheck disable=SC2064  # the name as it is now
    trap "end_steps; echo '$1: stopped; what is done is kept, and the next start goes on' >&2; exit 130" INT
}
