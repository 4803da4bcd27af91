"""A job that draws its batches itself, without a DataLoader: which lines read, copy and prepare.

Nothing tells where such a loop waits. So the samples of its thread, from the first to the last change of the
weights, are divided: what trains, and what reads, copies or prepares before it can train.
"""

from __future__ import annotations

from collections.abc import Sequence

from starvelab.measure.verdict import SLIGHT
from starvelab.tables import percent

from ..finding.lines import SHOWN, LineShare

NO_LOOP = "starvelab-doctor: no loop got a batch from a DataLoader of PyTorch."
MOST_LINES = 5  # that are named; a choice


def own_batches(lines: Sequence[LineShare]) -> str:
    """Return what the lines of a loop without a DataLoader say, as text."""
    of_input = [(line, kind) for line in lines if (kind := line.kind)]
    share = sum(line.share for line, _ in of_input)
    if not lines or share < SLIGHT:
        why, then = "nothing was seen to change weights twice", " If not, let it run longer."
        if lines:
            why = (
                f"it reads, copies or prepares in {percent(share, 0)} of the time between the changes of the "
                "weights, so it is not the data: look at the training step"
            )
            then = ""
        return (
            f"{NO_LOOP} Where the loop draws its batches itself, {why}. If it has a loader of another kind, "
            f"put watch(loader) around that.{then}"
        )
    named = [(line, kind) for line, kind in of_input if line.share >= SHOWN / 2][:MOST_LINES] or of_input[:1]
    shown = "; ".join(f"{line.summary} ({kind})" for line, kind in named)
    return (
        f"{NO_LOOP} From the first to the last change of the weights, the loop's own thread reads, copies or "
        f"prepares in {percent(share, 0)} of the time: {shown}. Nothing trains meanwhile, unless a GPU still "
        "has work.\n  First: let a DataLoader with workers, or a thread, draw the next batch while the step "
        "runs. If the batch is cut from one array, draw all of its rows in one call."
    )
