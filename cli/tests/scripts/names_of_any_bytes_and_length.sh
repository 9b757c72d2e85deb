# A file whose name is no UTF-8 in JSON, and names that are long.
name=$(printf 'a\377\303\244b.txt')
printf 'one\nt\377o\n' >"$name"
runs 0 "$lockstep" data inspect --json "$name"
[ "$(wc -l <out)" = 1 ] || fail "$(cat out)"
grep -qF '"file": "a\\xffäb.txt"' out || fail "$(cat out)"
grep -qF '"first": ["one", "t\\xffo"]' out || fail "$(cat out)"
runs 0 "$lockstep" data plan --files "$name" --batch 1 --json
grep -qF '"name": "a\\xffäb.txt"' out || fail "$(cat out)"

# letters N: a word of N letters.
letters() {
    head -c "$1" /dev/zero | tr '\0' n
}

# A zip archive has 16 bits for the length of a name.
long=$(letters 65531)
printf '%s\n1\n2\n' "$long" >long.csv
runs 0 "$lockstep" data convert long.csv long
runs 0 "$lockstep" data convert long.tfrecord long.npz
runs 0 "$lockstep" data inspect --json long.npz
grep -qF "\"name\": \"$long\"" out || fail "the name is not in $(wc -c <out) bytes"
printf '%sn\n1\n2\n' "$long" >longer.csv
runs 0 "$lockstep" data convert longer.csv longer
runs 1 "$lockstep" data convert longer.tfrecord longer.npz
says "has a name of 65532 bytes, and those of an .npz file have at most 65531"
[ ! -e longer.npz ] || fail "longer.npz was written"

# In a CSV file names are as long as they are.
runs 0 "$lockstep" data convert longer.tfrecord back.csv
cmp longer.csv back.csv || fail "the name came back as $(head -1 back.csv | wc -c) bytes"
