#!/bin/sh
# docs/from-tensorflow.md and the library agree: a function the page names is exported or is
# a macro of a public header, any other name of ours stands in a public header, and every
# function of strategies, replicas, scopes, cross-device operations and communication
# options stands on the page.
#
#   scripts/check-from-tensorflow.sh
set -eu
cd "$(dirname "$0")/.."
page=docs/from-tensorflow.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
LC_ALL=C
export LC_ALL
bad=0

# Prints what $1 holds and $2 does not, each line after the words $3.
report() {
    comm -23 "$1" "$2" >"$dir/missing"
    if [ -s "$dir/missing" ]; then
        sed "s|^|$3: |" "$dir/missing"
        bad=1
    fi
}

grep -oE '(ls|LS)_[A-Za-z0-9_]+' "$page" | sort -u >"$dir/named"
grep -oE '(ls|LS)_[A-Za-z0-9_]+\(\)' "$page" | sed 's/()//' | sort -u >"$dir/functions"
cat include/lockstep/*.h include/lockstep/ext/*.h >"$dir/headers"
sed -n 's/^#define \([A-Za-z0-9_]*\).*/\1/p' "$dir/headers" | sort -u - src/exports.txt >"$dir/callable"
# Types and constants, as the compiler sees them: comments do not declare.
for header in $(cd include && find lockstep -name '*.h'); do
    echo "#include <$header>"
done | ${CC:-cc} -std=c11 -DLS_NO_PLACES -Iinclude -E -P -x c - |
    grep -oE '(ls|LS)_[A-Za-z0-9_]+' | sort -u - "$dir/callable" >"$dir/known"
grep -E '^ls_(strategy|replica|scope|cross_device|communication)_' src/exports.txt | sort -u >"$dir/ours"

[ -s "$dir/functions" ] || { echo "$page names no function"; bad=1; }
[ -s "$dir/ours" ] || { echo "src/exports.txt has no function of strategies"; bad=1; }
report "$dir/functions" "$dir/callable" "$page names a function that is not exported"
report "$dir/named" "$dir/known" "$page names what no public header has"
report "$dir/ours" "$dir/named" "$page does not name"
exit $bad
