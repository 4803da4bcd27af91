"""What the cases of the clinic are like: keys that no two share, likely mistakes, difficulty, faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from statistics import median, quantiles
from time import perf_counter

from starvelab.lesson.course.faults import FAULTS
from starvelab.lesson.course.practice import Case, clinic

from .report import machine, number, options
from .results import save

CLASS = 300
# More than can look bad in one case.
REFLEXES = ("num_workers", "pin_memory", "autocast", "cpus", "mem", "folder")


def likely_mistakes(case: Case) -> dict[str, tuple[str, ...]]:
    """Answers that are likely and wrong, by what is wrong with them."""
    best, looks_bad = case.best, [name for name in case._sizes if name not in case._faults]
    halves = {"the hidden one is missed": best[:1], "what binds is missed": best[1:]}
    return {
        "what looks bad": tuple(looks_bad[: case.faults]),
        "by reflex": (next(name for name in REFLEXES if name not in case._sizes),),
        "one of them, and what looks bad": (*best[: case.faults - 1], looks_bad[0]),
        **(halves if case.faults > 1 else {}),
    }


def survey(seeds: Iterable[int]) -> dict[str, list]:
    """Of each case: its key, its faults, what they take, and what the best cures and a mistake win back.

    Of the cures in the best order it is the least that one wins back, of likely mistakes the most.
    """
    names = ("key", "faults", "lost", "won", "mistake", "seconds")
    found: dict[str, list] = {name: [] for name in names}
    for seed in seeds:
        start = perf_counter()
        case = clinic(seed)
        found["seconds"].append(perf_counter() - start)
        *_, before, after = case._key
        won = [case.treated(changes) for changes in likely_mistakes(case).values()]
        found["key"].append(case._key)
        found["faults"].append(tuple(sorted(case._faults)))
        found["lost"].append(1 - before / after)
        found["won"].append(min(case.treated(case.best).won))
        found["mistake"].append(max(treatment.score for treatment in won))
    return found


def alike(keys: Sequence[object]) -> int:
    """How many keys stand for more than one case."""
    return sum(count > 1 for count in Counter(keys).values())


def main(arguments: Sequence[str] | None = None) -> None:
    asked = options(__doc__, seeds=(10_000, 3)).parse_args(arguments)
    parts = [range(i, min(i + CLASS, asked.seeds)) for i in range(0, asked.seeds, CLASS)]
    with ProcessPoolExecutor() as pool:
        surveys = list(pool.map(survey, parts))
    found = {name: [value for part in surveys for value in part[name]] for name in surveys[0]}
    print(machine())
    print(f"{number(asked.seeds, 5)} cases, {1e3 * median(found['seconds']):.0f} ms each")
    print(f"keys that two cases share: {alike(found['key'])}")
    same = max(max(Counter(part["faults"]).values()) for part in surveys)
    print(f"in a class of {CLASS}, the same faults, of other sizes: {same} at most")
    print(f"one fault: {sum(len(names) == 1 for names in found['faults'])}")
    print(f"different sets of faults: {len({*found['faults']})}")
    ends = f"{100 * min(found['lost']):.0f} to {100 * max(found['lost']):.0f} %"
    middle = " to ".join(f"{100 * x:.0f}" for x in quantiles(found["lost"], n=4)[::2])
    print(f"lost: {ends}, half of them {middle} %")
    print(f"the most that a likely mistake wins back: {100 * max(found['mistake']):.1f} %")
    counts = Counter(name for names in found["faults"] for name in names)
    print("\n".join(f"{name:<16}{counts[name]:>6}" for name in FAULTS))
    save(
        "clinic",
        f"cases of the clinic, {number(asked.seeds, 5)} of them",
        f"{1e3 * median(found['seconds']):.0f} ms each; {alike(found['key'])} keys are shared by two",
    )


if __name__ == "__main__":
    main()
