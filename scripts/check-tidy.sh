#!/bin/bash
# clang-tidy over the library and the command, each source once. Needs build/dev, which it
# configures if it is not there. Files may be named: scripts/check-tidy.sh src/op/unary.c
set -eu
cd "$(dirname "$0")/.."
[ -f build/dev/compile_commands.json ] || cmake --preset dev >/dev/null
mkdir -p build/tidy

# A source is compiled several times (for the library, for the tests, per instruction set);
# analysing it once, as AVX2 where that exists, says as much.
python3 - "$PWD" "$@" >build/tidy/files <<'END'
import json, os, sys

root, named = sys.argv[1], [os.path.abspath(f) for f in sys.argv[2:]]
chosen = {}
for entry in json.load(open("build/dev/compile_commands.json")):
    path = os.path.relpath(entry["file"], root)
    if not path.startswith(("src/", "cli/")) or path.endswith("_test.c"):
        continue
    if named and entry["file"] not in named:
        continue
    command = entry["command"]
    # Files that ask the system for more must do so before any header: theirs comes first.
    if path.startswith("src/") and not path.startswith("src/base/") and "_SOURCE" not in open(path).read():
        entry["command"] = command.replace(" -c ", f" -include {root}/scripts/analyzer.h -c ", 1)
    rank = ("ls_testing" in command) + 2 * ("LSI_ISA=" in command and "LSI_ISA=avx2" not in command)
    if path not in chosen or rank < chosen[path][0]:
        chosen[path] = (rank, entry)
json.dump([entry for _, entry in chosen.values()], open("build/tidy/compile_commands.json", "w"))
print("\n".join(sorted(p for p in chosen if os.path.getsize(p))))
END
[ -s build/tidy/files ] || { echo "no source to look at"; exit 1; }
xargs -P 2 -n 4 clang-tidy -p build/tidy --quiet \
    --extra-arg=-Wno-unknown-warning-option <build/tidy/files
