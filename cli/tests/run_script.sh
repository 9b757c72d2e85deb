#!/bin/sh
# Runs one script in a folder that is gone afterwards: run_script.sh path/to/lockstep NAME
# The script finds the command in $lockstep, the files of the other cases in $data, and
# says with fail() what is wrong. 77 as its status: it cannot run here, and says why.
set -u
export LC_ALL=C # what the system says, in English
lockstep=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
data=$here/data
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

fail() {
    echo "$*" >&2
    exit 1
}

# runs STATUS COMMAND...: its output goes to the files out and err.
runs() {
    wanted=$1
    shift
    status=0
    "$@" >out 2>err || status=$?
    [ "$status" = "$wanted" ] || {
        cat out err >&2
        fail "exit status $status, expected $wanted: $*"
    }
}

# says TEXT: stands in what the last command printed on stderr.
says() {
    grep -qF -e "$1" err || { cat err >&2; fail "stderr does not say: $1"; }
}

# In a shell of its own, so that its end does not skip the trap.
(. "$here/scripts/$2.sh")
