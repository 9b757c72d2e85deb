#!/bin/sh
# The symbols liblockstep.so gives away are those of src/exports.txt, which a person has
# reviewed, and those are what the public headers declare: no more, no fewer.
#
#   scripts/check-exports.sh build/dev/liblockstep.so [--update]
set -eu
cd "$(dirname "$0")/.."
lib=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
LC_ALL=C
export LC_ALL

nm -D --defined-only "$lib" >"$dir/symbols" # not in the pipe: a failure would be lost
awk '{print $3}' "$dir/symbols" | sed 's/@.*//' | sort -u >"$dir/built"
if [ "${2:-}" = --update ]; then
    cp "$dir/built" src/exports.txt
fi

# What the headers declare: the first name before a parenthesis in each declaration that
# is marked as visible, its attributes taken away.
for header in $(cd include && find lockstep -name '*.h'); do
    echo "#include <$header>"
done | ${CC:-cc} -std=c11 -DLS_NO_PLACES -Iinclude -E -P -x c - | tr '\n' ' ' | tr ';' '\n' |
    grep 'visibility("default")' |
    sed -E 's/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)//g; s/^.*\{//' |
    sed -nE 's/^[^(]*[ *](ls_[a-z0-9_]+) *\(.*/\1/p' | sort -u >"$dir/declared"

bad=0
if ! diff -u src/exports.txt "$dir/built" >"$dir/diff"; then
    echo "src/exports.txt (-) and the symbols of $lib (+) differ:"
    sed -n '/^[-+][^-+]/p' "$dir/diff"
    echo "If that is meant, review it and run scripts/check-exports.sh $lib --update"
    bad=1
fi
if ! diff -u "$dir/declared" src/exports.txt >"$dir/diff"; then
    echo "What include/ declares (-) and src/exports.txt (+) differ:"
    sed -n '/^[-+][^-+]/p' "$dir/diff"
    bad=1
fi
exit $bad
