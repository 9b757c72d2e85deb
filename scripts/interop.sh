#!/bin/sh
# Runs the tests that compare with other programs and that are skipped where those are
# missing: installs TensorFlow and what it needs into a Python environment of its own,
# builds, and runs the tests. None of them may be skipped here.
#
#   scripts/interop.sh [FOLDER]      (default: build/venv)
set -eu
cd "$(dirname "$0")/.."
venv=${1:-build/venv}
packages="tensorflow==2.21.* numpy safetensors"
modules="tensorflow numpy safetensors"

# True if all of it is there, and TensorFlow is the release that answers are taken from.
complete() {
    [ -x "$venv/bin/python" ] &&
        "$venv/bin/python" - "$@" <<'END'
import importlib.metadata, importlib.util, sys
missing = [m for m in sys.argv[1:] if importlib.util.find_spec(m) is None]
if not missing and not importlib.metadata.version("tensorflow").startswith("2.21."):
    missing = ["tensorflow 2.21"]
sys.exit(1 if missing else 0)
END
}

# shellcheck disable=SC2086 # the lists are words
if ! complete $modules; then
    echo "Installing into $venv: $packages"
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $packages
    complete $modules || {
        echo "scripts/interop.sh: $venv still lacks one of: $packages" >&2
        exit 1
    }
fi

mkdir -p build
python=$(cd "$venv/bin" && pwd)/python
cmake --preset dev -DLS_TENSORFLOW_PYTHON="$python"
cmake --build --preset dev
log=build/interop.log
status=0
ctest --preset dev -L interop --no-tests=error --verbose >"$log" 2>&1 || status=$?
grep -E 'Test +#|tests passed|Skipped|SKIPPED' "$log" || :
if grep -q '(Skipped)' "$log" || grep -q 'SKIPPED' "$log"; then
    echo "scripts/interop.sh: a test was skipped; $log says why" >&2
    exit 1
fi
[ "$status" = 0 ] || tail -60 "$log" >&2
exit "$status"
