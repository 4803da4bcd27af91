"""Moves every address of the project to another owner: the organization that the repository belongs to.

    python docs/addresses.py OWNER

The one place is [project.urls] in pyproject.toml; a test holds that every address follows from it.
"""

import argparse
import re
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
# A notebook without the list of files, which on a phone leaves it no room.
SITE = "https://starvelab.github.io/starvelab/"
IN_A_TAB = f"{SITE}lite/notebooks/index.html?path="


def owner_and_name(root: Path) -> tuple[str, str]:
    """Whose repository it is, and what it is called."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    owner, name = project["urls"]["Repository"].removeprefix("https://github.com/").split("/")
    return owner, name


def addresses(owner: str, name: str) -> tuple[str, ...]:
    """How every address of the project begins: the repository, Colab, Binder, raw files, the site."""
    colab, binder = "colab.research.google.com/github", "mybinder.org/v2/gh"
    hosts = ("github.com", "raw.githubusercontent.com", colab, binder)
    return (*(f"{host}/{owner}/{name}" for host in hosts), f"{owner.lower()}.github.io/{name}")


def tracked(root: Path) -> list[Path]:
    """The files of the repository that are text."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True)
    files = [root / name for name in done.stdout.split("\0") if name]
    return [path for path in files if path.is_file() and b"\0" not in path.read_bytes()]


def move(root: Path, files: Iterable[Path], owner: str) -> int:
    """Give every address in these files another owner, and return how many there were."""
    before, name = owner_and_name(root)
    count = 0
    for path in files:
        text = path.read_bytes().decode("utf-8")
        for old, new in zip(addresses(before, name), addresses(owner, name), strict=True):
            text, found = re.subn(rf"(?<![\w.-]){re.escape(old)}(?![\w-])", new, text)
            count += found
        path.write_bytes(text.encode("utf-8"))
    return count


def main() -> None:
    """Move the addresses of this checkout."""
    parser = argparse.ArgumentParser(description="Move every address of the project to another owner.")
    parser.add_argument("owner", help="the organization or the user on GitHub")
    owner = parser.parse_args().owner
    if not re.fullmatch(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*", owner):
        parser.error(f"an owner on GitHub has letters, digits and single hyphens, got {owner!r}")
    print(f"{move(REPOSITORY, tracked(REPOSITORY), owner)} addresses belong to {owner} now. Next: make build")


if __name__ == "__main__":
    main()
