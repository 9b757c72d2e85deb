#!/bin/bash
# Every folder of src/, and cli, may use itself and the folders that src/layers.txt grants
# it: by include, and by symbol, because a call upwards through a public header is one,
# too. The examples use the public headers only, as any other program.
#
# The symbols are read from the objects of a build: build/dev, or LS_BUILD.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${LS_BUILD:-build/dev}
bad=0

complain() {
    echo "$*"
    bad=1
}

# ---- includes ----

# The first part of every path that the sources under $1 include with quotes or <lockstep/>.
used_by() {
    find "$1" -name '*.[ch]' -exec sed -n \
        's|^[ \t]*#[ \t]*include[ \t]*["<]\([A-Za-z0-9_.-]*\)/.*|\1|p' {} + | sort -u
}

granted() {
    sed -n "s/^$1:/ /p" src/layers.txt
}

for path in src/*/ cli/; do
    dir=$(basename "$path")
    grep -q "^$dir:" src/layers.txt || complain "src/layers.txt: no line for $dir"
    for used in $(used_by "$path"); do
        [ -d "src/$used" ] || continue # the public headers, the system's, cli's own
        case " $dir $(granted "$dir") " in
        *" $used "*) ;;
        *) complain "$path includes $used/, which src/layers.txt does not grant" ;;
        esac
    done
done

for dir in $(sed -n 's/^\([a-z0-9_]*\):.*/\1/p' src/layers.txt); do
    [ -d "src/$dir" ] || [ "$dir" = cli ] ||
        complain "src/layers.txt names $dir, which is no folder"
done

for used in $(used_by examples); do
    if [ -d "src/$used" ] || [ "$used" = .. ]; then
        complain "examples include $used/: only the public headers, lockstep/, are for them"
    fi
done

# ---- symbols ----

# "object folder" of every source of the library, one line each, as the build compiles it.
objects() {
    sed -n "s|.* -o \([^ ]*\.o\) -c .*/src/\([a-z0-9_]*\)/[^ ]*\.c\",\{0,1\}\$|\1 \2|p" \
        "$build/compile_commands.json" | grep -v '_test' | sort -u
}

if [ ! -f "$build/compile_commands.json" ]; then
    complain "no build in $build: run cmake --preset dev && cmake --build --preset dev"
    exit $bad
fi
list=$(mktemp)
trap 'rm -f "$list"' EXIT
objects >"$list"
[ -s "$list" ] || complain "$build/compile_commands.json names no object of src/"

while read -r object dir; do
    if [ ! -f "$build/$object" ]; then
        complain "$build/$object is missing: build first"
        continue
    fi
    nm -g "$build/$object" | awk -v dir="$dir" -v object="$object" '
        NF == 3 && $2 ~ /[A-TV-Z]/ { print "defines", $3, dir, object }
        NF == 2 && $1 == "U" { print "uses", $2, dir, object }'
done <"$list" | awk '
    FNR == NR { line = $0; sub(/:.*/, "", line); rest = $0; sub(/^[^:]*:/, "", rest)
                n = split(rest, word, " ")
                for (i = 1; i <= n; i++) { may[line, word[i]] = 1 }
                may[line, line] = 1; next }
    $1 == "defines" { home[$2] = $3 }
    $1 == "uses" { uses[++count] = $0 }
    END {
        for (i = 1; i <= count; i++) {
            split(uses[i], u, " ")
            if ((u[2] in home) && !((u[3], home[u[2]]) in may)) {
                object = u[4]
                sub(/.*\.dir\//, "", object)
                printf "%s uses %s of src/%s/, which src/layers.txt does not grant\n", object, u[2], home[u[2]]
                failed = 1
            }
        }
        exit failed
    }' src/layers.txt - || bad=1
exit $bad
