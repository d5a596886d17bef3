# shellcheck shell=bash
# What run.sh, setup.sh and test.sh show of long work. On a terminal one line, drawn anew; elsewhere one line per minute.
# All of it on stderr: stdout carries only what a command was asked for. Source this file.

duration() {  # SECONDS in words
    if [ "$1" -lt 90 ]; then echo "$1 s"; else echo "$((($1 + 30) / 60)) min"; fi
}

# progress WHAT DONE TOTAL [SO_FAR]: of the work that begin_steps began; SO_FAR instead of "DONE of TOTAL".
begin_steps() { steps_began=$SECONDS steps_told=$SECONDS; }
progress() {
    local passed=$((SECONDS - steps_began)) left=""
    if [ "$passed" -ge 5 ] && [ "$2" -gt 0 ]; then left=", about $(duration $((passed * ($3 - $2) / $2))) left"; fi
    if [ -t 2 ]; then
        printf '\r\033[K%s: %s%s' "$1" "${4:-$2 of $3}" "$left" >&2
    elif [ $((SECONDS - steps_told)) -ge 60 ]; then
        steps_told=$SECONDS
        printf '%s: %s%s\n' "$1" "${4:-$2 of $3}" "$left" >&2
    fi
}
end_steps() { [ ! -t 2 ] || printf '\r\033[K' >&2; }

# Why something failed, in one sentence: the line of its output (stdin) that says so.
disk_full="the disk is full: make room (a build takes about 40 MB, with the tests 350 MB), then start again; it goes on from here"
names_reason() { [[ $1 == *"rror: "* || $1 == "CMake Error"* || $1 == "E: "* || $1 == "dpkg: error"* || $1 == "FAILED: "* ]]; }
reason() {
    local line next found="" last=""
    while IFS= read -r line; do
        [[ $line != *[Nn]"o space left on device"* ]] || { echo "$disk_full"; return; }
        if [ -z "$found" ] && names_reason "$line"; then
            found=$line
            # CMake and dpkg say where, and why on the indented lines below.
            while [[ $line == "CMake Error"* || $line == "dpkg: error"* ]] && IFS= read -r next && [[ $next == " "* ]]; do
                found+=" ${next#"${next%%[![:space:]]*}"}"
            done
        fi
        [ -z "$line" ] || last=$line
    done
    found=${found:-$last}
    echo "${found:-no reason was given}"
}

# configure_with_cmake WHO FOLDER ARGUMENT...: a failure is one sentence.
configure_with_cmake() {
    local who=$1 folder=$2 said status=0
    shift 2
    said=$(mkdir -p "$folder" 2>&1 && LC_ALL=C.UTF-8 cmake "$@" 2>&1) || status=$?
    # A full disk takes no log, and the sentence must come all the same. So below.
    { printf '%s\n' "$said" >"$folder/configure.log"; } 2>/dev/null || true
    [ "$status" -eq 0 ] || echo "$who: cannot configure the build: $(reason <<<"$said") (all of it: $folder/configure.log)" >&2
    return "$status"
}

# build_with_ninja WHO FOLDER [TARGET...]: shows how far it is; a failure is one sentence and where the log lies.
build_with_ninja() {
    local who=$1 folder=$2 line log=$2/build.log began=$SECONDS status=1 said=""
    shift 2
    { : >"$log"; } 2>/dev/null || true
    begin_steps
    while IFS= read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
            progress "$who: building" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
        elif [[ $line == "ninja ended: "* ]]; then
            status=${line#ninja ended: }
        else
            said+=$line$'\n'
        fi
        { printf '%s\n' "$line" >>"$log"; } 2>/dev/null || true
    done < <(LC_ALL=C.UTF-8 NINJA_STATUS='[%f/%t] ' cmake --build "$folder" ${1:+--target "$@"} 2>&1; echo "ninja ended: $?")
    end_steps
    if [ "$status" -ne 0 ]; then
        echo "$who: the build failed: $(reason <<<"$said") (all of it: $log)" >&2
        return 1
    fi
    [ $((SECONDS - began)) -lt 5 ] || echo "$who: built in $(duration $((SECONDS - began)))" >&2
}

# Whether the build in FOLDER has the CUDA backend.
builds_cuda() { grep -q '^build fp8lab-cuda:' "$1/build.ninja" 2>/dev/null; }

# interrupted_while WHO: Ctrl-C is one sentence.
interrupted_while() {
    # shellcheck disable=SC2064  # the name as it is now
    trap "end_steps; echo '$1: stopped; what is done is kept, and the next start goes on' >&2; exit 130" INT
}
