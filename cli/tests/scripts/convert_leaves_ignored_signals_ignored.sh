# The command waits at its last line, for a pipe that is full: then it is looked at.
[ -r /proc/self/status ] || { echo "there is no /proc here"; exit 77; }
printf 'a,b\n1,2\n' >in.csv
mkfifo pipe
exec 3<>pipe
reader=

# mask_has SigIgn|SigCgt NUMBER: whether the waiting command ignores or catches it.
mask_has() {
    mask=$(sed -n "s/^$1:[[:space:]]*//p" "/proc/$pid/status")
    [ $((0x$mask >> ($2 - 1) & 1)) = 1 ]
}

wait_for_file() {
    until [ -e "$1" ]; do
        kill -0 "$pid" || fail "the command has ended"
        sleep 0.02
    done
}

# Whole pages until there is no room: dd then fails instead of waiting.
dd if=/dev/zero of=pipe oflag=nonblock bs=4096 2>err && fail "the pipe has no end"
says "temporarily unavailable"
(trap '' HUP INT && exec "$lockstep" data convert in.csv ignored >&3) &
pid=$!
trap 'kill "$pid" $reader 2>/dev/null' EXIT # whatever happens, nobody waits for ever
wait_for_file ignored.tfrecord
mask_has SigIgn 1 || fail "SIGHUP was ignored, and is not any more"
mask_has SigIgn 2 || fail "SIGINT was ignored, and is not any more"
mask_has SigCgt 15 || fail "SIGTERM was not ignored, and is not caught"
kill -HUP "$pid"
cat <&3 >/dev/null &
reader=$!
wait "$pid" || fail "the command ended with $? after an ignored SIGHUP"
