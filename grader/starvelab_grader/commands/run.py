"""`starvelab-grader run` and `autograder`: a submission graded without a gradebook, here or elsewhere."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
from nbgrader.converters import Autograde
from traitlets import Bool, List, Unicode
from traitlets.config import Config

from ..autograde.definition import Definition
from ..autograde.execution import IsolatedExecute, RestoreStructure
from ..autograde.task import GradingResult, grade
from ..batch.one_student import READ_TIMEOUT, one_student
from ..errors import GraderError, InputError, NotFoundError
from ..files import scratch_folder, write_whole
from ..report.results import NOT_RUN, is_visibly_right, results_of, table_of
from ..sandbox.process import Runners
from ..submissions.submission import OWN_NUMBER, read_submission
from ..text import printed
from .autograder import write_autograder
from .command import UNSAFE, Command

STUDENT = "the submission"
FEWER_POINTS, NOT_GRADED = 1, 2  # exit statuses
# Seconds of student code, where the course does not say: Gradescope ends all of it after ten minutes.
PLATFORM_DEADLINE = 120.0
FAILED = {"failed": "The submission could not be graded. Ask your instructor.", "exercises": []}


class NotGradedError(GraderError, RuntimeError):
    """A submission could not be graded."""


class RunApp(Command):
    """Grades one submission, and writes and prints what it earns.

    The exit status is 0 where every check passes as far as students can see it, 1 where one does not, and 2
    where nothing was graded.
    """

    examples = """
        starvelab-grader run ada.zip --assignment=starving-the-gpu --results=results.json
        starvelab-grader run submission/ --definition=assignment.bin --results=results.json
        """
    question = "Which submission? {} ada.zip --assignment=starving-the-gpu --results=results.json"
    configured = (Autograde, IsolatedExecute, RestoreStructure)
    error_status = NOT_GRADED
    flags = UNSAFE
    assignment = Unicode(help="An assignment of the course in this folder, which has been released.")
    definition = Unicode(help="The file assignment.bin of an autograder, in the place of a course.")
    results = Unicode(help="The file to write as JSON: exercises, points, maxima, messages.")
    hidden_messages = Bool(help="Give students also the messages of hidden checks.")

    def _check_course(self, _: str) -> None:
        if bool(self.assignment) == bool(self.definition):
            raise InputError(
                "A submission is graded as an assignment of a course, or by a file. Name one of the two: "
                "--assignment=starving-the-gpu, or --definition=assignment.bin."
            )
        if self.assignment:
            super()._check_course(self.assignment)

    def run(self, submission: str) -> None:
        """Grade a file or a folder, and end with the exit status."""
        if self.results:  # until there are better ones
            write_whole(Path(self.results), json.dumps(FAILED, indent=1))
        definition = self._read_definition()
        graded = graded_alone(Path(submission).expanduser(), definition)
        results = results_of(graded, definition.assignment, hidden_messages=self.hidden_messages)
        if self.results:
            write_whole(Path(self.results), json.dumps(results, indent=1))
        print(printed(table_of(results)))
        for line in results["to_look_at"]:
            print(printed(f"A person should look at this: {line}"), file=sys.stderr)
        if graded.mode == NOT_RUN:  # no notebook could be read
            raise SystemExit(NOT_GRADED)
        if not is_visibly_right(results):
            raise SystemExit(FEWER_POINTS)

    def _read_definition(self) -> Definition:
        if self.assignment:
            return Definition.of(self.coursedir, self.config, self.assignment)
        try:
            definition = cloudpickle.loads(Path(self.definition).read_bytes())
        except OSError:
            raise
        except Exception as error:  # of another version of Python or of a package
            raise NotGradedError(
                f"{self.definition} cannot be read here ({type(error).__name__}: {error}). Make it again "
                "with these versions: starvelab-grader autograder ASSIGNMENT"
            ) from error
        assert isinstance(definition, Definition)
        if IsolatedExecute(parent=self).unsafe:
            own = definition.settings.get("IsolatedExecute", {})
            definition.settings.IsolatedExecute = Config({**own, "unsafe": True})
        return definition


def graded_alone(place: Path, definition: Definition) -> GradingResult:
    """Grade a file or a folder as a submission of a class, or raise NotGradedError."""
    failed = dict[str, str]()
    with _as_folder(place) as folder, one_student(STUDENT, failed, "It cannot be read", READ_TIMEOUT):
        submission = read_submission(folder, STUDENT, definition.assignment, definition.asked)
        submission.files.pop(OWN_NUMBER, None)  # nobody gives the number to themselves
    if not failed:
        result = grade(submission, definition, Runners())
        if not result.failed:
            return result
        failed[STUDENT] = result.failed
    print(printed(failed[STUDENT]), file=sys.stderr)
    raise NotGradedError(f"The submission could not be graded: {failed[STUDENT].splitlines()[-1]}")


@contextmanager
def _as_folder(place: Path) -> Iterator[Path]:
    if not place.exists():
        raise NotFoundError(f"There is no submission {place}. Name a folder, an archive or a notebook.")
    if place.is_dir():
        yield place
        return
    with scratch_folder() as folder:
        shutil.copy(place, folder)
        yield folder


class AutograderApp(Command):
    """Writes what Gradescope and other platforms grade an assignment with."""

    examples = "starvelab-grader autograder starving-the-gpu --to=autograder.zip"
    configured = (RunApp, IsolatedExecute)
    to = Unicode("autograder.zip", help="The archive to write.")
    requirements = List(Unicode(), help="Further packages that notebooks import, as pip names them.")

    def run(self, assignment: str) -> None:
        """Write the archive, and say what it holds."""
        definition = Definition.of(self.coursedir, self.config, assignment)
        definition.settings.IsolatedExecute.setdefault("deadline", PLATFORM_DEADLINE)
        options = ["--hidden-messages"] * RunApp(parent=self).hidden_messages
        packages = write_autograder(Path(self.to), definition, options, list(self.requirements))
        print(f"{self.to} grades {assignment} with {', '.join(packages)}. It holds the hidden checks.")
