"""Check every link within the built site: the page or file is there, and so is the place on the page.

    python docs/check_links.py docs/_build/html

Sphinx checks the links of the documents. This reads what was built: notebooks, copied pages, and menus.
"""

import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

# The lab in a tab is built into the same folder, by a command of its own, and reads its pages by a script.
ELSEWHERE = ("lite/",)


@cache
def _read(page: Path) -> tuple[frozenset[str], tuple[str, ...]]:
    """The places of a page that a link can lead to, and where its own links lead."""
    tree = BeautifulSoup(page.read_bytes(), "html.parser")
    places = {tag[key] for key in ("id", "name") for tag in tree.find_all(attrs={key: True})}
    leads = [tag[key] for key in ("href", "src") for tag in tree.find_all(attrs={key: True})]
    return frozenset(places), tuple(leads)


def dead_links(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere: the page, the link, and what is missing."""
    dead = []
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site)
        if str(name).startswith(ELSEWHERE):
            continue
        for link in dict.fromkeys(_read(page)[1]):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                dead.append(f"{name}: {link} leads to no file")
            elif (
                parts.fragment
                and target.suffix == ".html"
                and unquote(parts.fragment) not in _read(target)[0]
            ):
                dead.append(f"{name}: {link} leads to no place on {target.relative_to(site)}")
    return dead


def main(folder: str) -> int:
    """Print the dead links of a site. Returns the exit status."""
    dead = dead_links(Path(folder).resolve())
    print("\n".join(dead) or "Every link within the site leads somewhere.")
    return int(bool(dead))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
