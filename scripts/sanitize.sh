#!/usr/bin/env bash
# The kernel tests under NVIDIA's compute-sanitizer, on a machine with a GPU:
#   scripts/sanitize.sh [PRESET] [TOOL...]      default: release, all four tools
#
# Checked are our kernels, not cuBLASLt's, which the tools get wrong (compute-sanitizer 2025.3.1): racecheck
# reports hazards inside nvjet_sm90_*, whose barriers it does not follow, and fills 128 GB of host memory over
# them; initcheck does not see what they store. For these two, tests without products, where each of our kernels
# that has shared memory is launched.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:-release}
[ $# -gt 0 ] && shift
tools=("${@:-}")
[ -n "${tools[0]}" ] || tools=(memcheck synccheck racecheck initcheck)

sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
tests=build/$preset/kernels_tests
for needed in "$sanitizer" "$tests"; do
    [ -x "$needed" ] || { echo "sanitize: $needed is missing" >&2; exit 1; }
done
"$tests" -tc="BF16 casts*" | grep -q '^skipped' && { echo "sanitize: no GPU here" >&2; exit 1; }

for tool in "${tools[@]}"; do
    case $tool in
        memcheck | synccheck) chosen=(--kernel-name kns=fp8lab "$tests") ;;
        racecheck | initcheck) chosen=("$tests" -sf="*cast_test*,*ops_test*,*scaling_test*,*weight_product*") ;;
        *) echo "sanitize: '$tool' is none of memcheck, synccheck, racecheck, initcheck" >&2; exit 2 ;;
    esac
    echo "== $tool"
    "$sanitizer" --tool "$tool" --error-exitcode 1 "${chosen[@]}"
done
