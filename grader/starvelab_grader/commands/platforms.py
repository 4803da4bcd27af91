"""`starvelab-grader collect` and `return`: what Canvas and Moodle give, and what they get, each page once."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import ZIP_DEFLATED, ZipFile

from nbgrader.api import Gradebook
from tqdm import tqdm
from traitlets import Bool, Unicode

from ..batch.classroom import Classroom
from ..batch.one_student import one_student
from ..errors import InputError
from ..files import whole_folder
from ..lms.collecting import CANVAS, MOODLE, Origin, collect_download, load_origins
from ..lms.exports import Canvas, Moodle
from ..lms.platform_table import PlatformTable
from ..lms.returning import Delivery, Result, deliveries, members_of, returned, write_record
from ..lms.rosters import Sheet, named_by_download, open_sheet, read_roster, register
from ..report.pages import INDEX, FeedbackPages
from ..text import shown
from .command import ONLY, Command, print_list

if TYPE_CHECKING:  # an extra of the grader, which need not be installed
    from ..lms.canvas_api import CanvasAssignment


class CollectApp(Command):
    """Sorts a download, and prints what came of it."""

    examples = """
        starvelab-grader collect starving-the-gpu ~/Downloads/submissions.zip
        starvelab-grader collect starving-the-gpu ~/Downloads/submissions.zip --roster=~/Downloads/canvas.csv
        """
    question = "Which assignment, and which file? {} starving-the-gpu submissions.zip"
    arguments = 2
    roster = Unicode(help="The platform's table of the class: names for the gradebook, and who is missing.")
    kept = "What was sorted is kept: the same command goes on from there."

    def run(self, assignment: str, download: str) -> None:
        """Sort a download, and write the names into the gradebook."""
        if self.roster:
            open_sheet(self.roster)  # a wrong one is said before anything is written
        submitted = Path(self.coursedir.root) / self.coursedir.submitted_directory
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as book:
            entry = next((one for one in book.assignments if one.name == assignment), None)
            notebooks, due = ([one.name for one in entry.notebooks], entry.duedate) if entry else ([], None)
            place = Path(download).expanduser()
            collected = collect_download(place, submitted, assignment, notebooks=notebooks, due=due)
            people = read_roster(self.roster, collected.names) if self.roster else {}
            origins = load_origins(submitted.parent / "collected" / f"{assignment}.json")
            of_canvas = {student for student, origin in origins.items() if origin.platform == CANVAS}
            numbers = sorted(filter(str.isdecimal, of_canvas & collected.names.keys()))
            register(book, named_by_download(book, collected.names) | people, numbers)
        counts = f"{len(collected.new)} new, {len(collected.changed)} changed"
        print(f"{assignment}: {counts}, {len(collected.unchanged)} unchanged, in {submitted}.")
        for title, reasons in (("Left out:", collected.left_out), ("Not sorted:", collected.failed)):
            print_list(title, (f"{shown(name)}: {why}" for name, why in reasons.items()))
        print_list(
            "Uploaded more than once; the latest upload counts (to choose another, put it in its place):",
            (f"{student}: {'; '.join(each)}" for student, each in collected.chosen.items()),
        )
        if collected.late:
            how = "not how late: they count as one second late, by the due date in the gradebook."
            if due is None:
                how = "the gradebook knows no due date: they are graded as if in time. Set it (nbgrader db "
                how += f"assignment add {assignment} --duedate='2026-11-30 23:59 UTC') and collect again."
            print(f"{len(collected.late)} came late, says Canvas, and {how}")
        there = {path.parent.name for path in submitted.glob(f"*/{assignment}")}
        names = {one: f"{who.first_name} {who.last_name}".strip() for one, who in sorted(people.items())}
        absent = [f"{student} {shown(name)}" for student, name in names.items() if student not in there]
        print_list(f"Nothing came from {len(absent)} of the {len(people)} in the roster:", absent)
        if collected.failed:
            raise SystemExit(1)


Results: TypeAlias = Mapping[str, Result]
TABLES: dict[str, type[PlatformTable]] = {CANVAS: Canvas, MOODLE: Moodle}
SILENT = logging.getLogger(f"{__name__}.silent")  # for a table that is made once more
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False
PAGES, POINTS = "pages.zip", "points.csv"
UPLOADS = {
    CANVAS: f"In Canvas upload {POINTS} (Grades, Import; of --roster), once {PAGES} (Upload Submissions).",
    MOODLE: f"In Moodle upload {POINTS} (grading worksheet), and then {PAGES} (multiple feedback files).",
}
NO_FILE = (
    "no notebook, archive or page was submitted, in whose place Canvas would take this page: give "
    "page and points by hand"
)


class ReturnApp(Command):
    """Packs what is new for each student, and prints what to do with it."""

    examples = """
        starvelab-grader return starving-the-gpu --roster=~/Downloads/canvas.csv
        starvelab-grader return starving-the-gpu --canvas-api=https://canvas.example.edu/courses/12/assignments/34
        """
    configured = (Canvas, Moodle)
    roster = Unicode(help="The platform's table: a copy of it gets the points.")
    column = Unicode(help="Its column for the points, by name, number or beginning.")
    scale = Bool(help="Scale points to what the platform has as points possible.")
    only = Unicode(help=ONLY)
    again = Bool(help="Return also what was returned before.")
    unmarked = Bool(help="Return also pages on which something is not marked yet.")
    dry_run = Bool(help="Show who would get what, and write nothing.")
    canvas_api = Unicode(help="The assignment's address in Canvas, to return by its API.")
    kept = "What was returned is written down. Start the same command again."

    def run(self, assignment: str) -> None:
        """Return what is new, or show what that is."""
        classroom, by_file = Classroom(self.coursedir, self.config, assignment), not self.canvas_api
        course = classroom.records.folder.parents[1]
        folder = course / "returned" / assignment
        with classroom.exclusive_lock(), classroom.gradebook() as book:
            if old := classroom.old_grades:
                print(old)
            results = {str(one.student_id): Result(one) for one in book.assignment_submissions(assignment)}
            left_out: dict[str, str] = {}
            pages = self._pages(classroom, results, left_out)
            origins = load_origins(course / "collected" / f"{assignment}.json")
            members = self._members(origins, pages)
            unknown = dict.fromkeys(pages.keys() - members.values(), "its name on the platform is not known")
            every = list(deliveries(pages, origins, members, {} if self.again else returned(folder)))
            left_out |= unknown | {one.recipient: NO_FILE for one in every if by_file and not one.path}
            canvas = None if by_file or self.dry_run else self._canvas()
            if canvas is not None and self.scale:
                possible = canvas.assignment.points_possible
                results = {one: replace(result, possible=possible) for one, result in results.items()}
            ready = [one for one in every if one.recipient not in left_out]
            ready = self._with_points(book, assignment, ready, results)
            new = [one for one in ready if one.is_new]
            pages_of = [one for one in new if one.has_new_page]
            more = f" and the points of {len(new) - len(pages_of)}" if len(new) > len(pages_of) else ""
            same = len(ready) - len(new)
            print(f"{assignment}: {len(pages_of)} pages{more} to return, {same} were returned before.")
            last = max((int(path.name) for path in folder.glob("[0-9][0-9][0-9]")), default=0)
            following = folder / f"{last + 1:03}"
            if self.dry_run:
                for one in new:
                    earned, state = results[one.student].summary.partition(";")[0], one.before and "changed"
                    print(f"{one.recipient:>12}  {earned}  {state or 'new':<7}  {one.path}")
            elif canvas is not None:
                self._send(canvas, following, ready, results, left_out)
            elif new:
                _write(following, new, self._table(book, assignment, new)[0])
        by_reason: dict[str, list[str]] = {}
        for student, why in sorted(left_out.items()):
            by_reason.setdefault(why, []).append(student)
        print_list("Not returned:", sorted(f"{', '.join(each)}: {why}" for why, each in by_reason.items()))

    def _pages(self, classroom: Classroom, results: Results, left_out: dict[str, str]) -> dict[str, Path]:
        """Return the pages that are ready, by who submitted, and write down why others are not."""
        pages, name = FeedbackPages(classroom), classroom.assignment
        stale = [job.student for job in pages.out_of_date(self.only)]
        left_out |= dict.fromkeys(stale, f"the page is not up to date: starvelab-grader feedback {name}")
        left_out |= pages.failed
        waiting = [one for one in pages.unchanged if results[one].submission.needs_manual_grade]
        left_out |= {} if self.unmarked else dict.fromkeys(waiting, "not marked yet (--unmarked)")
        return {one: pages.folder / one / name / INDEX for one in pages.unchanged if one not in left_out}

    def _members(self, origins: Mapping[str, Origin], pages: Mapping[str, Path]) -> dict[str, str]:
        """Return by recipient who submitted, of the platform from which the first of the pages came."""
        platforms = [origins[one].platform for one in (*pages, *origins) if one in origins]
        if pages and not platforms:
            raise InputError(
                "Pages are returned by the numbers of Canvas or Moodle, and none of these students has one. "
                "Collect the platform's download (starvelab-grader collect), or send the pages in feedback/ "
                "yourself."
            )
        here = {one: origin for one, origin in origins.items() if origin.platform in platforms[:1]}
        if MOODLE not in platforms[:1]:  # Canvas gives all of a group what one of them gets
            return {one: one for one in here}
        if self.canvas_api or not self.roster:
            raise InputError(
                "Moodle numbers the groups of a download as it numbers students, so that a page could go to "
                "somebody else. Pass the grading worksheet, which says who is who: --roster=worksheet.csv"
            )
        return members_of(open_sheet(self.roster), here)

    def _table(
        self, book: Gradebook, assignment: str, some: list[Delivery], **options: Any
    ) -> tuple[Sheet | None, Mapping[str, str]]:
        """Return the platform's table with the points of these students in it, and their points, if any."""
        if not some or not self.roster:
            return None, {}
        options |= {
            name: getattr(self, name) for name in ("roster", "column", "scale") if getattr(self, name)
        }
        options |= {"assignment": [assignment], "student": sorted({one.student for one in some})}
        table = TABLES[some[0].origin.platform](parent=self, **options)
        table.members = {one.recipient: one.student for one in some}
        return table.table(book), table.written

    def _with_points(
        self, book: Gradebook, assignment: str, some: list[Delivery], results: Results
    ) -> list[Delivery]:
        """Return the same deliveries with the points that are written: of a file, those in its table."""
        points = {student: result.points for student, result in results.items()}
        if not self.canvas_api:
            points = dict(self._table(book, assignment, some, log=SILENT)[1])
        elif self.scale and self.dry_run:  # Canvas is not asked for what it has as points possible
            points = {}
        return [replace(one, points=points.get(one.student, "")) for one in some]

    def _canvas(self) -> "CanvasAssignment":
        """Read the assignment in Canvas."""
        try:
            from ..lms.canvas_api import CanvasAssignment
        except ModuleNotFoundError as error:
            install = "'starvelab-grader[canvas]', or in a checkout: pip install './grader[canvas]'"
            raise InputError(f"`canvas-api` needs {error.name}: pip install {install}") from None
        return CanvasAssignment(self.canvas_api)

    def _send(
        self, canvas: "CanvasAssignment", folder: Path, ready: list[Delivery], results: Results,
        left_out: dict[str, str],
    ) -> None:  # fmt: skip
        """Send by Canvas's API what differs from what is there, and write down after each student what is."""
        there, new = 0, list[Delivery]()
        for one in tqdm(ready, desc="returning", unit="page"):
            with one_student(one.recipient, left_out, "Canvas does not take it"):
                canvas.deliver(one, results[one.student], again=self.again)
                there += 1
                if one.is_new:
                    new.append(one)
                    write_record(folder, new)
        print(f"{there} students have their points and pages in Canvas.")


def _write(folder: Path, new: list[Delivery], points: Sheet | None) -> None:
    """Write a return with its record, completely or not at all, and print what to do with it."""
    with whole_folder(folder) as made:
        with ZipFile(made / PAGES, "w", ZIP_DEFLATED) as archive:
            for one in filter(attrgetter("has_new_page"), new):
                archive.writestr(one.path, one.packed)
        if points is not None:
            (made / POINTS).write_bytes(points.content)
        write_record(made, new)
    print(f"They are in {folder}: look at them. {UPLOADS[new[0].origin.platform]}")
    print("If you upload nothing of it, delete that folder: then the next return has it again.")
