"""Names for the places in which a thread is seen: the line of the user's own code, and the call below it.

A sample keeps code objects and positions in them. What they are called is asked once for each place, of the
source that Python itself keeps for its tracebacks. Nothing here loads a package: workers import it as well.
"""

from __future__ import annotations

import ast
import dis
import os
import sysconfig
from collections import deque
from functools import lru_cache
from itertools import islice
from linecache import getline
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple, TypeAlias

# Of a stack, the outermost first: the code of each frame, and the position in it [bytes].
Stack: TypeAlias = tuple[tuple[CodeType, int], ...]

LIBRARIES = ("site-packages", "dist-packages", "starvelab_doctor")  # folders of code that is not the user's
MADE = (f"{Path(__file__).parents[1]}{os.sep}", "<string>")
STANDARD = tuple({str(Path(sysconfig.get_path(name))) for name in ("stdlib", "platstdlib")})
MAX_CALL = 40  # characters of a call in a report
# After these Python lets another thread in that waits for its lock; `in` is none of them, however long it
# takes.
LETS_IN = ("CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD", "RESUME")
MANY = 1000  # elements that are compared one by one


class CodeLine(NamedTuple):
    """A line of the user's own code, or of a library where none is, and the call below it."""

    file: str
    line: int
    call: str = ""  # empty where the line itself computes
    own: bool = True  # the user's, and no library's


def stack_of(frame: FrameType | None) -> Stack:
    """Return the code and the position of each frame of a stack, the outermost first."""
    frames = []
    while frame is not None:
        frames.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(reversed(frames))


@lru_cache(maxsize=4096)
def is_own(file: str) -> bool:
    """True for a file of the user, which neither Python nor a package brought."""
    path = Path(file)
    if file.startswith("<") or any(part in LIBRARIES for part in path.parts):
        return file.startswith("<ipython") or "ipykernel_" in file
    return not any(path.is_relative_to(folder) for folder in STANDARD)


def own_frame(frame: FrameType) -> FrameType:
    """Return the innermost frame of the user's own code around a call, by way of whatever library."""
    caller: FrameType | None = frame
    while caller is not None and not is_own(caller.f_code.co_filename):
        caller = caller.f_back
    return caller or frame


def code_line_of(stack: Stack) -> CodeLine | None:
    """Return the innermost line of the user's own code in a stack, or else of the outermost library."""
    if not stack:
        return None
    own = [place for place, (code, _) in enumerate(stack) if is_own(code.co_filename)]
    number = own[-1] if own else 0
    code, position = stack[number]
    # Neither the doctor itself nor code that was made from a text, as that of a proxy, has a name that tells.
    below = [one for one, _ in stack[number + 1 :] if not one.co_filename.startswith(MADE)]
    call = _qualified(below[0]) if below else _text(_node(code, position))
    return CodeLine(code.co_filename, line_of(code, position), call[:MAX_CALL], bool(own))


def moved_to_search(frame: FrameType, stack: Stack) -> Stack:
    """Return a stack that was seen late, at the search of a list before it where that kept Python's lock."""
    code, position = stack[-1]
    if frame.f_back is not None and dis.opname[code.co_code[position]] == "RESUME":  # it has just been called
        frame, stack = frame.f_back, stack[:-1]
        code, position = stack[-1]
    search = _search_before(code, position)
    if search is None or not _is_long(frame, _node(code, search)):
        return stack
    return (*stack[:-1], (code, search))


def _qualified(code: CodeType) -> str:
    """Return a function's name with its module, such as gzip.GzipFile.read."""
    path = Path(code.co_filename)
    if code.co_name.startswith("<"):
        return path.stem
    module = path.parent.name if path.stem == "__init__" else path.stem
    return f"{module}.{code.co_qualname.replace('.<locals>', '')}"


def line_of(code: CodeType, position: int) -> int:
    """Return the number of the line at a position."""
    line = next(islice(code.co_positions(), max(position, 0) // 2, None), (None,))[0]
    return line if line is not None else code.co_firstlineno


@lru_cache(maxsize=1024)
def _node(code: CodeType, position: int) -> ast.expr | None:
    """Return the expression at a position, from its source; None where there is none."""
    first, last, begin, end = next(islice(code.co_positions(), max(position, 0) // 2, None), (None,) * 4)
    if first is None or last is None or begin is None or end is None:
        return None
    lines = [getline(code.co_filename, number).encode() for number in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    try:
        return ast.parse(b"".join(lines).strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _text(node: ast.expr | None) -> str:
    """Return what is called, or computed by an operator; else empty."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func)
    return ast.unparse(node) if isinstance(node, ast.Compare | ast.Subscript | ast.BinOp) else ""


@lru_cache(maxsize=1024)
def _search_before(code: CodeType, position: int) -> int | None:
    """Return where code searches a container after it last let another thread in; None where nowhere."""
    # A position may lie in the room that an operation has behind it for itself.
    steps = [step for step in dis.get_instructions(code) if step.offset <= position]
    found = None
    for step in steps[:-1]:
        if step.opname == "CONTAINS_OP":
            found = step.offset
        elif step.opname in LETS_IN:
            found = None
    return found


def _is_long(frame: FrameType, node: ast.expr | None) -> bool:
    """True if the container in which something is searched compares many elements one by one."""
    container = node.comparators[-1] if isinstance(node, ast.Compare) else None
    names = []
    while isinstance(container, ast.Attribute):
        names.append(container.attr)
        container = container.value
    if not isinstance(container, ast.Name):
        return False
    value = frame.f_locals.get(container.id, frame.f_globals.get(container.id))
    for name in reversed(names):
        value = getattr(value, "__dict__", {}).get(name)  # a property would run the user's code
    return isinstance(value, list | tuple | deque) and len(value) >= MANY
