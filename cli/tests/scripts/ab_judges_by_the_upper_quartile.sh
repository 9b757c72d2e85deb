# Rounds whose ratios are known, old and new in turn: what scripts/ab.sh makes of them.
command -v python3 >/dev/null || { echo "there is no python3 here"; exit 77; }
ab=$here/../../scripts/ab.sh

# line TEXT: is printed, to the letter but for the number of blanks.
line() {
    tr -s ' ' <out | grep -qxF -e "$1" || { cat out >&2; fail "this is missing: $1"; }
}

runs 1 "$ab" --compare "$here/ab"
line "op, steady, threads 1 1.000 1.000 1.000"
line "op, steady, threads 2 0.960 0.980 0.995"
line "step, noisy, replicas 2, batch 8 0.960 0.980 0.995"
line "input, rate 0.960 0.980 0.995" # more is better
line "input, next 0.960 0.980 0.995" # less is better
line "input, memory is no speed: not compared"
line "op, gone, threads 1 only in the old one"
line "op, fresh, threads 1 only in the new one"
line "collective, 4 B, ranks 2, wait spin 0.915 0.930 0.945 FALLS SHORT"
line "input, slow rate 0.915 0.930 0.945 FALLS SHORT"
line "2 of 7 lines fall short: their upper quartile is below 0.98"

# A median below the limit alone is noise; a line on one side only is none.
runs 0 "$ab" --filter op, --compare "$here/ab"
line "0 of 2 lines fall short: their upper quartile is below 0.98"
runs 1 "$ab" --filter nothing --compare "$here/ab"
line "there is no line to compare"

mkdir few
cp "$here/ab/old.1" "$here/ab/new.1" few
runs 1 "$ab" --compare "$PWD/few"
grep -q "1 rounds, and quartiles want 4" out || fail "$(cat out)"
runs 2 "$ab" --rounds 3 HEAD op
runs 2 "$ab" HEAD
runs 2 "$ab" --compare
