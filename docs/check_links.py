"""Check every link within the built site: the page or file is there, and so is the place on the page.

A page loads nothing from another site, which may be blocked where it is read.

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
def _read(page: Path) -> tuple[frozenset[str], tuple[str, ...], frozenset[str]]:
    """The places of a page that a link can lead to, where its own links lead, and what it loads."""
    tree = BeautifulSoup(page.read_bytes(), "html.parser")
    places = {tag[key] for key in ("id", "name") for tag in tree.find_all(attrs={key: True})}
    leads = [tag[key] for key in ("href", "src") for tag in tree.find_all(attrs={key: True})]
    loaded = {tag["src"] for tag in tree.find_all(src=True)}
    loaded |= {tag["href"] for tag in tree.find_all("link", rel=["stylesheet", "icon"])}
    return frozenset(places), tuple(leads), frozenset(loaded)


def dead_links(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere, or to a file of another site that the page loads."""
    dead = []
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site)
        if str(name).startswith(ELSEWHERE):
            continue
        for link in dict.fromkeys(_read(page)[1]):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if parts.netloc and link in _read(page)[2]:
                    dead.append(f"{name}: {link} is loaded from another site")
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
