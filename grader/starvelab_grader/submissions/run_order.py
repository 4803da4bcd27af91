"""The order in which the cells of a notebook run, wherever a student has put them.

Cells that stand in the instructor's order run as they stand. Otherwise set-ups run first, and a check runs
after its answers; what the student added runs at its own place.
"""

from collections.abc import Sequence

from nbformat import NotebookNode

from .reference import ReferenceNotebook, is_test, loaded, name_of


def run_order(cells: Sequence[NotebookNode], reference: ReferenceNotebook) -> list[NotebookNode]:
    """Return the code cells of a student's notebook in the order in which they run.

    A cell waits for those that it needs and that stand below it. Once they have run it runs before the
    instructor's next cell: what a student added right behind an answer runs before the answer's check.
    """
    rank = {name: number for number, name in enumerate(reference.cells)}
    # By position in the student's notebook, the place in the instructor's.
    places = {at: rank[name] for at, cell in enumerate(cells) if (name := name_of(cell)) in rank}
    left = list(places.values())  # of the cells that have not run
    if left == sorted(left):
        return list(cells)
    needs, order = _needs(reference), list[int]()
    set_ups = [at for at in places if reference.is_locked(cells[at]) and not is_test(cells[at])]
    waiting = sorted(set_ups, key=places.__getitem__)

    def is_ready(at: int) -> bool:
        return needs[places[at]].isdisjoint(left)

    def run(at: int) -> None:
        waiting.remove(at)
        left.remove(places[at])
        order.append(at)

    def run_ready() -> None:
        while ready := list(filter(is_ready, sorted(waiting, key=places.__getitem__))):
            run(ready[0])

    run_ready()
    for at in range(len(cells)):
        if at not in places:
            order.append(at)
        elif at not in set_ups:
            run_ready()
            waiting.append(at)
            if is_ready(at):
                run(at)
    run_ready()
    return [cells[at] for at in order]


def _needs(reference: ReferenceNotebook) -> list[set[int]]:
    """Return, for each cell of the instructor's, the places of those that run before it.

    A set-up needs all before it, and a test the set-ups and the answers. An answer needs the set-ups, the
    answers whose names it uses or defines anew, and the tests that use what it defines anew.
    """
    cells = list(reference.cells.items())
    return [
        {earlier for earlier in range(place) if _is_needed(cells[earlier], cells[place], reference)}
        for place in range(len(cells))
    ]


def _is_needed(
    earlier: tuple[str, NotebookNode], later: tuple[str, NotebookNode], reference: ReferenceNotebook
) -> bool:
    """True if a cell has to run before one that comes later for the instructor."""
    (first, before), (second, cell) = earlier, later
    if is_test(cell):
        return not is_test(before)
    if second not in reference.answers or (first not in reference.answers and not is_test(before)):
        return True
    defines = reference.answers[second]
    if is_test(before):
        return not defines.isdisjoint(loaded(before.source))
    return not reference.answers[first].isdisjoint(defines | loaded(cell.source))
