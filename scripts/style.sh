#!/usr/bin/env bash
# How the C++ that changed is written: clang-format 14 on each changed file, clang-tidy on the changed lines.
#   scripts/style.sh [BUILD [SINCE]]   BUILD: a configured build folder (default build/release), SINCE: a commit (HEAD~1)
# A tool that is not installed is skipped with the reason. clang-tidy takes 10 to 30 s a file: FP8LAB_TIDY_S limits it
# (default 120 s; 0: no limit), and what was left out is said.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
since=${2:-HEAD~1}
limit=${FP8LAB_TIDY_S:-120}

if ! git rev-parse --quiet --verify "$since^{commit}" >/dev/null 2>&1; then
    echo "style: skipped: there is no commit $since to compare with"
    exit 0
fi
mapfile -t changed < <(git diff --name-only --diff-filter=d "$since" -- '*.cpp' '*.h' '*.cu' '*.cuh')
if [ ${#changed[@]} -eq 0 ]; then
    echo "style: no C++ changed since $since"
    exit 0
fi

# The first of the names that is version 14; empty: none.
version_14() {
    local name
    for name in "$1-14" "$1"; do
        if "$name" --version 2>/dev/null | grep -q 'version 14\.'; then echo "$name"; return; fi
    done
}

status=0
# Other versions lay out some lines in another way.
format=$(version_14 clang-format)
if [ -z "$format" ]; then
    echo "style: clang-format is skipped: version 14 is not installed"
else
    for file in "${changed[@]}"; do
        "$format" "$file" | cmp -s - "$file" || { echo "style: $file: run $format -i $file" >&2; status=1; }
    done
    echo "style: clang-format: ${#changed[@]} changed files were compared"
fi

tidy=$(version_14 clang-tidy)
if [ -z "$tidy" ]; then
    echo "style: clang-tidy is skipped: version 14 is not installed"
elif [ ! -f "$build/compile_commands.json" ]; then
    echo "style: clang-tidy is skipped: $build has no compile_commands.json"
else
    # [{"name":"core/base/stop.cpp","lines":[[3,5],[9,9]]},...]: the changed lines, of all changed files.
    lines=$(git diff --unified=0 --diff-filter=d "$since" -- '*.cpp' '*.h' | awk '
        /^\+\+\+ b\// { file = substr($0, 7); next }
        /^@@ / {
            split($3, at, ","); first = substr(at[1], 2) + 0; count = at[2] == "" ? 1 : at[2] + 0
            if (count > 0) ranges[file] = ranges[file] (ranges[file] ? "," : "") "[" first "," first + count - 1 "]"
        }
        END { for (file in ranges) { printf "%s{\"name\":\"%s\",\"lines\":[%s]}", between, file, ranges[file]; between = "," } }')
    # clang cannot read the headers that g++ precompiled: it gets their source, in a folder without them.
    mkdir -p "$build/tidy"
    cp "$build"/tests/CMakeFiles/fp8lab_test_main.dir/cmake_pch.hxx "$build/tidy/headers.h" 2>/dev/null || : >"$build/tidy/headers.h"
    sed "s#-Winvalid-pch -include [^ ]*/cmake_pch.hxx#-include $PWD/$build/tidy/headers.h#" \
        "$build/compile_commands.json" >"$build/tidy/compile_commands.json"
    began=$SECONDS seen=0 sources=0
    for file in "${changed[@]}"; do
        [[ $file == *.cpp ]] || continue
        sources=$((sources + 1))
        if [ "$limit" -gt 0 ] && [ $((SECONDS - began)) -ge "$limit" ]; then continue; fi
        seen=$((seen + 1))
        said=$("$tidy" --quiet -p "$build/tidy" --line-filter="[$lines]" --extra-arg=-Wno-unknown-warning-option \
            --extra-arg=-Wno-ignored-optimization-argument "$file" 2>/dev/null) || true
        # Errors of clang's own do not count: g++ has compiled the file, and clang 14 lacks parts of C++20.
        found=$(grep -E '\[(bugprone|performance|readability)-[a-z.,-]+\]$' <<<"$said") || continue
        echo "$found" >&2
        status=1
    done
    echo "style: clang-tidy: $seen of $sources changed sources were read$([ "$seen" -eq "$sources" ] || echo "; then the $limit s of FP8LAB_TIDY_S were over")"
fi
exit $status
