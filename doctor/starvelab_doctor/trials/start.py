"""The process of one run of `starvelab-doctor --try`: it runs a script as a plan says.

Like the doctor itself, it loads neither NumPy nor PyTorch before the script does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ..script import run_script
from ..watching.on_import import on_import
from .scratch import Scratch

if TYPE_CHECKING:
    from .run import Trial


def main(arguments: Sequence[str]) -> int:
    """Run a script as a plan says: the file of the plan, the script, and its own arguments."""
    file, script, *others = arguments
    plan = json.loads(Path(file).read_text(encoding="utf-8"))
    os.chdir(plan["work"])
    Scratch(Path(plan["folder"]) / "tree", Path(plan["original"])).guard()
    trial: Trial | None = None
    with ExitStack() as stack:

        def begin() -> None:
            nonlocal trial
            from .run import trial_of  # loaded here: it loads NumPy, whose threads the script may set

            trial = stack.enter_context(trial_of(plan))

        with on_import(begin):
            status = run_script(script, others, module=plan["module"])
        if not status and trial is not None:
            trial.end()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
