"""What the commands have in common: nbgrader's configuration, options, and errors as one paragraph."""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from nbgrader.apps.baseapp import NbGrader
from sqlalchemy.exc import SAWarning, SQLAlchemyError
from traitlets import TraitError, default
from traitlets.config import KVArgParseConfigLoader

from ..batch.private import restrict_new_files, warning_if_open
from ..errors import GraderError
from ..fingerprints import VERSION
from ..text import printed
from . import COMMANDS

CONFIG = "nbgrader_config.py"
ONLY = "Students, with commas between them; * and ? stand for characters."
MAX_LISTED = 20  # names in a list on the screen


class NoCourseError(GraderError, LookupError):
    """The folder is no course, or the course has no such assignment."""


class _Loader(KVArgParseConfigLoader):
    """Rejects an option that is misspelt, which traitlets would only warn of."""

    def _handle_unrecognized_alias(self, arg: str) -> None:
        known = [*self.aliases, *self.flags]
        near = get_close_matches(arg, known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There is: {', '.join(known)}."
        self.parser.error(f"this command has no option {arg!r}. {hint}")


class Command(NbGrader):
    """A command with nbgrader's configuration: its traits, those of `options` also by short names."""

    version = VERSION
    options: tuple[str, ...] = ()  # traits that have a value
    aliases: dict[str, Any] = {}
    flags: dict[str, Any] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        word = cls.__name__.removesuffix("App").lower()
        cls.name, cls.description = f"starvelab-grader {word}", COMMANDS.get(word, "")
        own = {name.replace("_", "-"): f"{cls.__name__}.{name}" for name in cls.options}
        cls.aliases = {"log-level": "Application.log_level"} | cls.aliases | own

    def _create_loader(self, argv: Any, aliases: Any, flags: Any, classes: Any) -> KVArgParseConfigLoader:
        return _Loader(argv, aliases, flags, classes=classes, log=self.log)

    @default("raise_config_file_errors")
    def _raise_config_file_errors_default(self) -> bool:
        return True

    def initialize(self, argv: list[str] | None = None, root: str = "") -> None:
        """Read the configuration; an error in it ends the command with a sentence."""
        try:
            super().initialize(argv, root)
        except Exception as error:
            end(_why_not_read(error))
        for name in self.config:
            if (word := name.removesuffix("Options")).lower() in COMMANDS and word != name:
                end(f"The configuration sets c.{name}, which is c.{word}App now. Write that in its place.")

    def start(self) -> None:
        """Read the configuration, and let new files be closed to other users of the machine."""
        super().start()
        restrict_new_files(self.coursedir)
        if warning := warning_if_open(self.coursedir):
            self.log.warning(warning)

    def check_course(self, assignment: str) -> None:
        """Require that this is a course, and that it has the assignment."""
        if not any(Path(path).name == CONFIG for path in self.loaded_config_files):
            raise NoCourseError(
                f"This folder, {Path.cwd()}, is no course: it has no {CONFIG}. Go to the folder that has one."
            )
        source = Path(self.coursedir.format_path(self.coursedir.source_directory, ".", "."))
        known = sorted(path.name for path in source.glob("*") if path.is_dir() and any(path.glob("*.ipynb")))
        if assignment not in known:
            some = ", ".join(known) or "none"
            raise NoCourseError(f"This course has no assignment {assignment!r} in {source}; it has: {some}.")


def _why_not_read(error: Exception) -> str:
    """What is wrong with a configuration that raised this."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append((str(error.filename), error.lineno))
    own = [f"line {line} of {name}, " for name, line in frames if Path(name).name == CONFIG]
    reason = error.msg if isinstance(error, SyntaxError) else error
    what = f"{''.join(own[-1:])}{type(error).__name__}: {reason}"
    if isinstance(error, ModuleNotFoundError) and f"{error.name}.".startswith("starvelab.grading."):
        return f"The configuration cannot be read: {what}. The grader is starvelab_grader now: import that."
    return f"The configuration cannot be read: {what}. Correct it."


class AssignmentCommand(Command):
    """A command that takes one assignment."""

    kept = ""  # what is printed for a person who interrupts
    aliases = {"db": "CourseDirectory.db_url"}  # one of the options that nbgrader has

    @default("classes")
    def _classes_default(self) -> list[type]:
        return [*super()._classes_default(), type(self)]

    @default("log_level")
    def _log_level_default(self) -> int:
        return logging.WARNING

    def start(self) -> None:
        """Run for the assignment. An error is printed as one paragraph, and the exit status is 1."""
        super().start()
        if len(self.extra_args) != 1:
            end(f"Which assignment? For example: {self.name} starving-the-gpu")
        (assignment,) = self.extra_args
        with errors_in_a_paragraph(self.kept):
            self.check_course(assignment)
            self.run(assignment)

    def run(self, assignment: str) -> None:
        """Do the work, and print what came of it."""
        raise NotImplementedError


def end(message: str, status: int = 1) -> NoReturn:
    """Print why, and end."""
    print(printed(message), file=sys.stderr)
    raise SystemExit(status)


@contextmanager
def errors_in_a_paragraph(kept: str) -> Iterator[None]:
    """Print an error as one paragraph, and end with the exit status 1."""
    warnings.simplefilter("ignore", SAWarning)  # of nbgrader's queries, in which nothing is amiss
    try:
        yield
    except GraderError as error:
        end(str(error))
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).splitlines()[0]
        end(
            f"The gradebook cannot be used: {reason}. "
            "Check CourseDirectory.db_url in nbgrader_config.py, and whether a server that it names runs."
        )
    except TraitError as error:
        end(f"{error} Correct it in {CONFIG} or on the command line.")
    except ModuleNotFoundError as error:
        named, checkout = "'starvelab-grader[postgres]'", "'./grader[postgres]'"
        end(
            f"The gradebook needs a driver: {error}. "
            f"For PostgreSQL: pip install {named}, or in a checkout: pip install {checkout}"
        )
    except OSError as error:
        where = error.filename or "A file or a folder"
        end(f"{where} cannot be used: {error.strerror or error}. Check that you may read and write there.")
    except KeyboardInterrupt:
        end(f"Stopped. {kept}", 130)


def print_list(title: str, lines: Iterable[str], more: str = "") -> None:
    """Print a list; only the beginning of a long one, and where the rest is."""
    lines = list(lines)
    if lines:
        print(title)
        print("\n".join(f"  {printed(line)}" for line in lines[:MAX_LISTED]))
        if len(lines) > MAX_LISTED:
            print(f"  and {len(lines) - MAX_LISTED} more{more}")
