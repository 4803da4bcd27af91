"""A short text that stands for content: the same for the same, and for no other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def fingerprint(files: Mapping[str, bytes], *told: Any) -> str:
    """The fingerprint of files, by their names, and of whatever JSON can hold besides."""
    found = hashlib.sha256(json.dumps(told).encode())
    for name, content in sorted(files.items()):
        # The length says where a file ends.
        found.update(f"\0{name}\0{len(content)}\0".encode("utf-8", "replace"))
        found.update(content)
    return found.hexdigest()
