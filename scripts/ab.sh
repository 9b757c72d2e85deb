#!/bin/sh
# Compares the speed of the tree with that of an earlier commit. Builds COMMIT (in a worktree
# under build/ab/) and the tree as it is, both with the release preset, runs their benchmarks
# in turn, and compares line by line: the speed of the new one as a ratio to the old one of
# the same round.
#
#   scripts/ab.sh [--rounds N] [--filter TEXT] COMMIT BENCH...
#   scripts/ab.sh HEAD~3 op "step --replicas 2" collective input
#   scripts/ab.sh --compare FOLDER      the same from what a run has left in FOLDER
#
# A BENCH is what follows `lockstep bench`, with its options in quotes. --filter takes the
# lines with TEXT in them. Exit status: 0, no line is slower; 1, one is, or something failed;
# 2, the command line is wrong. docs/benchmarks.md says how it decides.
set -eu
cd "$(dirname "$0")/.."

rounds=7
filter=""
usage() {
    sed -n '6,9s/^#  *//p' scripts/ab.sh >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=${2:-} && shift 2 || usage ;;
    --filter) filter=${2:-} && shift 2 || usage ;;
    --compare)
        [ $# = 2 ] || usage
        exec python3 scripts/ab_compare.py --filter "$filter" "$2"
        ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ $# -ge 2 ] || usage
case $rounds in '' | *[!0-9]*) usage ;; esac
[ "$rounds" -ge 4 ] || { echo "scripts/ab.sh: quartiles want at least 4 rounds" >&2; exit 2; }

commit=$(git rev-parse --verify --quiet "$1^{commit}") || {
    echo "scripts/ab.sh: git knows no commit $1" >&2
    exit 2
}
shift

# build FOLDER: what it takes to run the benchmarks there; where oneDNN is installed, the
# module and the programs to compare with, on both sides.
build() {
    (
        cd "$1" && cmake --preset release >build/ab.log 2>&1 || exit 1
        targets=lockstep_cli
        there=$(cmake --build --preset release --target help)
        for more in lockstep_dnnl dnnl_gemm dnnl_step; do
            case $there in *"$more: "*) targets="$targets $more" ;; esac
        done
        # shellcheck disable=SC2086 # words
        cmake --build --preset release --target $targets >>build/ab.log 2>&1
    ) || {
        tail -20 "$1/build/ab.log" >&2
        echo "scripts/ab.sh: $1 does not build" >&2
        exit 1
    }
}

old=build/ab/$commit
if [ ! -e "$old/CMakePresets.json" ]; then
    git worktree add --force --detach "$old" "$commit" >/dev/null 2>&1 || {
        echo "scripts/ab.sh: git makes no worktree of $commit in $old" >&2
        exit 1
    }
fi
mkdir -p "$old/build" build
echo "old: $(git log -1 --format='%h %s' "$commit")"
build "$old"
build .

results=$(mktemp -d build/ab/run-XXXXXX)
# measure old|new ROUND BENCH...: appends the lines of all benchmarks.
measure() {
    side=$1 round=$2
    shift 2
    folder=.
    [ "$side" = new ] || folder=$old
    for bench; do
        # shellcheck disable=SC2086 # its options are words
        "$folder/build/release/cli/lockstep" bench $bench --json \
            >>"$results/$side.$round" || {
            echo "scripts/ab.sh: $side: lockstep bench $bench failed" >&2
            exit 1
        }
    done
}

round=1
while [ "$round" -le "$rounds" ]; do
    # A machine that gets warm or busy favours neither: they take turns at being first.
    for bench; do
        if [ $((round % 2)) = 1 ]; then
            measure old "$round" "$bench"
            measure new "$round" "$bench"
        else
            measure new "$round" "$bench"
            measure old "$round" "$bench"
        fi
    done
    echo "round $round of $rounds" >&2
    round=$((round + 1))
done
exec python3 scripts/ab_compare.py --filter "$filter" "$results"
