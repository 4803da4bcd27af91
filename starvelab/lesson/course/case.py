"""A case of the clinic: its script, its evidence, a guess, three cures, and a key that says why.

A case is a `Pipeline` with faults. What a cure brings is simulated: mean rates know of no late batches.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import pairwise, permutations
from typing import Any, ClassVar

from ...errors import InputError, check_names
from ...model.resources import CPU, STORAGE
from ...pipeline import Pipeline
from ...tables import HINT, TableRepr, count_of, paragraph, percent, to_html, to_text
from ...units import Q_, Quantity
from ..show import svg
from .faults import FAULTS, HOW, PLACES, SCRIPT, UNITS, digits, value_at
from .why import reason

# How difficult a case is; shares of the throughput without its faults, or of what they take of it.
LOST = (0.25, 0.92)  # what all faults take together
EACH_LOST = 0.12  # what each of them takes alone, at least
EACH_WON = 0.1  # what each cure wins back of it, at least, where what binds is cured first
HARMLESS = 0.02  # what all lines that only look bad may change, at most
RUN = {"batches": 140, "epoch_batches": 60, "replicas": 4, "warm_up": 20}
CURES = 3  # that may be tried between a guess and its key
HEADERS = ("what tools show", "value")


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
    """

    sizes: Mapping[str, str]
    throughputs: tuple[Quantity, ...]
    won: tuple[float, ...]
    note: str = ""

    headers: ClassVar[tuple[str, ...]] = ("change", "size", "throughput", "won back")

    @property
    def score(self) -> float:
        """The share of the lost throughput that all changes win back, 0 to 1."""
        return min(1.0, max(0.0, sum(self.won)))

    @property
    def summary(self) -> str:
        """What all changes win back, in one line."""
        return f"{percent(self.score, 0)} of the lost throughput is won back"

    @property
    def rows(self) -> list[list[object]]:
        """The script as it was, and one row for each change."""
        won = ["", *(percent(share, 0) for share in self.won)]
        columns = (("none", *self.sizes), ("", *self.sizes.values()), self.throughputs, won)
        return [list(row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True, repr=False)
class Key(Treatment):
    """The faults of a case in the best order of cures, and why a batch takes as long before each of them.

    Attributes
    ----------
    guessed : float
        The share that the locked guess wins back.
    reasons : tuple of str
        For the script as it was, and after each cure.
    """

    guessed: float = 0.0
    reasons: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """What the guess and the key win back, in one line."""
        shares = percent(self.guessed, 0), percent(self.score, 0)
        return "Your guess wins back {} of the lost throughput, and the key {}".format(*shares)


class Case:
    """A training script that starves: what it says, what tools show of it, and what a cure brings.

    A notebook shows it whole. `seed` is its number, and `faults` says how many of its lines starve.
    """

    def __init__(self, seed: int, host: Mapping[str, Any], sizes: Mapping[str, Any], faults: Sequence[str]):
        self.seed, self.faults, self._host = seed, len(faults), host
        self._sizes, self._faults = sizes, tuple(faults)  # of the lines that look bad; which of them starve
        self._rates: dict[frozenset[str], float] = {}
        self._guess: tuple[str, ...] = ()
        self._tried: list[tuple[str, ...]] = []
        self._ended = False

    @property
    def changes(self) -> dict[str, str]:
        """The possible changes, by the name that follows a line of the script."""
        return {name: fault.cure for name, fault in FAULTS.items() if self._line(name)}

    @property
    def script(self) -> str:
        """The text of the script; each line that can be cured is followed by its name."""
        lines = {name: self._line(name) for name in FAULTS}

        def named(found: re.Match[str]) -> str:
            indent, name = found.groups()
            return f"{indent + lines[name]:<76}# [{name}]\n" if lines[name] else ""

        return re.sub(r"( *)<(\w+)>\n", named, SCRIPT.format_map({**self._host, **PLACES}))

    def evidence(self, *changes: str) -> dict[str, object]:
        """Return what tools show while the script runs, or after the changes of a cure that was tried."""
        self._check(changes)
        if (
            changes
            and not self._ended
            and all({*changes} != {*cure[:n]} for cure in self._tried for n in (1, 2))
        ):
            raise InputError(
                f"Tools show what a script does after changes that were tried, got {', '.join(changes)}. "
                f"Call cure({', '.join(map(repr, changes))}) first."
            )
        broken, host, lines = {*self._sizes} - {*changes}, self._host, FAULTS.items()
        pipeline = self._pipeline(broken)
        run = pipeline.simulate(**RUN)
        solved, rate, step = pipeline.solve(), run.throughput, Q_(host["batch"], "sample") / run.throughput
        busy = {name: percent(min(1.0, (t / step).m_as(""))) for name, t in solved.resource_times.items()}
        copies = [time for name, time in solved.stage_times.items() if name.endswith("copy")]
        read = (1 - value_at(pipeline, "storage.cache.share")) * rate * pipeline.size / Q_("1 sample")
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

    def guess(self, *names: str) -> str:
        """Lock a guess: the lines that starve the script, and first the one that binds.

        Parameters
        ----------
        *names : str
            Names of lines, as many as there are faults.

        Returns
        -------
        str
            What is locked.

        Raises
        ------
        InputError, UnknownNameError
        """
        self._check(names)
        if len(names) != self.faults:
            raise InputError(
                f"A guess of case {self.seed} names {count_of(self.faults, 'line')}, as many as starve it, "
                f"got {len(names)}. Begin with the one that binds."
            )
        if self._guess and names != self._guess:
            raise InputError(
                f"Case {self.seed} has a locked guess, {', '.join(self._guess)}. "
                "Try a cure, or take another case."
            )
        self._guess = names
        return f"Locked: {', '.join(names)}. You may try {count_of(CURES, 'cure')}, and then ask for the key."

    def cure(self, *changes: str) -> Treatment:
        """Change lines, one after the other, and see what share of the lost throughput each wins back.

        Parameters
        ----------
        *changes : str
            Names of lines, at most as many as there are faults; what binds comes first.

        Raises
        ------
        InputError, UnknownNameError
            Before a guess is locked, after three cures, and once the key is shown.
        """
        if not 1 <= len(changes) <= self.faults:
            raise InputError(
                f"A cure of case {self.seed} changes 1 to {self.faults} lines, as many as starve it, "
                f"got {len(changes)}. Name those that win the most."
            )
        self._check(changes)
        if not self._guess:
            raise InputError(
                f"A guess comes before a cure, and case {self.seed} has none. "
                f"Lock one first: case.guess({', '.join(map(repr, changes))})."
            )
        if changes not in self._tried:
            if self._ended or len(self._tried) == CURES:
                used = "Its key has been shown" if self._ended else f"{CURES} were tried"
                raise InputError(
                    f"Case {self.seed} has {CURES} cures between a guess and the key. {used}. "
                    f"{'Take another case, by another number.' if self._ended else 'Ask for case.key().'}"
                )
            self._tried.append(changes)
        return self.treated(changes, self._message(changes))

    def key(self) -> Key:
        """Return the faults, what binds first, and why a batch takes as long as it does. This ends the case.

        Raises
        ------
        InputError
            Before a guess is locked.
        """
        if not self._guess:
            raise InputError(
                f"The key is shown after a guess, and case {self.seed} has none. "
                "Lock one first: case.guess(...)."
            )
        self._ended = True
        key = self.treated(self.best)
        broken = [{*self._sizes} - {*self.best[:count]} for count in range(self.faults + 1)]
        times = [Q_(self._host["batch"], "sample") / rate for rate in key.throughputs]
        reasons = tuple(map(reason, map(self._pipeline, broken), times))
        states = ("As it is", *(f"With {name} cured" for name in self.best))
        why = (f"{state}, {because}" for state, because in zip(states, reasons, strict=True))
        note = " ".join((*why, *(f"{name}: {FAULTS[name].cure}" for name in self.best)))
        return Key(key.sizes, key.throughputs, key.won, note, self.treated(self._guess).score, reasons)

    def __repr__(self) -> str:
        return "\n\n".join((self._summary, self.script, to_text(HEADERS, [*self.evidence().items()])))

    def _repr_html_(self) -> str:
        seen = self.evidence()
        shares = {what: float(str(value)[:-2]) / 100 for what, value in seen.items() if "%" in str(value)}
        bars = svg.share_bars({k.partition(": ")[2]: v for k, v in shares.items()}, title=self._summary)
        script = f'<pre style="font-family:monospace">{escape(self.script)}</pre>'
        wide = (f'{HINT}<div style="overflow-x:auto">{part}</div>' for part in (script, bars))
        return f"{paragraph(self._summary)}{''.join(wide)}{to_html(HEADERS, [*seen.items()])}"

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
        binds = self.best[0]
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
            well = None if fault.how == "set" else value_at(self._host["pipeline"], fault.path)
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
    def best(self) -> tuple[str, ...]:
        """The faults in the order in which curing them wins the most at first."""
        return max(permutations(self._faults), key=lambda order: self._rate(order[:1]))

    def treated(self, changes: Sequence[str], note: str = "") -> Treatment:
        """Return what these changes win back, one after the other."""
        rates = [self._rate(changes[:count]) for count in range(len(changes) + 1)]
        lost = self._rate(self._faults) - rates[0]
        won = tuple((after - before) / lost for before, after in pairwise(rates))
        sizes = {n: FAULTS[n].shown(self._sizes[n]) if n in self._sizes else "" for n in changes}
        return Treatment(sizes, tuple(Q_(rate, "sample/s") for rate in rates), won, note)

    @property
    def _key(self) -> tuple[object, ...]:
        """The faults with their sizes, and the throughput [sample/s] with and without them: three digits."""
        sizes = sorted((name, self._sizes[name]) for name in self._faults)
        return (*sizes, digits(self._rate()), digits(self._rate(self._faults)))

    def is_fair(self) -> bool:
        """True if the case is as difficult as a case should be."""
        harmless, broken, good = {*self._sizes} - {*self._faults}, self._rate(), self._rate(self._faults)
        return (
            bool(harmless)
            and LOST[0] <= 1 - broken / good <= LOST[1]
            and abs(self._rate(self._sizes) / good - 1) <= HARMLESS
            and abs(self._rate(harmless) / broken - 1) <= HARMLESS
            and min(self.treated(self.best).won) >= EACH_WON
            and all(self._rate({*self._sizes} - {n}) <= (1 - EACH_LOST) * good for n in self._faults)
        )
