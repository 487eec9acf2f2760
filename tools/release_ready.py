#!/usr/bin/env python3
"""Reject a release with a wrong tag, changelog or link.

Usage: release_ready.py v0.1.0
"""

import re
import sys
import tomllib
from pathlib import Path

from version import stated_version

HOME = Path(__file__).parents[1]


def problems(tag, version, changelog, links, citation):
    """Return what keeps a tag from being released, one sentence each."""
    if tag != f"v{version}":
        yield f"The tag is {tag}, but skawhmm/__init__.py states version {version}."
    heading = re.compile(
        rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", re.MULTILINE
    )
    if not heading.search(changelog):
        yield f'CHANGELOG.md has no heading "## {version} (YYYY-MM-DD)" with a date.'
    date = heading.search(changelog)
    day = date.group(0)[-11:-1] if date else "YYYY-MM-DD"
    for line in (f"version: {version}", f"date-released: {day}"):
        if date and line not in citation.splitlines():
            yield f'CITATION.cff has no line "{line}".'
    if any("OWNER" in link for link in links):
        yield "[project.urls] in pyproject.toml still holds the placeholder OWNER."


def main():
    """Print the problems; the exit status says whether there are any."""
    settings = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))
    found = list(
        problems(
            sys.argv[1],
            stated_version(),
            (HOME / "CHANGELOG.md").read_text(encoding="utf-8"),
            settings["project"]["urls"].values(),
            (HOME / "CITATION.cff").read_text(encoding="utf-8"),
        )
    )
    print("\n".join(found) or f"{sys.argv[1]} is ready.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
