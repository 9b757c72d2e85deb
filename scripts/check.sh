#!/bin/bash
# Everything a change must pass besides `make test`. All steps run, even after one has
# failed; the last lines say which did. One step alone: scripts/check.sh tidy
set -u
cd "$(dirname "$0")/.." || exit 1

steps=(format layers kinds names headers tidy clang asan tsan install)
[ $# -eq 0 ] || steps=("$@")

# Builds with a sanitizer and runs the tests that are programs of ours. Warnings are no
# errors there: instrumented code gives gcc paths that the program does not have.
sanitized() {
    cmake --preset "$1" && cmake --build --preset "$1" && ctest --preset "$1" -LE outside
}

# The second compiler: other warnings, and arguments evaluated in another order.
clang_build() {
    CC=clang cmake -S . -B build/clang -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DLS_WERROR=ON && cmake --build build/clang &&
        ctest --test-dir build/clang --output-on-failure -LE outside
}

# Which `make test` has usually left up to date.
dev_build() {
    cmake --preset dev && cmake --build --preset dev
}

# From the dev build.
outside() {
    dev_build && ctest --preset dev -L outside
}

run() {
    case $1 in
    format) scripts/check-format.sh ;;
    layers) dev_build && scripts/check-layers.sh ;;
    kinds) scripts/check-kinds.sh ;;
    names) scripts/check-names.py ;;
    headers) scripts/check-headers.sh gcc g++ clang clang++ ;;
    tidy) scripts/check-tidy.sh ;;
    clang) clang_build ;;
    asan | tsan) sanitized "$1" ;;
    install) outside ;;
    *) echo "no step is called $1"; return 2 ;;
    esac
}

report=()
failed=0
for step in "${steps[@]}"; do
    echo "== check: $step"
    start=$SECONDS
    if run "$step"; then
        verdict=passed
    else
        verdict=FAILED
        failed=1
    fi
    report+=("$(printf '%-8s %s, %d s' "$step" $verdict $((SECONDS - start)))")
    echo "== ${report[-1]}"
done
echo
printf '%s\n' "${report[@]}"
exit $failed
