"""What the commands of `starvelab` have in common."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import NoReturn

from nbgrader.apps.baseapp import NbGrader
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from ..errors import StarvelabError

SHOWN = 20  # names in a list on the screen


class Command(NbGrader):
    """A command of `starvelab`, with nbgrader's configuration."""

    version = version("starvelab")


def end(message: str, status: int = 1) -> NoReturn:
    """Say why, and end."""
    print(message, file=sys.stderr)
    raise SystemExit(status)


@contextmanager
def errors_in_a_paragraph() -> Iterator[None]:
    """What cannot be done is said in one paragraph, and the exit status is 1."""
    warnings.simplefilter("ignore", SAWarning)  # of nbgrader's queries, in which nothing is amiss
    try:
        yield
    except (StarvelabError, OSError) as error:
        end(str(error))
    except SQLAlchemyError as error:
        why = str(getattr(error, "orig", error)).splitlines()[0]
        end(
            f"The gradebook cannot be used: {why}. "
            "Check CourseDirectory.db_url in nbgrader_config.py, and whether a server that it names runs."
        )


def print_list(title: str, lines: Iterable[str]) -> None:
    """A list on the screen, of which only the beginning is printed."""
    lines = list(lines)
    if lines:
        print(title)
        print("\n".join(f"  {line}" for line in lines[:SHOWN]))
        if len(lines) > SHOWN:
            print(f"  and {len(lines) - SHOWN} more")
