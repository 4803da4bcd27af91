"""The package's own tables, as ``data/*.toml`` has them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any


# Any: what a file holds, which each reader checks.
def read_data(name: str) -> dict[str, Any]:
    """What ``data/<name>.toml`` holds."""
    return tomllib.loads((files(__package__) / "data" / f"{name}.toml").read_text(encoding="utf-8"))
