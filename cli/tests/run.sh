#!/bin/sh
# Runs one case and compares: cli/tests/run.sh path/to/lockstep NAME [--update]
# A line of the expected text may hold * for what differs from machine to machine, and
# the last one may be ... for whatever follows. A case of several lines is as many runs,
# the last one's status counts, and @TMP is a folder that is gone afterwards.
set -u
lockstep=$1
name=$2
cd "$(dirname "$0")" || exit 1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tmp"

# The arguments of a case are words; none of them needs quotes, and patterns stay as they
# are.
set -f
cp "$name.cmd" "$dir/cmd"
[ -s "$dir/cmd" ] || echo >"$dir/cmd"
while IFS= read -r line || [ -n "$line" ]; do
    # shellcheck disable=SC2046
    "$lockstep" $(printf '%s\n' "$line" | sed "s|@TMP|$dir/tmp|g")
    status=$?
done <"$dir/cmd" >"$dir/stdout.raw" 2>"$dir/stderr.raw"
set +f
for stream in stdout stderr; do
    sed "s|$dir/tmp|@TMP|g" "$dir/$stream.raw" >"$dir/$stream"
done

if [ "${3:-}" = --update ]; then
    for stream in stdout stderr; do
        rm -f "$name.$stream"
        [ ! -s "$dir/$stream" ] || cp "$dir/$stream" "$name.$stream"
    done
    echo $status >"$name.exit"
    exit 0
fi

# True if the lines of $2 match those of $1 one by one.
matches() {
    exec 3<"$1" 4<"$2"
    while IFS= read -r want <&3; do
        [ "$want" != ... ] || return 0
        IFS= read -r got <&4 || { echo "missing: $want"; return 1; }
        regex=$(printf '%s\n' "$want" | sed 's/[].[^$\\]/\\&/g; s/\*/.*/g')
        printf '%s\n' "$got" | grep -qx -e "$regex" || {
            printf 'expected: %s\ngot:      %s\n' "$want" "$got"
            return 1
        }
    done
    if IFS= read -r got <&4; then
        echo "unexpected: $got"
        return 1
    fi
}

bad=0
for stream in stdout stderr; do
    [ -e "$name.$stream" ] || : >"$dir/$stream.want"
    [ ! -e "$name.$stream" ] || cp "$name.$stream" "$dir/$stream.want"
    matches "$dir/$stream.want" "$dir/$stream" || { echo "in $stream"; bad=1; }
done
want=$(cat "$name.exit" 2>/dev/null || echo 0)
[ "$status" = "$want" ] || { echo "exit status $status, expected $want"; bad=1; }
exit $bad
