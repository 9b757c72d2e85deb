#!/bin/sh
# Runs the fuzz targets with libFuzzer and the sanitizers, two at a time:
#
#   tests/fuzz/run.sh SECONDS [TARGET...]     (no target: all of them)
#   tests/fuzz/run.sh merge [TARGET...]       adds to the seeds what reaches code they do not
#
# Needs clang and its runtime (Debian 12: clang and libclang-rt-14-dev). What is found and
# what reaches new code stays in build/fuzz. An input that fails is written to
# build/fuzz/found; once mended it becomes a seed under a name that says what was wrong.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:?"tests/fuzz/run.sh SECONDS [TARGET...]"}
shift
[ $# -gt 0 ] || set -- tfrecord example npy csv json
build=build/fuzz
seeds=tests/fuzz/seeds

if ! printf 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
    clang -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null; then
    echo "tests/fuzz/run.sh: clang or its runtime is missing; on Debian 12:" >&2
    echo "    apt-get install clang libclang-rt-14-dev" >&2
    exit 1
fi
CC=clang cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLS_FUZZ=ON >/dev/null
# shellcheck disable=SC2046
cmake --build $build --target $(printf 'fuzz_%s ' "$@")
mkdir -p $build/found

if [ "$seconds" = merge ]; then
    for target; do
        $build/tests/fuzz/fuzz_"$target" -merge=1 -use_counters=0 $seeds/"$target" \
            $build/corpus/"$target" 2>$build/found/"$target".merge.log
        du -sh $seeds/"$target"
    done
    exit 0
fi

fuzz() {
    mkdir -p $build/corpus/"$1"
    nice -n 10 $build/tests/fuzz/fuzz_"$1" -max_total_time="$seconds" -print_final_stats=1 \
        -artifact_prefix=$build/found/"$1"- $build/corpus/"$1" $seeds/"$1" \
        >$build/found/"$1".log 2>&1 || touch $build/found/"$1".failed
}

rm -f $build/found/*.failed
while [ $# -gt 0 ]; do
    fuzz "$1" &
    if [ $# -gt 1 ]; then
        shift
        fuzz "$1" &
    fi
    shift
    wait
done
for log in $build/found/*.log; do
    case $log in *.merge.log) continue ;; esac
    echo "$(basename "$log" .log): $(sed -n 's/^#\([0-9]*\).*DONE/\1 inputs/p' "$log" | sed 's/  */ /g')"
done
for failed in $build/found/*.failed; do
    [ -e "$failed" ] || exit 0
    echo "$(basename "$failed" .failed) failed: see ${failed%.failed}.log"
done
exit 1
