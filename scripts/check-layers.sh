#!/bin/sh
# Every src/<folder>, and cli, may include itself and the folders src/layers.txt grants it;
# the examples only the public headers, as any other program.
bad=0
cd "$(dirname "$0")/.." || exit 1

# The first part of every path that the sources under $1 include with quotes or <lockstep/>.
used_by() {
    find "$1" -name '*.[ch]' -exec sed -n \
        's|^[ \t]*#[ \t]*include[ \t]*["<]\([A-Za-z0-9_.-]*\)/.*|\1|p' {} + | sort -u
}

for path in src/*/ cli/; do
    dir=$(basename "$path")
    allowed=$(sed -n "s/^$dir:/ /p" src/layers.txt)
    grep -q "^$dir:" src/layers.txt || { echo "src/layers.txt: no line for $dir"; bad=1; }
    for used in $(used_by "$path"); do
        [ -d "src/$used" ] || continue # not a folder of ours: the public headers, the system's
        case " $dir $allowed " in
        *" $used "*) ;;
        *) echo "${path%/} includes $used/, which src/layers.txt does not grant"; bad=1 ;;
        esac
    done
done

for dir in $(sed -n 's/^\([a-z0-9_]*\):.*/\1/p' src/layers.txt); do
    [ -d "src/$dir" ] || [ "$dir" = cli ] || { echo "src/layers.txt names $dir, which is no folder"; bad=1; }
done

for path in cli examples; do
    for used in $(used_by "$path"); do
        [ "$path" = cli ] && [ "$used" != .. ] && continue # above
        if [ -d "src/$used" ] || [ "$used" = .. ]; then
            echo "$path includes $used/: only the public headers, lockstep/, are for it"
            bad=1
        fi
    done
done
exit $bad
