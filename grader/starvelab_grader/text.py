"""Text that somebody else wrote, made safe: to be stored, to be shown, and to stand in a table."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
MAX_SHOWN = 120  # characters of a name in a message
MAX_LISTED = 10  # names in a message
# What a text imports, by the look of it: no compiler reads what a student wrote.
IMPORT = re.compile(r"\b(?:import|from)[ \t]+(\w+)")


def storable(text: str) -> str:
    """The text without halves of characters (surrogates), which JSON can hold and a file cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def printable(name: str) -> str:
    """The name of a file, with question marks for what cannot be printed, and without backticks."""
    text = storable(name).replace("`", "'")
    return "".join(character if character.isprintable() else "?" for character in text)


def shown(name: str) -> str:
    """The name of a file as a message shows it: printable, not too long, and safe between backticks."""
    return printable(name)[:MAX_SHOWN]


def printed(text: str) -> str:
    """Lines for a terminal or a log: what is no character to be seen, such as a control code, is a `?`."""
    return "\n".join("".join(one if one.isprintable() else "?" for one in line) for line in text.splitlines())


def slug(title: str, joint: str = "-") -> str:
    """Return a text in which only letters and digits count: the same for `Lab 1: CPUs` and `lab-1_cpus`."""
    return re.sub(r"[\W_]+", joint, unicodedata.normalize("NFKC", title).casefold()).strip(joint or None)


def one_line(text: str, most: int) -> str:
    """The first `most` characters that can be seen, in one line."""
    return "".join(filter(str.isprintable, " ".join(text.split()).strip()))[:most].strip()


def enumerated(names: Sequence[str]) -> str:
    """The names of files as a message lists them: the first ten, and how many more there are."""
    more = f" and {len(names) - MAX_LISTED} more" if names[MAX_LISTED:] else ""
    return ", ".join(f"`{shown(name)}`" for name in names[:MAX_LISTED]) + more


def listed(names: Collection[str]) -> str:
    """The names that there are, as a message lists them: the first ten."""
    return ", ".join([*islice(names, MAX_LISTED), *["…"] * (len(names) > MAX_LISTED)]) or "none"


def escape_csv_formulas(value: T) -> T | str:
    """The value of a cell such that a spreadsheet does not take a student's text for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r\n＝＋－＠") else value
