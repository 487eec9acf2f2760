"""Random calls of all public names, and counts of their outcomes.

Run with ``python benchmarks/fuzz.py --inputs 20000 [--seed S] [--jobs N]``. Every case
is drawn from the seed and its number: sequences in all kinds of containers, degenerate
data, values from 1e-300 to 1e300, models given by parameters, matrices of distances,
and right and wrong parameters of all estimators and functions. Each case runs in its
own process with a time limit, so that crashes and hangs are counted. A result must
interpret the input correctly, be finite, and have the properties of the function that
was called; an error must name the argument.

``--case N`` runs one case again and prints its inputs and the traceback; ``--kinds``
runs only some kinds of cases. Ctrl-C prints the table of what has been run so far. With
``--docs FILE`` the table is also written to that page.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fuzzing.judge import GOOD, OUTCOMES
from fuzzing.kinds import KINDS, kind_of, trial_of
from fuzzing.pool import LIMIT, Worker, findings

# Number of cases shown per kind of bad outcome.
SHOWN = 5


def numbers(seed, n_inputs, kinds):
    """Yield the numbers of the first cases of some kinds."""
    number, left = 0, n_inputs
    while left:
        if kind_of(seed, number) in kinds:
            yield number
            left -= 1
        number += 1


def table(counts, kinds):
    """Return the outcomes by kind of case, in Markdown."""
    lines = [f"| kind of case | {' | '.join(OUTCOMES)} |"]
    lines.append("| --- |" + " --: |" * len(OUTCOMES))
    for kind in kinds:
        row = [counts[kind, outcome] for outcome in OUTCOMES]
        if any(row):
            lines.append(f"| {kind} | {' | '.join(map(str, row))} |")
    totals = [sum(counts[kind, outcome] for kind in kinds) for outcome in OUTCOMES]
    lines.append(f"| **all** | {' | '.join(map(str, totals))} |")
    return "\n".join(lines)


def roots(bad):
    """Return findings by what they have in common, the most frequent first."""
    found = {}
    for finding in bad:
        found.setdefault((finding.outcome, finding.place), []).append(finding)
    return sorted(found.values(), key=len, reverse=True)


def print_roots(bad, shown):
    """Print the smallest cases of each root."""
    for group in roots(bad):
        first = group[0]
        print(f"\n{first.outcome}, {len(group)} times, at {first.place}")
        for finding in sorted(group, key=lambda f: f.size)[:shown]:
            print(f"  --case {finding.number}: {finding.text[:300]}")
            print(f"      {finding.message[:300]}")


def run(seed, n_inputs, kinds, n_jobs, limit):
    """Run cases and return the counts and the bad findings."""
    counts, bad, started = Counter(), [], time.monotonic()
    done = 0
    try:
        for finding in findings(
            seed, numbers(seed, n_inputs, kinds), n_jobs=n_jobs, limit=limit
        ):
            kind = kind_of(seed, finding.number)
            finding.text = finding.text or _text(seed, finding.number)
            counts[kind, finding.outcome] += 1
            if finding.outcome not in GOOD:
                bad.append(finding)
            done += 1
            if done % 500 == 0:
                passed = time.monotonic() - started
                print(f"{done} cases, {len(bad)} bad, {passed:.0f} s", flush=True)
    except KeyboardInterrupt:
        print(f"interrupted after {done} cases", flush=True)
    return counts, bad


def _text(seed, number):
    """Return the text of a case that killed its process."""
    try:
        return trial_of(seed, number)[1].text
    except Exception as error:
        return f"the case could not be drawn: {error!r}"


def show_case(seed, number, limit):
    """Run one case again and print all that is known about it."""
    kind, trial = trial_of(seed, number)
    print(f"case {number} of seed {seed}, {kind}\n{trial.text}\n")
    for value in trial.inputs:
        print(f"{value!r}"[:4000])
    worker = Worker(seed, limit=limit)
    worker.give(number)
    while (finding := worker.answer()) is None:
        time.sleep(0.05)
    worker.stop()
    print(f"\n{finding.outcome} at {finding.place}\n{finding.message}\n{finding.trace}")


def document(path, seed, text):
    """Put the table of a seed between its marks on a page of the documentation."""
    page = path.read_text(encoding="utf-8")
    start, end = f"<!-- fuzz seed {seed} -->", f"<!-- end of fuzz seed {seed} -->"
    before, rest = page.split(start)
    page = f"{before}{start}\n{text}\n{end}{rest.split(end)[1]}"
    path.write_text(page, encoding="utf-8")


def main():
    """Read the options, run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS])
    parser.add_argument("--case", type=int, help="run this case only, and show it")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds per case")
    parser.add_argument("--shown", type=int, default=SHOWN, help="cases per root")
    parser.add_argument("--docs", type=Path, help="page to write the table to")
    options = parser.parse_args()
    if options.case is not None:
        show_case(options.seed, options.case, options.limit)
        return
    counts, bad = run(
        options.seed, options.inputs, options.kinds, options.jobs, options.limit
    )
    print_roots(bad, options.shown)
    text = table(counts, options.kinds)
    total = sum(counts.values())
    command = f"python benchmarks/fuzz.py --inputs {total} --seed {options.seed}"
    print(f"\n{command}\n\n{text}")
    if options.docs is not None:
        document(options.docs, options.seed, f"`{command}`\n\n{text}")


if __name__ == "__main__":
    main()
