"""Count the lines and files that the simple solve of the README runs, once everything is loaded.

Run with: python -m benchmarks.solve_path [--list]
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import starvelab
from starvelab import Hardware, Models, Pipeline

from .report import options

PACKAGE = Path(starvelab.__file__).parent


def solve() -> object:
    """Describe and solve the README's simple case."""
    return Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=8).solve()


def lines_of(call: Any) -> tuple[dict[str, set[int]], int]:
    """Return the lines of the package that a call runs, by file in the order of running; and its calls."""
    lines: dict[str, set[int]] = {}
    calls = Counter[str]()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(str(PACKAGE)):
            return None
        calls[file] += event == "call"
        if event == "line":
            lines.setdefault(file, set()).add(frame.f_lineno)
        return trace

    call()  # what is read once, is read
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return {str(Path(file).relative_to(PACKAGE)): found for file, found in lines.items()}, calls.total()


def main(arguments: Sequence[str] | None = None) -> None:
    """Count and print."""
    parser = options(__doc__)
    parser.add_argument("--list", action="store_true", help="print the lines themselves")
    asked = parser.parse_args(arguments)
    lines, calls = lines_of(solve)
    for file, numbers in lines.items():
        print(f"{len(numbers):4} {file}")
        if asked.list:
            text = (PACKAGE / file).read_text(encoding="utf-8").splitlines()
            print(*(f"     {number:4} {text[number - 1]}" for number in sorted(numbers)), sep="\n")
    print(f"{sum(map(len, lines.values()))} lines in {len(lines)} files, {calls} calls")


if __name__ == "__main__":
    main()
