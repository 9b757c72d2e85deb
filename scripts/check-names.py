#!/usr/bin/env python3
"""Names that mean one thing in the whole tree.

1. An internal name (lsi_, LSI_) is defined in one file: functions, types, enumerators,
   macros. A second definition elsewhere, of whatever sort, is a mistake.
2. A base name (pool.c) stands for one idea: a source shares it with its own header and
   test only. Kernels and the operation they compute may share one: op/X.c,
   kernel/ref/X.c, kernel/simd/X.c.
3. Every source opens with a comment that says what it holds.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "cli", "tests", "bench")

DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(LSI_\w+)", re.M)
TYPE_END = re.compile(r"^\}[^;{}()]*?\b(lsi_\w+)[ \t]*;", re.M)
TYPEDEF = re.compile(r"^typedef\b[^;{}]*?\b(lsi_\w+)(?:\)\([^;]*\))?[ \t\n]*;", re.M)
FORWARD = re.compile(r"^typedef (?:struct|union|enum) (lsi_\w+) \1;", re.M)  # opaque
TAG = re.compile(r"^(?:typedef )?(?:struct|union|enum) (lsi_\w+)[ \t\n]*\{", re.M)
ENUM = re.compile(r"\benum\b[^;{}()]*\{([^}]*)\}")
ENUMERATOR = re.compile(r"(?:^|[,{\n])[ \t]*(LSI_\w+)[ \t]*(?==|,|\}|$)", re.M)
# A definition begins in column 0 and has a body; a declaration ends with a semicolon.
FUNCTION = re.compile(r"^[A-Za-z_][\w \t*]*?[ \t*]\(?(lsi_\w+)\)?\([^;{}]*\)[ \t\n]*\{", re.M)
OBJECT = re.compile(r"^(?!extern\b|typedef\b|return\b)[A-Za-z_][\w \t*]*?[ \t*](lsi_\w+)(?:\[[^\]]*\])*[ \t]*=", re.M)

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')


def sources(folders, endings):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and path.is_file():
                yield path


def definitions(text):
    """The internal names that a source defines."""
    text = STRING.sub('""', COMMENT.sub(" ", text))
    text = FORWARD.sub(" ", text)
    for pattern in (DEFINE, TYPE_END, TYPEDEF, TAG, FUNCTION, OBJECT):
        for match in pattern.finditer(text):
            yield match.group(1)
    for block in ENUM.finditer(text):
        for match in ENUMERATOR.finditer(block.group(1)):
            yield match.group(1)


def check_internal_names():
    where = collections.defaultdict(set)
    for path in sources(("src", "cli"), {".c", ".h"}):
        for name in definitions(path.read_text()):
            where[name].add(path.relative_to(ROOT).as_posix())
    if len(where) < 500:
        return [f"only {len(where)} internal names found: the patterns do not fit any more"]
    return [
        f"{name} is defined in {' and in '.join(sorted(files))}: rename one"
        for name, files in sorted(where.items())
        if len(files) > 1 and not name.endswith("_H")
    ]


def idea(path):
    """What a file's base name stands for: its folder, or the family of an operation."""
    folder = path.parent.relative_to(ROOT).as_posix()
    return "an operation" if folder in ("src/op", "src/kernel/ref", "src/kernel/simd", "src/kernel") else folder


def check_base_names():
    where = collections.defaultdict(dict)
    for path in sources(FOLDERS, {".c", ".h", ".cpp"}):
        stem = path.stem
        if stem.endswith("_test") and (path.parent / (stem[:-5] + ".c")).exists():
            stem = stem[:-5]
        where[stem].setdefault(idea(path), path.relative_to(ROOT).as_posix())
    return [
        f"{stem} is the name of {' and of '.join(sorted(ideas.values()))}: rename one"
        for stem, ideas in sorted(where.items())
        if len(ideas) > 1
    ]


def check_openings():
    wrong = []
    for path in sources(FOLDERS + ("include", "examples"), {".c", ".h", ".cpp"}):
        if not path.read_text().lstrip().startswith(("/*", "//")):
            wrong.append(
                f"{path.relative_to(ROOT).as_posix()} does not open with a comment that says what it holds"
            )
    return wrong


def main():
    wrong = check_internal_names() + check_base_names() + check_openings()
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
