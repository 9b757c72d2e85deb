"""The arithmetic of scripts/ab.sh: ab_compare.py [--filter TEXT] FOLDER, where FOLDER holds
old.1, new.1, old.2, new.2 ...: what `lockstep bench --json` printed in each round."""
import json
import os
import statistics
import sys

LEAST = 0.98  # a line whose upper quartile of ratios is below falls short
ROUNDS = 4  # fewer have no quartiles
FIELDS = ("threads", "replicas", "ranks", "wait", "batch")


def name_of(row):
    parts = [row["bench"], row["name"]]
    parts += ["%s %s" % (f, row[f]) for f in FIELDS if f in row]
    return ", ".join(parts)


def speed_of(row):
    """The speed of a line, more is better; None: the line has no measurement."""
    if row["bench"] == "input":
        value, bigger = row.get("value"), row.get("unit", "").endswith("/s")
    else:
        value, bigger = row.get("us", row.get("ms")), False
    if isinstance(value, dict):
        value = value["p50"]
    if not isinstance(value, (int, float)) or not value > 0:
        return None
    return value if bigger else 1 / value


def read(path):
    lines = {}
    with open(path) as f:
        for line in f:
            row = json.loads(line)
            name, times = name_of(row), 2
            while name in lines:  # the same benchmark twice, with other options
                name, times = "%s (%d)" % (name_of(row), times), times + 1
            lines[name] = speed_of(row)
    return lines


def rounds_of(folder):
    rounds = []
    while os.path.exists(os.path.join(folder, "old.%d" % (len(rounds) + 1))):
        n = len(rounds) + 1
        rounds.append([read(os.path.join(folder, "%s.%d" % (s, n))) for s in ("old", "new")])
    return rounds


def main(args):
    wanted = ""
    if args[:1] == ["--filter"]:
        wanted, args = args[1], args[2:]
    rounds = rounds_of(args[0])
    if len(rounds) < ROUNDS:
        print("%s: %d rounds, and quartiles want %d" % (args[0], len(rounds), ROUNDS))
        return 1
    names, short, compared = [], [], 0
    for pair in rounds:
        for side in pair:
            names += [n for n in side if n not in names and wanted in n]
    print("%-48s %7s %7s %7s" % ("new against old, 1.00 is as fast", "lower", "median", "upper"))
    for name in names:
        sides = [any(name in pair[s] for pair in rounds) for s in (0, 1)]
        ratios = [new[name] / old[name] for old, new in rounds
                  if old.get(name) is not None and new.get(name) is not None]
        if not all(sides):
            print("%-48s only in the %s one" % (name, "old" if sides[0] else "new"))
        elif len(ratios) < ROUNDS:
            print("%-48s is no speed: not compared" % name)
        else:
            compared += 1
            quartiles = statistics.quantiles(ratios, n=4, method="inclusive")
            falls = quartiles[2] < LEAST
            short += [name] if falls else []
            print("%-48s %7.3f %7.3f %7.3f%s" % (name, *quartiles, "  FALLS SHORT" if falls else ""))
    if compared == 0:
        print("there is no line to compare")
        return 1
    print("%d of %d lines fall short: their upper quartile is below %.2f"
          % (len(short), compared, LEAST))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
