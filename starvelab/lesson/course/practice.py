"""A clinic: training scripts that starve, each drawn by a number, to find out what is wrong, and to cure it.

A case is a `Pipeline` with faults. What a cure brings is simulated: mean rates know of no late batches.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from html import escape
from itertools import pairwise, permutations
from operator import add, mul
from pathlib import Path
from random import Random
from typing import Any

from ... import runtime
from ...errors import InputError, check_names
from ...model import parts
from ...model.assumptions import PUBLISHED
from ...model.groups import Links
from ...model.resources import CPU, STORAGE
from ...pipeline import Pipeline
from ...tables import TableRepr, cell, paragraph, percent, to_html, to_text
from ...units import Q_, Quantity
from ..show import svg

__all__ = ["Case", "Treatment", "clinic", "own_case"]

# Where a grader says what number the course has for whoever is graded.
OWN_NUMBER = "own_number.txt"

# How difficult a case is; shares of the throughput without its faults, or of what they take of it.
LOST = (0.25, 0.92)  # what all faults take together
EACH_LOST = 0.12  # what each of them takes alone, at least
EACH_WON = 0.1  # what each cure wins back of it, at least, where what binds is cured first
HARMLESS = 0.02  # what all lines that only look bad may change, at most
RUN = {"batches": 140, "epoch_batches": 60, "replicas": 4, "warm_up": 20}
HEADERS = ("what tools show", "value")
HOW = {"set": lambda _, size: size, "add": add, "times": mul}


@dataclass(frozen=True)
class Fault:
    """A line of the script that may be wrong, and what that changes of the pipeline; see faults.toml."""

    name: str
    good: str
    bad: str
    path: str
    how: str
    cure: str
    unit: str = ""
    value: Any = None
    of: str = ""
    sizes: Sequence[float] = ()
    whole: bool = False
    shows: str = ""

    def size(self, random: Random, host: Mapping[str, Any], *, harmless: bool) -> Any:
        """Draw how large it is, to three digits; None if it has no harmless size."""
        if self.value is not None:
            return self.value
        *small, least, most = self.sizes
        if harmless and not small:
            return None
        share = small[0] if harmless else random.uniform(least**0.5, most**0.5) ** 2
        size = share * (host[self.of] if self.of else 1) / (1000 if self.unit == "s" else 1)
        return round(size) if self.whole else _digits(size)

    def shown(self, size: Any) -> str:
        """A size as a table has it."""
        return cell(Q_(size, self.unit) if self.unit and self.how != "times" else size)


_DATA = tomllib.loads(Path(__file__).with_name("faults.toml").read_text(encoding="utf-8"))
FAULTS = {name: Fault(name=name, **row) for name, row in _DATA["fault"].items()}
UNITS = {fault.path: fault.unit for fault in FAULTS.values() if fault.unit}
SCRIPT, PLACES = _DATA["script"].lstrip(), {name: f"<{name}>" for name in FAULTS}


@dataclass(frozen=True, repr=False)
class Treatment(TableRepr):
    """What changes of a script win back.

    Attributes
    ----------
    sizes : mapping of str
        How large each changed fault was, by its name; "" for a line that was as it should be.
    throughputs : tuple of quantity [sample/time]
        Before the changes, and after each.
    won : tuple of float
        By each change, as a share of the lost throughput.
    note : str
        The likeliest mistake, or the cures of a key.
    answer : float, optional
        Of a key, the share that the answer to it wins back.
    """

    sizes: Mapping[str, str]
    throughputs: tuple[Quantity, ...]
    won: tuple[float, ...]
    note: str = ""
    answer: float | None = None

    headers = ("change", "size", "throughput", "won back")

    @property
    def score(self) -> float:
        """The share of the lost throughput that all changes win back, 0 to 1."""
        return min(1.0, max(0.0, sum(self.won)))

    @property
    def summary(self) -> str:
        """What all changes win back, in one line."""
        score = percent(self.score, 0)
        if self.answer is None:
            return f"{score} of the lost throughput is won back"
        return f"Your answer wins back {percent(self.answer, 0)} of the lost throughput, and the key {score}"

    @property
    def rows(self) -> list[list[object]]:
        """The script as it was, and one row for each change."""
        won = ["", *(percent(share, 0) for share in self.won)]
        columns = (("none", *self.sizes), ("", *self.sizes.values()), self.throughputs, won)
        return [list(row) for row in zip(*columns, strict=True)]


class Case:
    """A training script that starves: what it says, what tools show of it, and what a cure brings.

    A notebook shows it whole. `seed` is its number, and `faults` says how many of its lines starve.
    """

    def __init__(self, seed: int, host: Mapping[str, Any], sizes: Mapping[str, Any], faults: Sequence[str]):
        self.seed, self.faults, self._host = seed, len(faults), host
        self._sizes, self._faults = sizes, tuple(faults)  # of the lines that look bad; which of them starve
        self._rates: dict[frozenset[str], float] = {}
        self._locked = False

    @property
    def changes(self) -> dict[str, str]:
        """What can be changed, and how: by the name that stands behind a line of the script."""
        return {name: fault.cure for name, fault in FAULTS.items() if self._line(name)}

    @property
    def script(self) -> str:
        """The text of the script; behind a line stands the name under which it is cured."""
        lines = {name: self._line(name) for name in FAULTS}

        def named(found: re.Match[str]) -> str:
            indent, name = found.groups()
            return f"{indent + lines[name]:<76}# [{name}]\n" if lines[name] else ""

        return re.sub(r"( *)<(\w+)>\n", named, SCRIPT.format_map({**self._host, **PLACES}))

    def evidence(self, *changes: str) -> dict[str, object]:
        """Return what tools show while the script runs, or would show after these changes."""
        self._check(changes)
        broken, host, lines = {*self._sizes} - {*changes}, self._host, FAULTS.items()
        pipeline = self._pipeline(broken)
        run = pipeline.simulate(**RUN)
        solved, rate, step = pipeline.solve(), run.throughput, Q_(host["batch"], "sample") / run.throughput
        busy = {name: percent(min(1.0, (t / step).m_as(""))) for name, t in solved.resource_times.items()}
        copies = [time for name, time in solved.stage_times.items() if name.endswith("copy")]
        read = (1 - _value(pipeline, "storage.cache.share")) * rate * pipeline.size / Q_("1 sample")
        return {
            "throughput": rate,
            "nvidia-smi: GPU busy": percent(run.utilization),
            "nsys: kernels, for each step": run.utilization * step.to("ms"),
            "nsys: the copy of a batch": copies[0].to("ms"),
            "a timer: waits in next()": percent(run.host_wait),
            "top: workers busy": busy[CPU.name],
            "iostat: drives busy": busy[STORAGE.name],
            "iostat: drives deliver": read.to("MB/s"),
            "py-spy: a worker, for each image, in all that is not named below": Q_(host["sample"], "ms"),
            **{f"py-spy: {f.shows}": f.shown(self._sizes[n]) for n, f in lines if n in broken and f.shows},
            "a timer: workers start within": Q_(host["start_up"] * host["step"] / 1000, "s"),
        }

    def cure(self, *changes: str) -> Treatment:
        """Change lines, one after the other, and see what share of the lost throughput each wins back.

        Parameters
        ----------
        *changes : str
            Names of lines, at most as many as there are faults; what binds comes first.

        Raises
        ------
        InputError, UnknownNameError
        """
        if self._locked:
            raise InputError(f"Case {self.seed} has a locked answer. Take another case, by another number.")
        if not 1 <= len(changes) <= self.faults:
            raise InputError(
                f"A cure of case {self.seed} changes 1 to {self.faults} lines, as many as starve it, "
                f"got {len(changes)}. Name those that win the most."
            )
        self._check(changes)
        return self._treated(changes, self._message(changes))

    def lock(self, *changes: str) -> Treatment:
        """Answer for good, with the changes of a `cure`, and see the key: the faults, what binds first."""
        answer, self._locked = self.cure(*changes), True
        cures = " ".join(f"{name}: {FAULTS[name].cure}" for name in self._best)
        return replace(self._treated(self._best, cures), answer=answer.score)

    def __repr__(self) -> str:
        return "\n\n".join((self._summary, self.script, to_text(HEADERS, [*self.evidence().items()])))

    def _repr_html_(self) -> str:
        seen = self.evidence()
        shares = {what: float(str(value)[:-2]) / 100 for what, value in seen.items() if "%" in str(value)}
        bars = svg.share_bars({k.partition(": ")[2]: v for k, v in shares.items()}, title=self._summary)
        script = f'<pre style="font-family:monospace">{escape(self.script)}</pre>'
        return f"{paragraph(self._summary)}{script}{bars}{to_html(HEADERS, [*seen.items()])}"

    @property
    def _summary(self) -> str:
        lines = "one line starves" if self.faults == 1 else f"{self.faults} lines starve"
        return f"Case {self.seed}: {lines} the GPU. Others only look bad."

    def _line(self, name: str) -> str:
        size, fault = self._sizes.get(name), FAULTS[name]
        return (fault.good if size is None else fault.bad).format_map({**self._host, "size": size})

    def _check(self, changes: Sequence[str]) -> None:
        check_names(changes, self.changes, f"Case {self.seed}", kind="line")
        if len({*changes}) < len(changes):
            raise InputError(f"Each line is changed once, got {', '.join(changes)}. Name it once.")

    def _message(self, changes: Sequence[str]) -> str:
        """Say what the likeliest mistake is."""
        binds = self._best[0]
        if {*changes} == {*self._faults}:
            later = f" Until {binds} is cured, the other wins less." if changes[0] != binds else ""
            return f"All that was lost is back.{later}"
        for name in changes:
            if name not in self._sizes:
                return f"{name} is as it should be: a change of it wins nothing."
            if name not in self._faults:
                return f"{name} looks bad, and costs next to nothing here: compare its time with a step's."
        if binds not in changes:
            return f"{changes[0]} is a fault, and another one hides it: what does each step wait for?"
        return "What bound is cured, and another fault binds now: see `evidence` after this change."

    def _pipeline(self, broken: Collection[str]) -> Pipeline:
        """The pipeline in which these lines are as the script has them, and all others well."""
        values: dict[str, Any] = {}
        for fault in (FAULTS[name] for name in FAULTS if name in broken):
            well = None if fault.how == "set" else _value(self._host["pipeline"], fault.path)
            values[fault.path] = HOW[fault.how](values.get(fault.path, well), self._sizes[fault.name])
        units = {path: Q_(value, UNITS[path]) for path, value in values.items() if path in UNITS}
        pipeline: Pipeline = self._host["pipeline"].replace({**values, **units})
        return pipeline

    def _rate(self, cured: Iterable[str] = ()) -> float:
        """The throughput after these changes [sample/s]."""
        if (broken := frozenset(self._sizes).difference(cured)) not in self._rates:
            run = self._pipeline(broken).simulate(**RUN)
            self._rates[broken] = float(run.throughput.m_as("sample/s"))
        return self._rates[broken]

    @cached_property
    def _best(self) -> tuple[str, ...]:
        """The faults in the order in which curing them wins the most at first."""
        return max(permutations(self._faults), key=lambda order: self._rate(order[:1]))

    def _treated(self, changes: Sequence[str], note: str = "") -> Treatment:
        """What these changes win back, one after the other."""
        rates = [self._rate(changes[:count]) for count in range(len(changes) + 1)]
        lost = self._rate(self._faults) - rates[0]
        won = tuple((after - before) / lost for before, after in pairwise(rates))
        sizes = {n: FAULTS[n].shown(self._sizes[n]) if n in self._sizes else "" for n in changes}
        return Treatment(sizes, tuple(Q_(rate, "sample/s") for rate in rates), won, note)

    @property
    def _key(self) -> tuple[object, ...]:
        """The faults with their sizes, and the throughput [sample/s] with and without them: three digits."""
        sizes = sorted((name, self._sizes[name]) for name in self._faults)
        return (*sizes, _digits(self._rate()), _digits(self._rate(self._faults)))

    def _is_fair(self) -> bool:
        """True if the case is as difficult as a case should be."""
        harmless, broken, good = {*self._sizes} - {*self._faults}, self._rate(), self._rate(self._faults)
        return (
            bool(harmless)
            and LOST[0] <= 1 - broken / good <= LOST[1]
            and abs(self._rate(self._sizes) / good - 1) <= HARMLESS
            and abs(self._rate(harmless) / broken - 1) <= HARMLESS
            and min(self._treated(self._best).won) >= EACH_WON
            and all(self._rate({*self._sizes} - {n}) <= (1 - EACH_LOST) * good for n in self._faults)
        )


def clinic(seed: int) -> Case:
    """Return the case of a number: the same one for the same number, everywhere.

    Parameters
    ----------
    seed : int
        Any whole number from 0.

    Raises
    ------
    InputError

    Examples
    --------
    >>> from starvelab.lesson.course.practice import clinic
    >>> case = clinic(7)
    >>> round(case.cure("num_workers").score, 2)
    0.0
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"A case has a whole number from 0, got {seed!r:.80}. Pass for example clinic(7).")
    random = Random(seed)
    while not (case := _drawn(seed, random))._is_fair():
        pass
    return case


