"""Checks of final answers, of the kind of the hidden ones: each draws figures that nobody has seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from ..model.parts import Accelerator, Handover, Packing, Samples, Workers
from ..pipeline import Pipeline
from ..units import Q_
from .checks import Answer, Credit, WrongAnswer, check
from .decisions import CHEAPEST, inside, judge, log_score, most_likely

# Adds parts to a credit, and returns sentences that say what nobody was told before.
Ending: TypeAlias = Callable[[Credit, Answer, Random], Sequence[str]]


def _twelve(compare: Callable[[], None]) -> None:
    for _ in range(12):
        compare()


def step_ends(prepare: list[float], step: float, workers: int, prefetch: int, start_up: float) -> list[float]:
    """Return when the step on each batch ends [ms], as the lab's own simulation says."""
    pipeline = Pipeline(
        batch_size=1,
        workers=Workers(workers, prefetch=prefetch, start_up=Q_(start_up, "ms")),
        hardware=Accelerator(rate=Q_(step, "ms"), in_flight=1),
    )
    ends: list[float] = (
        pipeline.simulate(prepare_times=Q_(prepare, "ms"), warm_up=0).trace().step_end.tolist()
    )
    return ends


def _step_ends(credit: Credit, answer: Answer, draw: Random) -> Sequence[str]:
    def compare() -> None:
        workers, prefetch = draw.randint(1, 6), draw.randint(1, 5)
        prepare = [round(draw.uniform(1, 25) * draw.choice((1, 1, 1, 8)), 3) for _ in range(40)]
        step, start_up = draw.randint(1, 35), draw.choice((0, 0, 70))
        right = step_ends(prepare, step, workers, prefetch, start_up)
        ends = list(answer(list(prepare), step, workers, prefetch, start_up))
        check(len(ends), len(prepare), what="the number of ends")
        for number, end in enumerate(ends):
            check(end, right[number], what=f"the end of step {number} of a random pipeline")

    credit.part(4, "twelve random pipelines", lambda: _twelve(compare))
    return ()


def _verdicts(credit: Credit, answer: Answer, _draw: Random) -> Sequence[str]:
    for box in "ABC":
        binds, _ = inside(box)
        _box(credit, answer, box, binds)
    return [inside(box)[1] for box in "ABC"]


def _box(credit: Credit, answer: Answer, box: str, binds: str) -> None:
    credit.part(1, f"what binds in box {box}", lambda: check(most_likely(answer()[box]), binds))
    credit.share(3, f"how sure of box {box}", lambda: log_score(answer()[box], binds))


def _my_design(credit: Credit, answer: Answer, _draw: Random) -> Sequence[str]:
    def idle() -> None:
        check(judge(answer()).obstacle, "none", what="what stands against this host")
        check(judge(answer()).idle, "none", what="what is idle in this host")

    def economy() -> float:
        check(judge(answer()).obstacle, "none", what="what stands against this host")
        return (2 - judge(answer()).dollars / CHEAPEST) / 0.95

    credit.part(2, "nothing idle", idle)
    credit.share(5, "the price beside the cheapest host", economy)
    return [f"The cheapest host that exists trains for {CHEAPEST:.2f} USD."]


def _slowest(credit: Credit, answer: Answer, draw: Random) -> Sequence[str]:
    def compare() -> None:
        hosts, steps = draw.sample(("ash", "beech", "elm", "fir", "oak", "yew"), draw.randint(3, 6)), 8
        arrives = {host: [draw.randint(30, 55) for _ in range(steps)] for host in hosts}
        late, price = draw.choice(hosts), Q_(draw.randint(1, 40), draw.choice(("USD/h", "USD/min")))
        # Slow on the whole; another host is once the last of all.
        arrives[late] = [draw.randint(62, 90) for _ in range(steps)]
        arrives[next(host for host in hosts if host != late)][draw.randrange(steps)] = 95
        last = [max(times) for times in zip(*arrives.values(), strict=True)]
        others = [times for host, times in arrives.items() if host != late]
        sooner = [max(times) for times in zip(*others, strict=True)]
        found = list(answer({host: list(times) for host, times in arrives.items()}, price))
        check(len(found), 2, what="the number of values")
        check(found[0], late, what="the slow host")
        saved = len(hosts) * price * (1 - sum(sooner) / sum(last))
        check(found[1], saved, what="what it costs")

    credit.part(2, "twelve random jobs", lambda: _twelve(compare))
    return ()


