"""What `starvelab-doctor` on the command line runs: a training script, or `compare`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .doctor import main as doctor


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command, and end with its status."""
    words = sys.argv[1:] if arguments is None else [*arguments]
    if words[:1] == ["compare"]:
        from .compare import main as compare  # loaded here: it loads NumPy, which a script has to load itself

        raise SystemExit(compare(words[1:]))
    raise SystemExit(doctor(words))
