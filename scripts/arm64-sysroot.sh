#!/bin/sh
# Fetches what Lockstep links on arm64 from Debian's archive and unpacks it into a folder
# (build/arm64-sysroot) that the preset arm64 compiles and runs against. Nothing is
# installed and no root is needed: ISA-L's development packages for two architectures
# cannot be installed side by side.
#
#   scripts/arm64-sysroot.sh [FOLDER]
set -eu

packages="libc6 libc6-dev linux-libc-dev libgcc-s1 libhwloc15 libhwloc-dev libudev1
    libisal2 libisal-dev zlib1g zlib1g-dev libjansson4 libjansson-dev"

root=${1:-$(dirname "$0")/../build/arm64-sysroot}
mkdir -p "$root/apt/lists/partial" "$root/apt/debs" "$root/usr/lib"
root=$(cd "$root" && pwd)
: >"$root/apt/status"

# apt-get as on an arm64 machine that has nothing installed, with its own lists.
arm64_apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
        -o Dir::State::lists="$root/apt/lists" -o Dir::State::status="$root/apt/status" \
        -o Dir::Cache="$root/apt" -o APT::Sandbox::User="$(id -un)" "$@"
}

arm64_apt update
cd "$root/apt/debs"
# shellcheck disable=SC2086 # the list is words
arm64_apt download $packages

# One folder for all libraries: some links of the packages lead from /usr/lib to /lib.
[ -e "$root/lib" ] || ln -s usr/lib "$root/lib"
for deb in ./*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$root"
done

# Links with a whole path would lead out of the folder.
find "$root/usr/lib" -type l -lname '/*' | while read -r link; do
    ln -sf "$(basename "$(readlink "$link")")" "$link"
done
