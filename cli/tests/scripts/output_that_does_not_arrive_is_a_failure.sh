# Every command that prints: to a disk that is full.
[ -c /dev/full ] || { echo "there is no /dev/full here"; exit 77; }
printf 'a,b\n1,2\n' >in.csv
for command in "info" "info --json" "--help" "--version" "help data" "bench --help" \
    "data --help" "data convert --help" "data inspect in.csv" \
    "data inspect --json in.csv" "data plan --files in.csv --batch 2" \
    "data plan --files in.csv --batch 2 --json" "data convert in.csv new" \
    "bench op --filter add --seconds 0.001 --threads 1" \
    "bench op --filter add --seconds 0.001 --threads 1 --json"; do
    status=0
    # shellcheck disable=SC2086 # words
    "$lockstep" $command >/dev/full 2>err || status=$?
    [ "$status" = 1 ] || fail "exit status $status: $command"
    says "the output could not be written"
done
