"""Calls below a line that are known to starve a training, and what to do instead: known_calls.toml."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class KnownCall:
    """What a line does when it calls something, and the cure."""

    name: str
    pattern: str
    text: str
    removable: bool = True  # the cure leaves the work out of each epoch, and does not only make it faster


LOCK, WAIT = "lock", "sleep"
TABLE = tomllib.loads(Path(__file__).with_name("known_calls.toml").read_text(encoding="utf-8"))
KNOWN = tuple(KnownCall(**row) for row in TABLE["call"])


def known_call(call: str) -> KnownCall | None:
    """Return what is known of a call; None where nothing is."""
    return next((row for row in KNOWN if re.search(row.pattern, call)), None) if call else None
