#!/bin/sh
# Installs what the tree needs, by the names of Debian's packages; does nothing if all of it
# is installed. On other systems it prints what is missing.
#
#   scripts/deps.sh [build] [train] [check] [fuzz] [interop]      (none: the first three)
set -eu

build="gcc libc6-dev cmake ninja-build pkg-config libhwloc-dev libisal-dev zlib1g-dev libdnnl-dev libjansson-dev"
train="dataset-fashion-mnist"
check="g++ clang clang-format clang-tidy python3"
fuzz="clang libclang-rt-14-dev"
interop="python3 python3-venv"

[ $# -gt 0 ] || set -- build train check
wanted=""
for group; do
    case $group in
    build) wanted="$wanted $build" ;;
    train) wanted="$wanted $train" ;;
    check) wanted="$wanted $check" ;;
    fuzz) wanted="$wanted $fuzz" ;;
    interop) wanted="$wanted $interop" ;;
    *)
        echo "scripts/deps.sh: no group is called $group (build, train, check, fuzz, interop)" >&2
        exit 2
        ;;
    esac
done

elsewhere() {
    cat >&2 <<'END'
This is not a Debian system. Lockstep needs, from your package manager:
  to build   a C11 compiler (gcc or clang), CMake 3.21 or newer, Ninja, pkg-config, and the
             development files of hwloc, ISA-L, zlib and jansson; oneDNN 2.6 or 3.x is optional
             and makes some operations faster
  to train   Fashion-MNIST's four IDX files (https://github.com/zalandoresearch/fashion-mnist)
             in /usr/share/datasets/fashion-mnist
  to check   g++, clang, clang-format, clang-tidy, python3
  to fuzz    clang with its runtime (libFuzzer and the sanitizers)
  interop    python3 with venv and pip; TensorFlow itself is installed into build/venv
END
}

# True if the tools and libraries of the build can be found without asking dpkg.
can_build() {
    for tool in cc cmake ninja pkg-config; do
        command -v "$tool" >/dev/null 2>&1 || { echo "missing: $tool" >&2; return 1; }
    done
    for lib in hwloc libisal zlib jansson; do
        pkg-config --exists "$lib" || { echo "missing: the library $lib" >&2; return 1; }
    done
}

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    can_build || { elsewhere; exit 1; }
    exit 0
fi

missing=""
for package in $wanted; do
    state=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
    case $state in
    ii*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

echo "Installing:$missing"
if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1; then
    as_root=sudo
else
    echo "Not root, and there is no sudo. As root: apt-get install$missing" >&2
    exit 1
fi
# shellcheck disable=SC2086 # the lists are words
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $missing
