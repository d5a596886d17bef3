#!/usr/bin/env bash
# Freezes what this version writes as a folder of tests/compat: scripts/compat.sh tests/compat/COMMIT.
# Takes build/release/fp8lab and build/release/compat_samples, xvfb-run and xdotool. tests/unit/cli/compat_test.cpp holds later
# versions to verdicts.csv: add the folder to its list, and to the one of tests/unit/course/compat_test.cpp.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$here/build/release/fp8lab
samples=$here/build/release/compat_samples
folder=${1:?"usage: scripts/compat.sh FOLDER, which does not exist yet"}
for needed in "$program" "$samples"; do
    [ -x "$needed" ] || { echo "compat.sh: $needed is not built" >&2; exit 2; }
done
mkdir "$folder"
cd "$folder"

# The passes of every lab, states of every lab as scenes, and evidence of each exercise: what compat_samples writes, less the
# starts and all near misses but one.
"$samples" .
find evidence -name '*-miss-[2-9].json' -delete
find evidence -name '*-start.json' ! -name 'L8.*' ! -name 'L13.*' -delete
cat > scenes/lecture.f8deck <<'DECK'
{
  "fp8lab_deck": 1,
  "title": "A lecture of three labs",
  "scenes": [
    {"scene": "bits"},
    {"scene": "four.f8scene", "notes": "Ask first."},
    {"scene": "wide"}
  ]
}
DECK

# A submission, and the same with another student's name.
"$program" report --profile profile --student Grace --bundle grace.f8lab > /dev/null
sed 's/"student": "Grace"/"student": "Heidi"/' grace.f8lab > changed.f8lab

# Checkpoints of both kinds of models.
"$program" --threads 1 train --task noise --layers 3,4,2 --batch 4 --steps 6 --recipe bf16,delayed --history 4 --save checkpoint > /dev/null
"$program" --threads 1 train --model transformer --blocks 1 --d 16 --heads 1 --ffn 16 --context 8 --batch 2 --steps 3 --recipe mxfp8 \
    --save transformer > /dev/null

# Settings and journal, as the window leaves them when it is killed.
cat > window.sh <<'WINDOW'
"$1" --profile profile --lab bits &
window=$!
sleep 8
xdotool key Escape sleep 1 key 7 sleep 1 key 8 sleep 2
kill -KILL $window
wait $window || true
WINDOW
xvfb-run -a bash window.sh "$program" 2> /dev/null || true
rm -f window.sh profile/lock
[ -s profile/journal.jsonl ] || { echo "compat.sh: the window left no journal" >&2; exit 1; }

"$program" check --csv verdicts.csv evidence grace.f8lab changed.f8lab profile/exercises scenes/*.f8scene > /dev/null || true
cat > README.md <<README
Files written by version $("$program" --version | grep -o '[0-9.]*$') (commit $(basename "$folder")), and \`verdicts.csv\`, which its \`fp8lab check --csv\` printed for the paths in its first column.
\`scripts/compat.sh\` made them. \`evidence/\` has the solver and a near miss of each exercise of the labs that do not train, of the others the start, and one
training of 20 steps; \`grace.f8lab\` is the submission of \`profile/\`, in \`changed.f8lab\` the name was edited. The window that left the settings and the
journal was killed.
README
