#!/bin/sh
# Runs an example and compares what it prints: examples/compare.sh EXPECTED PROGRAM
set -eu
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$2" >"$out"
diff -u "$1" "$out"
