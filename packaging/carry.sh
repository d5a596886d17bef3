#!/usr/bin/env bash
# What the archive carries beside the program: packaging/carry.sh PROGRAM PREFIX
# copies the libraries that PROGRAM links into PREFIX/lib/fp8lab, its faces into PREFIX/share/fp8lab/fonts, and the terms
# of their packages into PREFIX/share/doc/licences.
set -euo pipefail
program=$1 prefix=$2
libraries=$prefix/lib/fp8lab fonts=$prefix/share/fp8lab/fonts licences=$prefix/share/doc/licences
mkdir -p "$libraries" "$fonts" "$licences"

carry() {  # FILE FOLDER NAME
    local owner real
    real=$(realpath "$1")
    # Where /lib is a link to /usr/lib, dpkg may know the file by either name.
    owner=$(dpkg-query -S "$real" 2>/dev/null || dpkg-query -S "${real#/usr}" 2>/dev/null) || {
        echo "carry: $real belongs to no package, so that its terms are not known" >&2
        exit 1
    }
    owner=${owner%%:*}
    install -m 644 "$real" "$2/$3"
    install -m 644 "/usr/share/doc/$owner/copyright" "$licences/$owner"
}

# Not carried: the C and C++ run time and zlib, which every system of the suite has, and OpenGL and X11, which must be those
# that the system's graphics driver was built with.
own='^(libc|libm|libdl|librt|libpthread|libresolv|libgcc_s|libstdc\+\+|libz|libOpenGL|libGL.*|libEGL|libX.*|libxcb.*|libbsd|libmd|libwayland.*|libxkbcommon|libdecor.*)\.so'
linked=$(ldd "$program")
while read -r name path; do
    [[ $name =~ $own ]] || carry "$path" "$libraries" "$name"
done < <(awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' <<<"$linked")

faces=$("$program" doctor | grep -oE '/[^ ]+\.(otf|ttf)$') || { echo "carry: $program finds no faces here" >&2; exit 1; }
while read -r face; do
    carry "$face" "$fonts" "$(basename "$face")"
done <<<"$faces"
