#!/bin/sh
# Sources lie as .clang-format says; --fix makes it so.
set -eu
cd "$(dirname "$0")/.."
mode="--dry-run -Werror"
[ "${1:-}" != --fix ] || mode=-i
# shellcheck disable=SC2086 # words
find include src cli examples tests bench -name '*.[ch]' -print0 |
    xargs -0 -r clang-format $mode
