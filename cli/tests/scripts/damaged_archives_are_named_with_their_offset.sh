# le N VALUE: VALUE in N bytes, the lowest first; 2^64 - 56 is written as -56.
le() {
    n=$1 value=$2
    while [ "$n" -gt 0 ]; do
        # shellcheck disable=SC2059 # the format is the byte
        printf "\\$(printf %03o $((value & 255)))"
        value=$((value >> 8)) n=$((n - 1))
    done
}

# archive SIZE OFFSET: SIZE bytes, a locator that points to OFFSET, and an end record.
archive() {
    : >"$1.npz"
    printf 'PK\003\004' >"$1.npz"
    truncate -s "$1" "$1.npz"
    { printf 'PK\006\007'; le 4 0; le 8 "$2"; le 4 1
      printf 'PK\005\006'; le 16 0; le 2 0; } >>"$1.npz"
}

for size in 104 67108868; do # the second is larger than what is read of its end
    for offset in -56 -1 $((size - 55)) $((1 << 62)); do
        archive $size "$offset"
        runs 1 "$lockstep" data inspect $size.npz
        says "$size.npz is damaged at offset $size: "
        grep -q "damaged       yes" out || fail "$(cat out)"
    done
    archive $size $((size - 56)) # in the file, but nothing is there
    runs 1 "$lockstep" data inspect $size.npz
    says "$size.npz is damaged at offset $((size - 56)): "
done

# end64 ENTRIES SIZE AT: an end record of a large archive that says this.
end64() {
    printf 'PK\003\004' >end64.npz
    truncate -s 104 end64.npz
    { printf 'PK\006\006'; le 8 44; le 4 0; le 8 0; le 8 "$1"; le 8 "$1"; le 8 "$2"
      le 8 "$3"; printf 'PK\006\007'; le 4 0; le 8 104; le 4 1
      printf 'PK\005\006'; le 16 0; le 2 0; } >>end64.npz
}

end64 1 46 -46 # together they are 0
runs 1 "$lockstep" data inspect end64.npz
says "does not fit into the file"
end64 -1 100 4
runs 1 "$lockstep" data inspect end64.npz
says "does not fit into the file"
end64 1 50 4
runs 1 "$lockstep" data inspect end64.npz
says "end64.npz is damaged at offset 4: an entry of the directory does not begin there"

# A directory whose entry lies outside of the archive.
{ printf 'PK\003\004'; le 26 0; printf 'PK\001\002'; le 24 0; le 4 0; le 10 0; le 4 -1
  printf 'PK\005\006'; le 4 0; le 2 1; le 2 1; le 4 46; le 4 30; le 2 0; } >entry.npz
runs 1 "$lockstep" data inspect entry.npz
says "entry.npz is damaged at offset 30: "
