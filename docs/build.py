"""Writes what the pages of docs/ take from elsewhere, between two comments of each page.

It knows where each part comes from, and nothing about how the site looks. The parts stand in the pages
themselves and not in files that Sphinx includes, so that GitHub shows them too. The types of the catalogue
are written here as well.

    python docs/build.py            write the parts
    python docs/build.py --check    compare only; exit 1 and name the stale ones
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
from tabulate import tabulate

DOCS = Path(__file__).resolve().parent
REPOSITORY = DOCS.parent
# For feed_the_gpu and benchmarks, which are no part of the package.
sys.path[:0] = [str(REPOSITORY), str(DOCS)]

import course  # noqa: E402
from feed_the_gpu import tables_js  # noqa: E402

import starvelab  # noqa: E402
import starvelab_doctor  # noqa: E402
import starvelab_grader  # noqa: E402
from benchmarks import published_loaders, results  # noqa: E402
from benchmarks.picture import draw  # noqa: E402
from benchmarks.published import Published  # noqa: E402
from benchmarks.validation import (  # noqa: E402
    FARTHEST_HEADERS,
    KIND_HEADERS,
    by_kind,
    farthest,
)
from starvelab import (  # noqa: E402
    PUBLISHED,
    Q_,
    Hardware,
    Links,
    Models,
    Pipeline,
    Samples,
    Storage,
    Workers,
)
from starvelab.lesson.widgets._moving import data_of  # noqa: E402
from starvelab.model.catalogue import FIELDS, Group  # noqa: E402
from starvelab.model.resources import LABELS  # noqa: E402
from starvelab.tables import cell, percent  # noqa: E402

# The demand that the page of the catalogue compares for.
DEMAND = Pipeline(
    model=Models.ResNet50,
    hardware=Hardware.Cloud.A100,
    workers=Workers(64, cores=64),
    storage=Storage.NVMe_Gen4,
    link=Links.PCIe4_x16,
    assumptions=PUBLISHED,
)


def compared(field: str, group: Group) -> str:
    """Every drive, link or accelerator of the catalogue for one demand, the fastest first."""
    swept = DEMAND.sweep({field: group})
    fits = swept.columns.get("feasible", np.full(len(swept), True))
    rows = [
        (
            swept[field][i],
            cell(swept["throughput"][i]),
            LABELS[swept["bottleneck"][i]] if fits[i] else "the batch does not fit into memory",
            percent(swept["utilization"][i]),
        )
        for i in np.argsort(-swept["throughput"].magnitude, kind="stable")
    ]
    left_out = swept.note.partition("Lowest and")[0].strip()
    table = _table((field, "throughput", "binds", "GPU busy"), rows)
    return "\n\n".join(filter(None, (table, left_out)))


def layers(package: ModuleType = starvelab) -> str:
    """The layers of a package, from its own docstring."""
    block = re.search(r"::\n\n(.*?)\n(?:\n|$)", str(package.__doc__), flags=re.DOTALL)
    return "```text\n" + "\n".join(line[4:] for line in block[1].splitlines()) + "\n```"


@cache
def _published() -> Published:
    """The published measurements, read and predicted once for all parts."""
    return Published()


def how_right() -> str:
    """The error of each kind of published measurements, and how often ranges hold them."""
    return _table(KIND_HEADERS, by_kind(_published()))


def how_right_farthest() -> str:
    """Where the model is farthest off."""
    return _table(FARTHEST_HEADERS, farthest(_published()))


def how_right_in_short() -> str:
    """The same in one sentence, for the first page."""
    rows = {kind: dict(zip(KIND_HEADERS[1:], row, strict=True)) for kind, *row in by_kind(_published())}
    every, loaders = rows["all"], rows["loader"]
    return (
        f"- **How right it is:** over {every['rows']} published measurements its median error is "
        f"{every['median error']}, and over the loaders among them {loaders['median error']}. It abstains on "
        f"{every['abstains']}; counting these, {every['farther than 25 %']} are off by over 25 %. "
        "No measurement is an input of its own prediction, and [the page](docs/how-right.md) says where the "
        "model is far off."
    )


def catalogue_types() -> str:
    """The stub of starvelab/model/groups.py: each entry and its fields, as a type checker reads them."""
    lines = [
        '"""The entries of each group. Written by docs/build.py (`make build`): do not edit it."""\n',
        "from collections.abc import Iterator\n",
        "from ..units import Quantity",
        "from .catalogue import Entry, Group",
    ]
    words = {"count": "int", "counts": "tuple[int, ...]", "word": "str"}
    for kind, fields in FIELDS.items():
        lines += [f"\nclass _{kind}Entry(Entry):"]
        lines += [f"    {field}: {words.get(unit, 'Quantity')}" for field, unit in fields.items()]
        names: dict[str, list[str]] = {"": []}
        for entry in Group(kind):
            group, _, name = entry.path.rpartition(".")
            if group not in names:
                names[""].append(f"{group}: _{kind}{group}")
            names.setdefault(group, []).append(f"{name}: _{kind}Entry")
        for group, members in reversed(names.items()):
            lines += [f"\nclass _{kind}{group}(Group):", *(f"    {member}" for member in members)]
            lines += [f"    def __iter__(self) -> Iterator[_{kind}Entry]: ..."]
    return "\n".join([*lines, "", *(f"{kind}: _{kind}" for kind in FIELDS), ""])


def how_fast() -> str:
    """The committed results of `make bench`."""
    rows = [
        (row["what"], row["starvelab"], row["other"], row["ratio"], row["date"])
        for row in results.read().values()
    ]
    return _table(("what", "starvelab", "the other side", "ratio", "measured"), rows)


# The story of the first page, of the README and of the first notebook: its GPU is busy for 40 % of the time.
WALL = Pipeline(
    hardware="20 ms",
    dataset=Samples(cpu_time="6.25 ms", size="300 KB"),
    batch_size=64,
    workers=8,
    storage="1 GB/s",
    link="10 GB/s",
)
# Workers that began one after the other, so that a batch comes every 50 ms and none piles up in the queue.
APART = Q_([50.0 * turn for turn in range(1, 9)] + [400.0] * 120, "ms")


def wall_js() -> str:
    """What the moving picture of the first page is given, as a module."""
    data = data_of(WALL, APART) | {"controls": {"workers": [*range(1, 65)]}}
    text = json.dumps(data, separators=(",", ":"))
    return f"// Written by docs/build.py (`make build`): do not edit it.\nexport default {text};\n"


def moving_svg() -> str:
    """The same picture for a page that runs no script, drawn by the script of the lab's own."""
    step = WALL.solve()
    words = {
        "title": f"Eight workers feed a GPU, which waits {percent(step.stall, 0)} of the time",
        "desc": "Batches go from a drive through eight workers and a queue into a GPU. They pile up before "
        "the workers, which are always busy. The queue is empty, and the GPU waits for the next batch.",
    }
    # Playwright brings a Node of its own; whoever builds only the site has one for the lab in a tab.
    found = find_spec("playwright")
    own = Path(str(found.origin)).with_name("driver") / "node" if found else Path()
    command = [own if own.is_file() else shutil.which("node") or "node", DOCS / "moving.mjs"]
    given = json.dumps(data_of(WALL, APART) | words)
    return subprocess.run(command, input=given, capture_output=True, encoding="utf-8", check=True).stdout