def _my_script(credit: Credit, answer: Answer, draw: Random) -> Sequence[str]:
    from ..measure import training_script as script

    width, height = draw.randrange(520, 900, 4), draw.randrange(400, 700, 4)

    def twice() -> None:
        mine = script.what_it_does(answer(), width, height)
        check(script.changed_training(mine), "nothing", what="what your script changes of the training")
        starved = script.simulated_throughput(script.starved_counts(width, height))
        faster = bool(script.simulated_throughput(mine) >= 2 * starved)
        check(faster, True, what="whether the throughput is twice what it was")

    credit.part(3, f"twice the throughput with images of {width} x {height} pixels", twice)
    return ()


def _workers_needed(credit: Credit, answer: Answer, draw: Random) -> Sequence[str]:
    def compare() -> None:
        # So many workers are exactly enough, and whole numbers make the products exact.
        workers, cpu_time = draw.randint(2, 40), draw.choice((4, 5, 8, 10, 20, 25, 40, 50))
        rate, units, stored = workers * 1000 // cpu_time, draw.randint(1, 900), draw.randint(1, 30)

        def found(more: float = 1, drive: float = 1) -> Answer:
            asked = (Q_(rate * units * more, "1/s"), units, Q_(stored, "MB"), Q_(cpu_time, "ms"))
            return answer(*asked, Q_(rate * stored * drive, "MB/s"))

        check(found(), workers, what="the workers where workers and drive are exactly enough")
        check(found(1 + 0.5 / workers, 2), workers + 1, what="the workers where some are half a worker short")
        if found(drive=0.9) is not None:
            raise WrongAnswer("The drive cannot deliver, and no number of workers helps: return None.")

    credit.part(2, "twelve kinds of data", lambda: _twelve(compare))
    return ()


def _useful_tokens(credit: Credit, answer: Answer, draw: Random) -> Sequence[str]:
    def compare() -> None:
        # So many documents are as many equal parts as the package counts.
        lengths = [round(20 * 75 ** draw.random()) for _ in range(draw.choice((4, 5, 8)))]
        row, full, rows = draw.choice((128, 256, 512, 1024)), draw.random() < 0.5, draw.randint(2, 64)
        tokenize = Q_(draw.randint(1, 50) / 10, "ms")
        pack, gpu = (Q_(draw.randint(1, 60), "ms") for _ in range(2))
        packing = Packing("split" if full else "padded", length=row, lengths=lengths)
        text = Samples(cpu_time=tokenize, packing=packing)
        crew = Workers(1, handover=Handover(loop=pack))
        step = Pipeline(dataset=text, batch_size=rows, workers=crew, hardware=Accelerator(rate=gpu)).solve()
        assert step.useful_tokens is not None
        right = Q_(float(step.useful_tokens.m_as("token/s")), "1/s")
        found = answer(list(lengths), row, full, rows, tokenize, pack, gpu)
        check(found, right, what="the useful tokens of a random text")

    credit.part(2, "twelve random texts", lambda: _twelve(compare))
    return ()


def _repair_gain(credit: Credit, answer: Answer, draw: Random) -> Sequence[str]:
    def compare() -> None:
        parts = {name: draw.randint(2, 80) for name in draw.sample(("read", "decode", "crop", "blur"), 3)}
        repaired, factor = draw.choice(list(parts)), draw.randint(2, 9)
        workers, cores, step = draw.randint(1, 9), draw.randint(1, 9), draw.randint(1, 60)
        saved = parts[repaired] * (1 - 1 / factor)
        before, after = (
            max(time / min(workers, cores), step)
            for time in (sum(parts.values()), sum(parts.values()) - saved)
        )
        found = answer(dict(parts), repaired, factor, workers, cores, step)
        check(found, before / after, what="the gain of a random repair")

    credit.part(2, "twelve random repairs", lambda: _twelve(compare))
    return ()


# By the id of the answer's cell: the points that hidden checks give, and the checks.
ENDINGS: dict[str, tuple[int, Ending]] = {
    "step-ends": (4, _step_ends),
    "verdicts": (12, _verdicts),
    "my-design": (7, _my_design),
    "slowest": (2, _slowest),
    "my-script": (3, _my_script),
    "workers-needed": (2, _workers_needed),
    "useful-tokens": (2, _useful_tokens),
    "repair-gain": (2, _repair_gain),
}
