"""The lines at which a job spends its time, and what its workers show of themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starvelab.tables import percent

SHOWN = 0.1  # share from which on a line is named
MIN_SAMPLES = 30  # of which a share has a standard error below ten points; with fewer nothing is said
# A worker is idle below this share of what the busiest one works, which works at least so much.
IDLE, BUSIEST = 0.1, 0.5
# What a thread does: a worker prepares items, collates them, starts, or something else; the loop's own thread
# draws indices, prepares or handles batches, or trains.
DATASET, COLLATE, START, SAMPLER, LOOP = "dataset", "collate", "start", "sampler", "loop"
GENERATOR = "generator"  # between the loader and the loop: what it computes is input work
WHERE = {
    DATASET: "the dataset", COLLATE: "the collate function", START: "the start of a worker",
    SAMPLER: "the sampler", LOOP: "the loop", GENERATOR: "a generator around the loader",
}  # fmt: skip
# By the call below a line of the loop: what is read or copied there, and what prepares no batch.
READS = re.compile(r"memmap|\b(open|read\w*|load|fromfile|frombuffer|seek|decode)\b")
COPIES = re.compile(r"\.(to|cuda|pin_memory|copy_|contiguous|clone|copy|numpy)$")
NO_INPUT = re.compile(r"\b(print|save|write|log|info|flush|update|add_scalar|sleep)$|^(logging|tqdm)\b")


@dataclass(frozen=True)
class LineShare:
    """A line, the call below it, and its share of some time."""

    place: str  # file and number
    call: str  # empty where the line itself computes
    phase: str  # dataset, collate, start, sampler or loop
    share: float  # 0 to 1
    own: bool = True  # of the user's code, and of no library

    @property
    def kind(self) -> str:
        """Whether a line of the loop reads, copies or prepares; empty where it does none of these."""
        if NO_INPUT.search(self.call):
            return ""
        return "reads" if READS.search(self.call) else "copies" if COPIES.search(self.call) else "prepares"

    @property
    def summary(self) -> str:
        """Name it in a few words: train.py:14, 71 %, in gzip.GzipFile.read."""
        below = f", in {self.call}" if self.call else ""
        return f"{self.place}, {percent(self.share, 0)}{below}"


@dataclass(frozen=True)
class JobLines:
    """What samples of the stacks of workers and loop show of one loop over a loader.

    Attributes
    ----------
    preparing : tuple of LineShare
        Of the time in which batches are prepared, by workers or without them by the loop, most first.
    loop : tuple of LineShare
        Of the loop's time, what its own thread does beside training and waiting.
    first : tuple of LineShare
        Of the time in which the loop waits for the first batch of a later pass.
    between : tuple of LineShare
        Of the time from the first pass to the end of the last one, what the loop's own thread does between
        two passes, while no loop is under way.
    working : tuple of float
        Share of its time in which each worker prepares, by its number.
    threads : int
        Threads of libraries that work in most workers beside their own; 0 where it is not known.
    queued : float
        Share of the time in which a worker has work and no core.
    pauses, loop_pauses : float
        Share of the time in which Python's garbage collector holds up a worker, and the loop.
    samples, loop_samples : int
        Of who prepares, and of the loop.
    stuck : tuple of LineShare
        Where the workers are while none of them sends a batch; empty where one did.
    reason : str
        Why the lines of workers are not known; empty if they are.
    """

    preparing: tuple[LineShare, ...] = ()
    loop: tuple[LineShare, ...] = ()
    first: tuple[LineShare, ...] = ()
    between: tuple[LineShare, ...] = ()
    working: tuple[float, ...] = ()
    threads: int = 0
    queued: float = 0.0
    pauses: float = 0.0
    loop_pauses: float = 0.0
    samples: int = 0
    loop_samples: int = 0
    stuck: tuple[LineShare, ...] = ()
    reason: str = ""

    @property
    def idle(self) -> int:
        """Workers that prepare next to nothing while another one is busy."""
        busiest = max(self.working, default=0.0)
        return sum(share < IDLE * busiest for share in self.working) if busiest >= BUSIEST else 0

    @property
    def apart(self) -> float:
        """Share of the time that goes between two passes, 0 to 1."""
        return sum(line.share for line in self.between)

    @property
    def apart_summary(self) -> str:
        """Say how much that is, and where most of it."""
        share, line = percent(self.apart), self.between[0].summary
        return f"Between two passes the loop's thread works for {share} of the time, mostly at {line}."

    @property
    def loop_work(self) -> tuple[LineShare, ...]:
        """The lines of the loop's own thread that prepare batches, or may, and that workers could do."""
        lines = self.loop if self.loop_samples >= MIN_SAMPLES else ()
        return tuple(
            line for line in lines
            if line.phase in (GENERATOR, LOOP) and line.own and line.kind in ("reads", "prepares")
        )  # fmt: skip

    @property
    def largest(self) -> LineShare | None:
        """The line that takes most of preparing a batch; None where too little was seen."""
        return self.preparing[0] if self.preparing and self.samples >= MIN_SAMPLES else None

    @property
    def statements(self) -> tuple[str, ...]:
        """Say at which lines most of the time goes; empty where too little was seen."""
        if self.reason:
            return (f"The lines of the workers are not known: {self.reason}.",)
        seen = self.preparing if self.samples >= MIN_SAMPLES else ()
        of = {"Lines that prepare": seen, "Lines of the loop": self.loop}
        named = tuple(f"{name}: {shown}." for name, lines in of.items() if (shown := _listed(lines)))
        return (*named, self.apart_summary) if self.apart >= SHOWN else named


def _listed(lines: tuple[LineShare, ...]) -> str:
    """Name the largest of some lines, and where they are; empty where none is large."""
    return "; ".join(f"{line.summary} ({WHERE[line.phase]})" for line in lines[:3] if line.share >= SHOWN)
