"""What `starvelab-doctor` on the command line runs: a training script, or `compare`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .compare import main as compare
from .doctor import main as doctor


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command, and end with its status."""
    words = sys.argv[1:] if arguments is None else [*arguments]
    raise SystemExit(compare(words[1:]) if words[:1] == ["compare"] else doctor(words))
