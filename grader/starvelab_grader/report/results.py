"""The results of one submission as plain data, and as a table that a log shows."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from ..autograde.execution import MODES
from ..autograde.task import Graded
from ..text import one_line
from .pages import shown_points

Results: TypeAlias = Mapping[str, Any]  # as JSON holds them
NOT_MARKED = "not marked yet"
MAX_TITLE = 100  # characters in a table
NO_SANDBOX = (
    "No sandbox: student code ran with the rights of the grader. It could read hidden checks, change these "
    "results and use the network. Only the container or the machine on which this ran protects anybody else."
)
NOT_RUN = MODES[0]
PROTECTION = {
    NOT_RUN: "No notebook could be read, and nothing was run.",
    "sandboxed": "Student code ran in a sandbox, and the checks outside it.",
    "sandboxed, checks inside": "Student code and checks ran in one sandbox: it could read and change them.",
    "unsafe": NO_SANDBOX,
    "unsafe, checks inside": NO_SANDBOX,
}


def results_of(graded: Graded, assignment: str, *, hidden_messages: bool = False) -> Results:
    """Return what a submission earns and what is said of it; hidden messages only where that is allowed."""
    exercises = list[Results]()
    for notebook, by_cell in graded.exercises.items():
        for cell, exercise in by_cell.items():
            points, _ = graded.grades[notebook][cell]
            hidden = exercise.hidden_messages if hidden_messages else []
            exercises.append({
                "notebook": notebook, "name": cell, "title": exercise.title,
                "points": points, "maximum": exercise.maximum,
                "messages": [*exercise.messages, *hidden], "is_visibly_right": exercise.is_visibly_right,
            })  # fmt: skip
    warnings = [(name, one) for name in graded.exercises for one in graded.warnings.get(name, [])]
    return {
        "assignment": assignment,
        "points": round(sum(each["points"] or 0.0 for each in exercises), 2),
        "maximum": sum(each["maximum"] for each in exercises),
        "not_marked": sum(each["maximum"] for each in exercises if each["points"] is None),
        "exercises": exercises,
        "messages": [f"{name}: {one.text}" for name, one in warnings],
        "to_look_at": [f"{name}: {one.text}" for name, one in warnings if one.person],
        "mode": graded.mode, "protection": PROTECTION[graded.mode or NOT_RUN],
        "seconds": graded.seconds,
    }  # fmt: skip


def is_visibly_right(results: Results) -> bool:
    """True if every check is passed, as far as students can see it."""
    return all(each["is_visibly_right"] for each in results["exercises"])


def table_of(results: Results) -> str:
    """Return the results as a table in Markdown, which can be read as it is."""
    rows = ["| exercise | points |", "|---|---|"]
    for each in results["exercises"]:
        points, most = each["points"], f"{each['maximum']:g}"
        earned = f"{NOT_MARKED} (of {most})" if points is None else f"{shown_points(points)} of {most}"
        title = one_line(f"{each['notebook']}: {each['title']}", MAX_TITLE).replace("|", "/")
        rows.append(f"| {title} | {earned} |")
    total = f"{shown_points(results['points'])} of {results['maximum']:g} points"
    waits = f", {results['not_marked']:g} of them {NOT_MARKED}" if results["not_marked"] else ""
    return "\n".join([*rows, "", f"{total}{waits}. {results['protection']}"])
