#!/bin/sh
# Tests that missing, truncated, damaged and wrong files are reported in one line that
# names the file: 02_fashion_mnist/test_files.sh path/to/train
set -u
train=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0

# An IDX file of $2 bytes of 0 after the opening $1 (octal escapes), gzip'd to stdout.
idx() {
    { printf "$1"; head -c "$2" /dev/zero; } | gzip -n
}
images2='\000\000\010\003\000\000\000\002\000\000\000\034\000\000\000\034'
labels2='\000\000\010\001\000\000\000\002'

good() {
    for part in train t10k; do
        idx "$images2" 1568 >"$dir/$part-images-idx3-ubyte.gz"
        idx "$labels2" 2 >"$dir/$part-labels-idx1-ubyte.gz"
    done
}

# The program must exit with 1 and print one line to stderr that contains $1.
refuses() {
    said=$("$train" --data "$dir" --epochs 1 2>&1 >/dev/null)
    status=$?
    lines=$(printf '%s\n' "$said" | wc -l)
    case $said in
    *"$1"*) [ $status -eq 1 ] && [ "$lines" -eq 1 ] && return ;;
    esac
    echo "expected a refusal with: $1"
    echo "got status $status: $said"
    bad=1
}

good
"$train" --data "$dir" --epochs 1 --batch 2 --replicas 1 >"$dir/out" 2>&1 ||
    { echo "two images are trained on"; cat "$dir/out"; bad=1; }
"$train" --data "$dir" --epochs 1 --batch 2 --replicas 2 >"$dir/out" 2>&1 ||
    { echo "two images are trained on by two replicas"; cat "$dir/out"; bad=1; }

rm "$dir/t10k-labels-idx1-ubyte.gz"
refuses "t10k-labels-idx1-ubyte.gz"

good
idx "$images2" 1567 >"$dir/train-images-idx3-ubyte.gz"
refuses "train-images-idx3-ubyte.gz is cut off"

good
head -c 20 "$dir/train-images-idx3-ubyte.gz" >"$dir/x"
mv "$dir/x" "$dir/train-images-idx3-ubyte.gz"
refuses "train-images-idx3-ubyte.gz is cut off"

good
idx '\000\000\010\003\377\377\377\377\000\000\000\034\000\000\000\034' 10 \
    >"$dir/train-images-idx3-ubyte.gz"
refuses "train-images-idx3-ubyte.gz is cut off"

good
idx "$labels2" 1568 >"$dir/train-images-idx3-ubyte.gz"
refuses "reshape"

good
{ printf "$labels2"; printf '\012\000'; } | gzip -n >"$dir/train-labels-idx1-ubyte.gz"
refuses "label 10"

exit $bad