# Each part: its page, and the function that makes it.
PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "layers": ("architecture.md", layers),
    "doctor": ("architecture.md", lambda: layers(starvelab_doctor)),
    "rooms": ("architecture.md", lambda: layers(starvelab_grader)),
    "how-right": ("how-right.md", how_right),
    "farthest": ("how-right.md", how_right_farthest),
    "how-right-in-short": ("../README.md", how_right_in_short),
    **{
        field: ("compare.md", partial(compared, field, group))
        for field, group in (("storage", Storage), ("link", Links), ("hardware", Hardware))
    },
    "how-fast": ("how-fast.md", how_fast),
    "assignments": ("../README.md", lambda: _table(*course.assignments())),
    "notebooks": ("learners.md", lambda: _table(*course.notebooks())),
    "afternoon": ("afternoon.md", lambda: _table(*course.afternoon())),
    "syllabus": ("instructors.md", lambda: _table(*course.syllabus())),
    "packages": ("instructors.md", course.packages),
    "points": ("instructors.md", lambda: _table(*course.points())),
    "model-answers": ("model-answers.md", course.model_answers),
}
# Files that are generated as a whole.
FILES: dict[str, Callable[[], str]] = {
    "docs/pictures/how-right.svg": lambda: draw(_published()),
    "docs/_extra/feed-the-gpu/tables.js": tables_js,
    "docs/_extra/wall.js": wall_js,
    "starvelab/lesson/published_loaders.json": published_loaders.as_json,
    "docs/pictures/moving.svg": moving_svg,
    "starvelab/model/groups.pyi": catalogue_types,
}


def _table(headers: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return re.sub(" +", " ", tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True))


def with_part(page: str, name: str, part: str) -> str:
    """The text of a page with one part written anew. Raises ValueError if the page has no place for it."""
    begin, end = f"<!-- begin {name}: written by docs/build.py -->", f"<!-- end {name} -->"
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", flags=re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"A page with the part {name!r} needs the lines {begin} and {end}; it has not both.")
    return pattern.sub(lambda _: f"{begin}\n\n{part}\n\n{end}", page)


def main(arguments: list[str] | None = None, root: Path = REPOSITORY) -> int:
    """Write the parts, or with --check compare them. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Write the generated parts of the pages of docs/.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a part is stale")
    options = parser.parse_args(arguments)
    stale = [
        *(_update(root, f"docs/{page}", name, made, options.check) for name, (page, made) in PARTS.items()),
        *(_update(root, file, None, made, options.check) for file, made in FILES.items()),
    ]
    if options.check and any(stale):
        print("Restore it with: python docs/build.py (or: make build)")
    return int(options.check and any(stale))


def _update(root: Path, file: str, part: str | None, made: Callable[[], str], check: bool) -> bool:
    """Whether a file, or that part of it, was stale; unless only checked, it is written anew."""
    path = root / file
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    after = made() if part is None else with_part(before, part, made())
    if before == after:
        return False
    where = file if part is None else f"{file}: the part {part!r}"
    print(f"{where} is {'stale' if check else 'written'}")
    if not check:
        path.write_text(after, encoding="utf-8", newline="\n")
    return True


if __name__ == "__main__":
    sys.exit(main())
