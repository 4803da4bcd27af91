"""Writes what the pages of docs/ take from elsewhere, between two comments of each page.

It knows where each part comes from, and nothing about how the site looks. The parts stand in the pages
themselves and not in files that Sphinx includes, so that GitHub shows them too.

    python docs/build.py            write the parts
    python docs/build.py --check    compare only; exit 1 and name the stale ones
"""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from tabulate import tabulate

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))  # for benchmarks, which is no part of the package

import starvelab  # noqa: E402
from benchmarks import results  # noqa: E402
from benchmarks.validation import Published, rows_of, summary  # noqa: E402


def layers() -> str:
    """The layers of the package, from its own docstring."""
    block = re.search(r"::\n\n(.*?)\n\n", starvelab.__doc__, flags=re.DOTALL)
    return "```text\n" + "\n".join(line[4:] for line in block[1].splitlines()) + "\n```"


def how_right() -> str:
    """Published measurements, what the model predicts for them, and the error."""
    published = Published()
    tests = [published.test(name) for name in published.tested]
    rows = [row[:4] for row in rows_of(tests)]
    return f"{_table(('what', 'measured', 'predicted', 'error'), rows)}\n\n{summary(tests)}."


def how_fast() -> str:
    """The committed results of `make bench`."""
    rows = [
        (row["what"], row["starvelab"], row["other"], row["ratio"], row["date"])
        for row in results.read().values()
    ]
    return _table(("what", "starvelab", "the other side", "ratio", "measured"), rows)


PARTS: dict[str, Callable[[], str]] = {"layers": layers, "how-right": how_right, "how-fast": how_fast}
PAGES = {"layers": "architecture.md", "how-right": "how-right.md", "how-fast": "how-fast.md"}


def _table(headers: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return re.sub(" +", " ", tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True))


def with_part(page: str, name: str, part: str) -> str:
    """The text of a page with one part written anew. Raises ValueError if the page has no place for it."""
    begin, end = f"<!-- begin {name}: written by docs/build.py -->", f"<!-- end {name} -->"
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", flags=re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"A page with the part {name!r} needs the lines {begin} and {end}; it has not both.")
    return pattern.sub(lambda _: f"{begin}\n\n{part}\n\n{end}", page)


def main(arguments: list[str] | None = None) -> int:
    """Write the parts, or with --check compare them. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Write the generated parts of the pages of docs/.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a part is stale")
    options = parser.parse_args(arguments)
    stale = False
    for name, made in PARTS.items():
        path = DOCS / PAGES[name]
        before = path.read_text(encoding="utf-8")
        after = with_part(before, name, made())
        if before == after:
            continue
        stale = True
        print(f"docs/{path.name}: the part {name!r} is {'stale' if options.check else 'written'}")
        if not options.check:
            path.write_text(after, encoding="utf-8", newline="\n")
    if options.check and stale:
        print("Restore it with: python docs/build.py (or: make build)")
    return int(options.check and stale)


if __name__ == "__main__":
    sys.exit(main())
