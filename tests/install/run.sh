#!/bin/bash
# Installs a build into a temporary prefix and uses it from outside the tree: by
# find_package, by pkg-config, and with every example.
#
#   tests/install/run.sh build/dev
set -euo pipefail
tree=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
prefix=$dir/prefix
cc=${CC:-cc}

cmake --install "$build" --prefix "$prefix" >"$dir/log" || { cat "$dir/log"; exit 1; }
cp -r "$tree/tests/install/consumer" "$dir/consumer"
cd "$dir"

# The installed files do not lead back to the tree they came from.
if grep -rIl --include='*.cmake' --include='*.pc' --include='*.h' -e "$tree/" prefix; then
    echo "the files above name the source tree"
    exit 1
fi

cmake -S consumer -B by-cmake -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_BUILD_TYPE=Release >log || { cat log; exit 1; }
cmake --build by-cmake >log || { cat log; exit 1; }
echo "by find_package: $(by-cmake/app)"

pc=$(dirname "$(find "$prefix" -name lockstep.pc)")
read -ra flags <<<"$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs lockstep)"
libdir=$(PKG_CONFIG_PATH=$pc pkg-config --variable=libdir lockstep)
strict=(-std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror)
"$cc" "${strict[@]}" consumer/app.c "${flags[@]}" -Wl,-rpath,"$libdir" -o by-pkg-config
echo "by pkg-config: $(./by-pkg-config)"

# The installed command runs and finds the installed modules.
if [ "$("$prefix/bin/lockstep" --version)" != "$(./by-pkg-config)" ]; then
    echo "the command is of another version: $("$prefix/bin/lockstep" --version)"
    exit 1
fi
if [ -e "$libdir/lockstep/lockstep_dnnl.so" ]; then
    "$prefix/bin/lockstep" info | grep -q 'oneDNN *found' ||
        { echo "the installed oneDNN module is not found"; exit 1; }
fi
echo "installed: $("$prefix/bin/lockstep" --version)"

# An example is a folder with one program, or a file.
shopt -s nullglob
for example in "$tree"/examples/*; do
    sources=("$example"/*.c)
    [[ $example != *.c ]] || sources=("$example")
    [ ${#sources[@]} -gt 0 ] || continue
    libs=(-lm)
    ! grep -q '^#include <zlib.h>' "${sources[@]}" || libs+=(-lz)
    "$cc" "${strict[@]}" "${sources[@]}" "${flags[@]}" "${libs[@]}" -pthread -o example
    echo "compiles: $(basename "$example")"
done

version=$(PKG_CONFIG_PATH=$pc pkg-config --modversion lockstep)
if [ "$(./by-pkg-config)" != "lockstep $version" ]; then
    echo "lockstep.pc says $version, the library says $(./by-pkg-config)"
    exit 1
fi
