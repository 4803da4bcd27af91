"""What is shown of an exercise beside its points: title, maximum, and what its check says."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nbformat import NotebookNode

from ..sandbox.channel import Message
from ..sandbox.check_messages import MAX_MESSAGES, MAX_TEXT
from ..submissions.reference import ReferenceCell, titles_of
from ..text import storable


@dataclass(frozen=True)
class Exercise:
    """An exercise of a student, without its points."""

    title: str
    maximum: float
    messages: list[str] = field(default_factory=list)  # of what students have of the check
    hidden_messages: list[str] = field(default_factory=list)  # of its hidden part
    is_visibly_right: bool = True  # or not checked by code


def exercises_of(
    cells: Iterable[ReferenceCell], source: bytes | None,
    grades: Mapping[str, tuple[float | None, bool]], said: Mapping[str, Message],
) -> dict[str, Exercise]:  # fmt: skip
    """Return the exercises of a notebook by the cell that is graded, from what their checks said."""
    graded = [cell for cell in cells if cell.grade or cell.task]
    titles = titles_of(source, graded) if source else {}
    results = {}
    for cell in graded:
        title, points, reply = titles.get(cell.name, cell.name), grades[cell.name][0], said.get(cell.name, {})
        texts: list[tuple[str, bool]] = reply.get("messages", [])
        is_right = not cell.is_test or (points or 0.0) >= cell.points or reply.get("visibly_right") is True
        visible, hidden = ([text for text, is_hidden in texts if is_hidden is kind] for kind in (False, True))
        results[cell.name] = Exercise(title, cell.points, visible, hidden, is_right)
    return results


def said_by_check(reply: Message, outputs: Iterable[NotebookNode]) -> Message:
    """Return the messages of a check, and whether its visible part is right; a forged reply may lack both."""
    messages = reply.get("messages")
    if not isinstance(messages, list):  # of a check that did not end
        messages = [[output.evalue, False] for output in outputs if output.output_type == "error"]
    pairs = [each for each in messages[:MAX_MESSAGES] if isinstance(each, list | tuple) and len(each) == 2]
    kept = [(storable(str(text)[:MAX_TEXT]), bool(hidden)) for text, hidden in pairs]
    return {"messages": kept, "visibly_right": reply.get("visibly_right") is True}
