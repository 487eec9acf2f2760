"""Run every experiment of the paper and write report.md.

With ``--docs FILE`` the numbers between two marks of that page are replaced by the
numbers of this run. The report has, for each figure and table, our numbers next to the
paper's where it prints them, the figures, and for every ordering that the paper states
whether it was reproduced, with the numbers.
"""

import argparse
import platform
import sys
import time
from importlib import import_module
from pathlib import Path

from common import markdown, parse, table, timed

SCRIPTS = ("fig1", "fig3", "table2", "fig4", "fig6", "supplement_alpha", "fig7")
SCRIPTS += ("fig8", "table3", "fig9")
# Tables that the page of the documentation shows in full; for the others, the
# orderings.
SHOWN = ("table2", "fig8", "table3")
MARKS = "<!-- numbers -->", "<!-- end of numbers -->"


def summary(args, results):
    """Return the command, and every ordering that the paper states."""
    orderings = [
        [result.title.split(":")[0], *ordering]
        for result in results
        for ordering in result.orderings
    ]
    n_held = sum(ordering[2] == "reproduced" for ordering in orderings)
    total = sum(result.seconds for result in results)
    return [
        f"`python examples/paper/report.py --{args.size} --seed {args.seed}`, "
        f"{total:.0f} s, Python {platform.python_version()}. The paper's numbers "
        "are given where it prints them.",
        f"## Orderings: {n_held} of {len(orderings)} reproduced",
        table(["where", "stated in the paper", "here", "numbers"], orderings),
    ]


def written(args, results):
    """Return the report."""
    body = []
    for result in results:
        pictures = "\n\n".join(f"![{name}]({name})" for name in result.figures)
        body.append(f"{markdown(result)}\n\n{pictures}")
    parts = ["# The paper, reproduced", *summary(args, results), *body]
    return "\n\n".join(parts) + "\n"


def documented(page, args, results):
    """Return the text of a page with the numbers of this run between its marks."""
    before, rest = page.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    shown = [markdown(result) for result in results if result.name in SHOWN]
    parts = [MARKS[0], *summary(args, results), *shown, MARKS[1]]
    return before + "\n\n".join(parts) + after


def main(argv=None):
    """Run all scripts and write the report."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--docs", type=Path)
    docs, rest = parser.parse_known_args(argv)
    args = parse(__doc__, rest)
    results = []
    for name in SCRIPTS:
        print(f"{time.strftime('%H:%M:%S')} {name}", file=sys.stderr, flush=True)
        results.append(timed(import_module(name).run, args))
        text = written(args, results)
        (args.out / "report.md").write_text(text, encoding="utf-8")
    if docs.docs is not None:
        page = docs.docs.read_text(encoding="utf-8")
        docs.docs.write_text(documented(page, args, results), encoding="utf-8")
    print(f"wrote {args.out / 'report.md'}")


if __name__ == "__main__":
    main()
