#!/bin/bash
# Tests the code and the links of the documentation. Each block whose fence names a file
# ("```c step.c") is extracted and compiled with the other blocks of its page. Programs of
# docs/decisions/ are compiled against headers that may be intended only; those of every
# other page are linked and run, and must print the text of the block named after them
# ("```text step.txt"). Links to files must be valid.
#
#   tests/docs/run.sh build/dev
set -euo pipefail
cd "$(dirname "$0")/../.."
tree=$PWD
lib=$(cd "$1" && pwd)
cc=${CC:-cc}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
strict=(-std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    -Wno-unused-function -Werror)
bad=0
blocks=0

fail() {
    echo "$1"
    bad=1
}

# Writes the named blocks of page $1 under $2 and prints their names.
extract() {
    awk -v to="$2" '
        /^```/ && inside { inside = 0; if (file != "") close(file); next }
        /^```/ { inside = 1; file = ""
                 if (split($0, word, " ") == 2) { file = to "/" word[2]; name = word[2]
                     dir = file; sub(/\/[^\/]*$/, "", dir); system("mkdir -p " dir)
                     printf "" >file; print name } next }
        inside && file != "" { print >file }' "$1"
}

# Reports relative links of page $1 whose file does not exist.
check_links() {
    local link
    while read -r link; do
        [ -e "$(dirname "$1")/${link%%#*}" ] || fail "$1: the link $link leads nowhere"
    done < <(sed '/^```/,/^```/d' "$1" | grep -oE '\]\([^)#:]+(#[^)]*)?\)' | sed 's/^](//; s/)$//')
}

check_block() { # page, folder of its blocks, name
    local page=$1 at=$2 name=$3
    blocks=$((blocks + 1))
    case $name in
    lockstep/*.h)
        [ ! -e "include/$name" ] || fail "$page: $name is shipped: take it off the page"
        echo "#include \"$name\"" >"$at/alone.c"
        echo "extern int unit;" >>"$at/alone.c"
        "$cc" "${strict[@]}" -I"$at" -Iinclude -fsyntax-only "$at/alone.c" ||
            fail "$page: $name does not compile alone"
        ! command -v c++ >/dev/null || c++ -std=c++17 -Wall -Wextra -pedantic -Werror -I"$at" \
            -Iinclude -x c++ -fsyntax-only "$at/alone.c" ||
            fail "$page: $name does not compile as C++17"
        ;;
    *.c)
        "$cc" "${strict[@]}" -I"$at" -Iinclude -fsyntax-only "$at/$name" ||
            { fail "$page: $name does not compile"; return; }
        [[ $page == docs/decisions/* ]] || run_program "$page" "$at" "$name"
        ;;
    esac
}

run_program() { # page, folder of its blocks, name
    local page=$1 at=$2 name=$3 want=$2/${3%.c}.txt
    "$cc" "${strict[@]}" -I"$at" -Iinclude "$at/$name" -L"$lib" -llockstep -lm \
        -Wl,-rpath,"$lib" -o "$at/program" || { fail "$page: $name does not link"; return; }
    "$at/program" >"$at/got" 2>&1 || fail "$page: $name fails: $(cat "$at/got")"
    [ ! -e "$want" ] || diff -u "$want" "$at/got" || fail "$page: $name prints something else"
}

for page in README.md CONTRIBUTING.md src/README.md $(find docs examples -name '*.md' | sort); do
    check_links "$page"
    at=$dir/${page//\//-}
    mkdir -p "$at"
    extract "$page" "$at" >"$at/names"
    while read -r name; do
        check_block "$page" "$at" "$name"
    done <"$at/names"
done
cd "$tree"
[ $blocks -gt 0 ] || fail "no block of code was found"
echo "$blocks blocks of code"
exit $bad