def own_case(number: int) -> Case:
    """Return the case of a learner's own number, which no other number of a course shares.

    While it is graded in a course that gives each student a number, this is the case of that number only.

    Parameters
    ----------
    number : int
        The number that your course has given you.

    Raises
    ------
    InputError
    """
    case, path = clinic(number), Path(OWN_NUMBER)
    if runtime.current().is_grading and path.is_file() and (given := int(path.read_text())) != number:
        raise InputError(
            f"Your course has given you the number {given}, and this answer is for case {number}. "
            "Answer for the case of your own number."
        )
    return case


def _drawn(seed: int, random: Random) -> Case:
    """Draw a host, one or two faults, and some lines that only look like faults."""
    host = _host(random)
    names = random.sample(sorted(FAULTS), random.choice((3, 4, 5)))
    # A fault that has only one size needs another one beside it, so that no two cases have the same key.
    faults = names[: random.choice((1, 2, 2, 2)) if FAULTS[names[0]].value is None else 2]
    sizes = {name: FAULTS[name].size(random, host, harmless=name not in faults) for name in names}
    return Case(seed, host, {name: size for name, size in sizes.items() if size is not None}, faults)


def _host(random: Random) -> dict[str, Any]:
    """Draw figures of a host, and its pipeline, in which the accelerator binds; times in ms."""
    cores, batch = random.choice((8, 12, 16, 24, 32)), random.choice((8, 12, 16, 24, 32, 48))
    rate = _digits(random.uniform(60, 400))
    link = random.choice((Links.PCIe3_x16, Links.PCIe4_x16, Links.PCIe5_x16))
    step, sample = 1000 * batch / rate, _digits(650 * cores / rate / random.uniform(1.3, 1.8))
    transfer = _digits(link.bandwidth_pinned_sustained.m_as("MB/s") / rate * random.uniform(0.2, 0.6))
    size, cached = _digits(random.uniform(1, 9)), _digits(random.uniform(0.6, 0.9))
    drive = _digits(size * rate * (1 - cached) / 4 * random.uniform(1.3, 2.2))
    start_up, none = _digits(random.uniform(8, 40)), Q_("0 ms")  # in steps
    samples = parts.Samples(
        size=Q_(size, "MB"), cpu_time=Q_(sample, "ms"), on_device=parts.OnDevice(none),
        transfer=Q_(transfer, "MB"),
        jitter=parts.Jitter(slow_share=1 / 8 / batch, slow_time=Q_(step / 2000, "s")),
    )  # fmt: skip
    workers = parts.Workers(
        cores, cores=cores, kind="processes", start_up=Q_(start_up * step, "ms"), persistent=True,
        handover=parts.Handover(worker=Q_(sample * batch / 100, "ms"), loop=Q_(step / 50, "ms")),
    )  # fmt: skip
    pipeline = Pipeline(
        batch_size=batch, dataset=samples, workers=workers, link=parts.Link(link), assumptions=PUBLISHED,
        storage=parts.Drive(
            Q_(drive, "MB/s"), count=4, requests=parts.Requests(none), cache=parts.Cache(cached)
        ),
        hardware=parts.Accelerator(rate=Q_(rate, "sample/s"), host=parts.Host(none), step_overhead=none),
    )  # fmt: skip
    return {
        "cores": cores, "batch": batch, "batch_work": sample * batch, "pipeline": pipeline,
        "sample": sample, "side": round((1e6 * transfer / 3) ** 0.5), "start_up": start_up,
        "step": step, "step_sample": step / batch, "transfer": transfer,
    }  # fmt: skip


def _digits(value: float) -> float:
    return float(f"{value:.3g}")


def _value(pipeline: Pipeline, path: str) -> float:
    """A field of a pipeline by its path, in the unit in which sizes of faults are drawn."""
    value: Any = reduce(getattr, path.split("."), pipeline)
    return float(value.m_as(UNITS[path]) if isinstance(value, Quantity) else value)
