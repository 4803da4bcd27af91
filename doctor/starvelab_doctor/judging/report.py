"""The report of `starvelab-doctor`: what was found of each loop, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from starvelab.measure.verdict import SLIGHT
from starvelab.tables import count_of, percent

from ..finding.job import JobFinding
from ..finding.lines import LineShare
from .remedies import remedies_of
from .remedy import Remedy

VERSION = 1  # of the JSON: it changes when a name goes or means something else; by definition
Results = Sequence[tuple[str, JobFinding]]
NO_LOOP = "starvelab-doctor: no loop got a batch from a DataLoader of PyTorch."


def _lines_of(finding: JobFinding) -> list[str]:
    """Return what was found of a loop and what to do, a line each; what a remedy says is said there alone."""
    remedies = remedies_of(finding)
    said = [text for text in finding.statements if not any(text in remedy.text for remedy in remedies)]
    # What may make the job slower is not to be done first, but to be tried.
    words = ["Try" if remedies and remedies[0].risky else "First", *["Or"] * len(remedies)]
    cures = [f"{word}: {remedy.text}" for word, remedy in zip(words, remedies, strict=False)]
    return [*said, *(cures or [finding.next_step])]


def text_report(results: Results, own: Sequence[LineShare] = ()) -> str:
    """Return what was found, as text; `own` are the lines of a loop that draws its batches itself."""
    if not results:
        return own_batches(own)
    lines = []
    for name, finding in results:
        lines.append(f"starvelab-doctor: {name}, {count_of(finding.waits.batches, 'batch')}")
        lines += [f"  {line}" for line in _lines_of(finding)]
    return "\n".join(lines)


def json_report(results: Results) -> str:
    """Return the fields of each finding's records and its remedies as JSON; quantities are in s and B."""
    loops = [_loop(name, finding, remedies_of(finding)) for name, finding in results]
    content = {"version": VERSION, "loops": loops}
    return json.dumps(content, indent=1, default=lambda quantity: quantity.to_base_units().magnitude) + "\n"


def _loop(name: str, finding: JobFinding, remedies: Sequence[Remedy]) -> dict[str, object]:
    gpu, ranks = replace(finding.gpu, steps=None), replace(finding.ranks, found={})
    records = (finding.waits, finding.loader, finding.machine, gpu, ranks)
    return {
        "loop": name,
        "verdict": finding.verdict,
        "state": finding.state,
        "largest_stage": finding.loader.stages.largest if finding.loader.stages is not None else None,
        **{field: value for record in records for field, value in asdict(record).items()},
        "remedies": [
            {
                "name": one.name,
                "text": one.text,
                "gain": one.told and [one.told.low, one.told.likely, one.told.high],
                "value": one.value,
            }
            for one in remedies
        ],
    }


def own_batches(lines: Sequence[LineShare]) -> str:
    """Return what the lines of a loop without a DataLoader say, as text.

    Nothing tells where such a loop waits. So the samples of its thread, from the first to the last change of
    the weights, are divided: what trains, and what reads, copies or prepares before it can train.
    """
    of_input = [line for line in lines if line.kind]
    share = percent(sum(line.share for line in of_input), 0)
    if sum(line.share for line in of_input) < SLIGHT:
        why = "nothing was seen to change weights twice: let it run longer"
        if lines:
            why = (
                f"it reads, copies or prepares in {share} of the time between the changes of the weights, so "
                "it is not the data: look at the training step"
            )
        return (
            f"{NO_LOOP} Where the loop draws its batches itself, {why}. If it has a loader of another kind, "
            "put watch(loader) around that."
        )
    named = [line for line in of_input if line.share >= SLIGHT] or of_input[:1]
    shown = "; ".join(f"{line.summary} ({line.kind})" for line in named)
    return (
        f"{NO_LOOP} From the first to the last change of the weights, the loop's own thread reads, copies or "
        f"prepares in {share} of the time: {shown}. Nothing trains meanwhile, unless a GPU still has work.\n"
        "  First: let a DataLoader with workers, or a thread, draw the next batch while the step runs. If "
        "the batch is cut from one array, draw all of its rows in one call."
    )
