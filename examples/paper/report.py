"""Run every experiment of the paper and write report.md.

The report has, for each figure and table, ours beside the paper's where it prints
numbers, the pictures, and for every ordering that the paper states whether it was
reproduced, with the numbers.
"""

import platform
import sys
import time
from importlib import import_module

from common import markdown, parse, table, timed

SCRIPTS = ("fig1", "fig3", "table2", "fig4", "fig6", "supplement_alpha", "fig7")
SCRIPTS += ("fig8", "table3", "fig9")


def written(args, results):
    """Return the report."""
    orderings = [
        [result.title.split(":")[0], *ordering]
        for result in results
        for ordering in result.orderings
    ]
    n_held = sum(ordering[2] == "reproduced" for ordering in orderings)
    total = sum(result.seconds for result in results)
    head = [
        "# The paper, reproduced",
        f"`python examples/paper/report.py --{args.size} --seed {args.seed}`, "
        f"{total:.0f} s, Python {platform.python_version()}. Numbers of the paper "
        "stand beside ours where it prints them.",
        f"## Orderings: {n_held} of {len(orderings)} reproduced",
        table(["where", "stated in the paper", "here", "numbers"], orderings),
    ]
    body = []
    for result in results:
        pictures = "\n\n".join(f"![{name}]({name})" for name in result.figures)
        body.append(f"{markdown(result)}\n\n{pictures}")
    return "\n\n".join([*head, *body]) + "\n"


def main(argv=None):
    """Run all scripts and write the report."""
    args = parse(__doc__, argv)
    results = []
    for name in SCRIPTS:
        print(f"{time.strftime('%H:%M:%S')} {name}", file=sys.stderr, flush=True)
        results.append(timed(import_module(name).run, args))
        text = written(args, results)
        (args.out / "report.md").write_text(text, encoding="utf-8")
    print(f"wrote {args.out / 'report.md'}")


if __name__ == "__main__":
    main()
