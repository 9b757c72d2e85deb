#!/bin/sh
# Each public header compiles alone, as C11 and as C++17, without a warning, and
# lockstep.h includes it unless it is in ext/ or try.h, which is for programs.
#
#   scripts/check-headers.sh gcc g++ clang clang++     (no argument: those that are there)
set -eu
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
    for compiler in gcc g++ clang clang++; do
        command -v $compiler >/dev/null 2>&1 && set -- "$@" $compiler
    done
fi
[ $# -gt 0 ] || { echo "no compiler was found"; exit 1; }

bad=0
for header in $(cd include && find lockstep -name '*.h' | sort); do
    case $header in
    lockstep/ext/* | lockstep/lockstep.h | lockstep/try.h) ;;
    *) grep -q "#include \"$header\"" include/lockstep/lockstep.h ||
        { echo "lockstep/lockstep.h does not include $header"; bad=1; } ;;
    esac
    for compiler; do
        case $compiler in
        *++*) how="-x c++ -std=c++17" ;;
        *) how="-x c -std=c11 -Wstrict-prototypes" ;;
        esac
        # Twice: the guard works. With a declaration: no unit is empty.
        # shellcheck disable=SC2086 # words
        printf '#include <%s>\n#include <%s>\nextern int unit_of_its_own;\n' \
            "$header" "$header" |
            $compiler $how -pedantic -Wall -Wextra -Wshadow -Werror -Iinclude \
                -fsyntax-only - || { echo "$header: not with $compiler"; bad=1; }
    done
done
exit $bad
