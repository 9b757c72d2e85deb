# setting ASSIGNMENT WORDS VALUE: it is ignored, one warning says so, and VALUE is used.
setting() {
    runs 0 env "$1" "$lockstep" info
    says "$1 is $2"
    [ "$(wc -l <err)" = 1 ] || fail "$(cat err)"
    grep -q "  ${1%%=*}=$3 *default " out || fail "$(grep LS_ out)"
}

setting LS_DEVICES=abc \
    "ignored: it must be a whole number from 1 to 4096; 1 is used" 1
setting LS_THREADS=-3 "ignored: it must be a whole number from 0 to 4096; 0 is used" 0
setting LS_SEED=x "ignored: it must be a whole number below 2^64; 0 is used" 0
setting LS_PIN=maybe "ignored: it must be 0 or 1; 0 is used" 0
setting LS_SPIN_US=soon "not a number from 0 to 10000: 30 is used" 30
setting LS_COMM_ALGORITHM=best "ignored" auto
setting LS_COMM_TIMEOUT_MS=never "ignored" 600000

# What is understood is taken, without a word.
runs 0 env LS_DEVICES=3 LS_SPIN_US=7 LS_COMM_ALGORITHM=ring "$lockstep" info
[ ! -s err ] || fail "$(cat err)"
for taken in LS_DEVICES=3 LS_SPIN_US=7 LS_COMM_ALGORITHM=ring; do
    grep -q "  $taken *environment " out || fail "$(grep LS_ out)"
done
