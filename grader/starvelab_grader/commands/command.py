"""What the commands have in common: nbgrader's configuration, options, errors as one paragraph, a bar."""

import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from textwrap import dedent
from typing import Any, NoReturn

from nbgrader.apps.baseapp import NbGrader
from sqlalchemy.exc import SAWarning, SQLAlchemyError
from tqdm import tqdm
from traitlets import Bool, TraitError, TraitType, default
from traitlets.config.loader import KVArgParseConfigLoader

from ..configuration import restrict_new_files
from ..errors import GraderError, NotFoundError
from ..files import VERSION
from ..text import listed, printed
from . import COMMANDS

CONFIG = "nbgrader_config.py"
ONLY = "Students, with commas between them; * and ? stand for characters."
UNSAFE: dict[str, Any] = {"unsafe": (
    {"IsolatedExecute": {"unsafe": True}},
    "Where there is no sandbox, run student code with the rights of the grader: it can do all that you can.",
)}  # fmt: skip
DELAY = 1.0  # seconds before there is a bar


class _Loader(KVArgParseConfigLoader):
    """Rejects an option that is misspelt, which traitlets would only warn of."""

    def _handle_unrecognized_alias(self, arg: str) -> None:
        known = [*self.aliases, *self.flags]
        hints = [f"Did you mean {one}?" for one in get_close_matches(arg, known, n=1)]
        hint = next(iter(hints), f"There is: {', '.join(known)}.")
        self.parser.error(f"this command has no option {arg!r}. {hint}")


class Command(NbGrader):
    """A command for an assignment, with nbgrader's configuration.

    The traits of a class are options by short names; a Bool is a flag, with `no-` if it is on by default.
    """

    version = VERSION
    raise_config_file_errors = Bool(True)
    question = "Which assignment? For example: {} starving-the-gpu"
    arguments = 1
    error_status = 1
    kept = ""  # what is printed for a person who interrupts
    run: Callable[..., None]  # does the work, and prints what came of it
    configured: tuple[type, ...] = ()  # other classes that the configuration may set
    aliases: dict[str, Any] = {"log-level": "Application.log_level", "db": "CourseDirectory.db_url"}
    flags: dict[str, Any] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        owner = cls.__name__
        word = owner.removesuffix("App").lower()
        cls.name, cls.description = f"starvelab-grader {word}", COMMANDS.get(word, "")
        cls.examples = dedent(cls.examples).strip()
        cls.aliases, cls.flags = dict(cls.aliases), dict(cls.flags)
        for name, trait in [each for each in vars(cls).items() if isinstance(each[1], TraitType)]:
            trait.tag(config=True)
            option = name.replace("_", "-")
            if isinstance(trait, Bool):
                before = bool(trait.default_value)
                cls.flags["no-" * before + option] = ({owner: {name: not before}}, trait.help)
            else:
                cls.aliases[option] = f"{owner}.{name}"

    def _create_loader(self, argv: Any, aliases: Any, flags: Any, classes: Any) -> KVArgParseConfigLoader:
        return _Loader(argv, aliases, flags, classes=classes, log=self.log)

    @default("classes")
    def _classes_default(self) -> list[type]:
        return [*super()._classes_default(), type(self), *self.configured]

    @default("log_level")
    def _log_level_default(self) -> int:
        return logging.WARNING

    def initialize(self, argv: list[str] | None = None, root: str = "") -> None:
        """Read the configuration; an error in it ends the command with a sentence."""
        try:
            super().initialize(argv, root)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            end(f"The configuration cannot be read: {what}. Correct it.", self.error_status)

    def start(self) -> None:
        """Run for the assignment. An error is printed as one paragraph."""
        super().start()
        # New files are closed to other users of the machine.
        restrict_new_files(self.coursedir)
        if len(self.extra_args) != self.arguments:
            end(self.question.format(self.name), self.error_status)
        with errors_in_a_paragraph(self.kept, self.error_status):
            self._check_course(self.extra_args[0])
            self.run(*self.extra_args)

    def _check_course(self, assignment: str) -> None:
        """Require that this is a course, and that it has the assignment."""
        if not any(Path(path).name == CONFIG for path in self.loaded_config_files):
            here = f"This folder, {Path.cwd()}, is no course: it has no {CONFIG}."
            raise NotFoundError(f"{here} Go to the folder that has one.")
        source = Path(self.coursedir.format_path(self.coursedir.source_directory, ".", "."))
        known = sorted(path.name for path in source.glob("*") if path.is_dir() and any(path.glob("*.ipynb")))
        if assignment not in known:
            there = f"it has: {listed(known)}."
            raise NotFoundError(f"This course has no assignment {assignment!r} in {source}; {there}")


def end(message: str, status: int = 1) -> NoReturn:
    """Print why, and end."""
    print(printed(message), file=sys.stderr)
    raise SystemExit(status)


@contextmanager
def errors_in_a_paragraph(kept: str, status: int = 1) -> Iterator[None]:
    """Print an error as one paragraph, and end with the exit status."""
    warnings.simplefilter("ignore", SAWarning)  # of nbgrader's queries, in which nothing is amiss
    try:
        yield
    except GraderError as error:
        end(str(error), status)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).splitlines()[0]
        end(
            f"The gradebook cannot be used: {reason}. "
            "Check CourseDirectory.db_url in nbgrader_config.py, and whether a server that it names runs.",
            status,
        )
    except TraitError as error:
        end(f"{error} Correct it in {CONFIG} or on the command line.", status)
    except ModuleNotFoundError as error:
        end(
            f"The gradebook needs a driver: {error}. For PostgreSQL: pip install "
            "'starvelab-grader[postgres]', or in a checkout: pip install './grader[postgres]'",
            status,
        )
    except OSError as error:
        where = error.filename or "A file or a folder"
        why = f"{where} cannot be used: {error.strerror or error}"
        end(f"{why}. Check that you may read and write there.", status)
    except KeyboardInterrupt:
        end(f"Stopped. {kept}", 130)


def print_list(title: str, lines: Iterable[str]) -> None:
    """Print a list, if there is anything in it: all of it, since it stands nowhere else."""
    if lines := [f"  {printed(line)}" for line in lines]:
        print(title, *lines, sep="\n")


@contextmanager
def progress(what: str, total: int, unit: str) -> Iterator["tqdm[NoReturn]"]:
    """Show a bar."""
    # What fails at once is said alone, where it is all there is to do.
    delay = DELAY if total == 1 else 0.0
    with tqdm(total=total, desc=what, unit=unit, smoothing=0.05, disable=not total, delay=delay) as bar:
        yield bar
