#!/usr/bin/env bash
# The man page of PROGRAM on stdout, made of what its --help and its verbs' --help say: packaging/man_page.sh PROGRAM
set -euo pipefail
program=$1

# A text of --help as roff. Headings become the macro given (.SH or .SS), and that of the verbs becomes the verbs'
# own texts, which are read from the file given.
roff() {  # HEADING VERBS
    awk -v heading="$1" -v verbs="$2" '
        function plain(text) {
            gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); gsub(/\^/, "\\(ha", text); gsub(/~/, "\\(ti", text)
            gsub(/`/, "\\(ga", text); gsub(/\047/, "\\(aq", text)
            return text
        }
        function entry(text,    at) {  # "--name TYPE"; the name in bold
            at = match(text, / /)
            return at ? "\\fB" plain(substr(text, 1, at - 1)) "\\fR" plain(substr(text, at)) : "\\fB" plain(text) "\\fR"
        }
        function say(text) { print (text ~ /^[.]/ ? "\\&" : "") plain(text) }
        /^Usage:/ { print ".PP"; print entry(substr($0, 8)); next }
        /^[A-Za-z][A-Za-z ]*:$/ {
            sub(/:$/, "")
            skipped = verbs && tolower($0) == "subcommands"
            if (skipped) {
                print ".SH VERBS"
                while ((getline line < verbs) > 0) print line
            } else if (heading == ".SH") print ".SH " toupper($0)
            else if (tolower($0) !~ /^(options|positionals)$/) print ".PP\n" plain($0)
            next
        }
        skipped && /^ / { next }
        /^  -h,--help/ && heading == ".SS" { next }
        /^  [^ ]/ {
            sub(/^  /, "")
            print ".TP"
            gap = match($0, /  +/)
            rest = gap ? substr($0, gap + RLENGTH) : ""
            print entry(gap ? substr($0, 1, gap - 1) : $0)
            if (gap) say(rest)
            next
        }
        /^ / { sub(/^ +/, ""); say($0); next }
        /^$/ { blank = 1; next }
        { if (blank) print ".PP"; blank = 0; say($0) }
    '
}

help=$("$program" --help)
description=${help%%$'\n'*}
names=$(awk 'tolower($0) == "subcommands:" { on = 1; next } on && /^  [a-z]/ { print $1 } on && /^[^ ]/ { exit }' <<<"$help")
[ -n "$names" ] || { echo "man_page: $program --help lists no verbs" >&2; exit 1; }

verbs=$(mktemp)
trap 'rm -f "$verbs"' EXIT
for verb in $names; do
    printf '.SS %s\n' "$verb"
    "$program" "$verb" --help | roff .SS ""
done >"$verbs"

version=$("$program" --version)
cat <<TEXT
.TH FP8LAB 1 "$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%F)" "$version" "User Commands"
.SH NAME
fp8lab \\- laboratory for 8\\-bit floating point and training in it
.SH SYNOPSIS
.B fp8lab
[\\fIOPTIONS\\fR] [\\fIVERB\\fR [\\fIARGUMENTS\\fR]]
.SH DESCRIPTION
TEXT
{ printf '%s\n' "$description" "Without a verb it opens the window."; tail -n +2 <<<"$help" | grep -v '^Usage:'; } | roff .SH "$verbs"
