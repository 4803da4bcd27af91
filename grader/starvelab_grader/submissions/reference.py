"""The instructor's own notebook: cells in order, names that they define, titles and model answers.

A student may move, copy or delete cells. Only the instructor's notebook decides what the checks run, in which
order, and which names they take from the student.
"""

import ast
import builtins
import re
import symtable
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Self

import nbformat
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import find_all_files, is_grade, is_locked, is_solution

SCHEMA = 3  # the version of nbgrader's metadata


def released_source(course: CourseDirectory, assignment: str) -> Path:
    """Return where the notebooks stand as they were released, with which a class is graded all year."""
    return Path(course.root, course.autograded_directory).parent / "released" / assignment


def read_source(course: CourseDirectory, folder: Path) -> dict[str, bytes]:
    """Return the instructor's notebooks and files in a folder, by their paths from there."""
    paths = sorted(map(Path, find_all_files(str(folder), course.ignore)))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def read_reference(
    course: CourseDirectory, assignment: str, notebook: str,
    folder: Path | None = None, locked: Set[str] | None = None,
) -> tuple[NotebookNode, ...]:  # fmt: skip
    """Return the cells that the instructor wrote, or that students were given; none where there are neither.

    First comes what stands in the folder, by default what `starvelab-grader release` keeps. It counts only if
    it has the locked code cells that the gradebook knows: nbgrader itself may have given out others since.
    """
    folders = (course.source_directory, course.release_directory)
    places = [Path(course.format_path(each, ".", assignment)) for each in folders]
    paths = [each / f"{notebook}.ipynb" for each in (folder or released_source(course, assignment), *places)]
    first, source, released = (parse_cells(path.read_bytes()) if path.is_file() else () for path in paths)
    if locked is not None and {name_of(cell) for cell in first if is_check_side(cell)} != locked:
        first = ()
    return first or source or released


@lru_cache(maxsize=64)
def parse_cells(content: bytes) -> tuple[NotebookNode, ...]:
    """Return the cells of a notebook; parsed once for a class, and not for each of its students."""
    return tuple(nbformat.reads(content.decode(), as_version=4).cells)


def name_of(cell: NotebookNode) -> str | None:
    """Return the grade_id of a cell, if it has one."""
    name: str | None = cell.metadata.get("nbgrader", {}).get("grade_id")
    return name


def names_in_order(cells: Iterable[NotebookNode]) -> list[str]:
    """Return the grade_ids of cells."""
    return [name for name in map(name_of, cells) if name is not None]


def is_test(cell: NotebookNode) -> bool:
    """True if a code cell is scored by what it does."""
    return is_check_side(cell) and bool(is_grade(cell))


def is_check_side(cell: NotebookNode) -> bool:
    """True if a cell is the instructor's to run: a test, or locked code such as a set-up."""
    is_ours = (is_grade(cell) or is_locked(cell)) and not is_solution(cell)
    return bool(cell.cell_type == "code" and is_ours)


@dataclass(frozen=True)
class ReferenceCell:
    """A cell of the instructor's notebook, as the gradebook keeps it, with nbgrader's flags."""

    name: str  # its grade_id
    cell_type: str
    source: str
    released: str  # the source that students were given: without hidden checks
    checksum: str
    locked: bool
    grade: bool
    solution: bool
    task: bool = False
    points: float = 0.0

    def metadata(self) -> dict[str, object]:
        """Return what nbgrader wants to find in the cell."""
        flags = ("grade", "locked", "solution", "task", "cell_type", "checksum")
        metadata: dict[str, object] = {name: getattr(self, name) for name in flags}
        metadata |= {"points": self.points} if self.grade or self.task else {}
        return metadata | {"grade_id": self.name, "schema_version": SCHEMA}

    @property
    def is_check_side(self) -> bool:
        """True if it is the instructor's to run: a test, or locked code such as a set-up."""
        return self.cell_type == "code" and not self.solution and (self.grade or self.locked)

    @property
    def is_test(self) -> bool:
        """True if it is scored by what it does."""
        return self.is_check_side and self.grade

    @property
    def answered(self) -> bool:
        """True if a student is to write in it."""
        return self.solution and not self.locked


def graded_by(cells: Iterable[ReferenceCell]) -> dict[str, str]:
    """Return by answer what is graded for it: the test that follows, the task before, or the essay itself."""
    results: dict[str, str] = {}
    waiting: list[str] = []
    task = ""
    for cell in cells:
        if cell.answered:
            waiting.append(cell.name)
            if task:
                results[cell.name] = task  # unless a test follows
        if cell.task:
            waiting, task = [] if task else waiting, cell.name
        # Behind a task, an essay without points is a place for the answer.
        elif cell.is_test or (cell.grade and (cell.points > 0 or not task)):
            answers = waiting if cell.is_test or not task else [cell.name]
            results |= dict.fromkeys(answers, cell.name)
            waiting, task = [], ""
    return results


class ReferenceNotebook:
    """The locked code of a notebook in the instructor's order, and who defines which name."""

    def __init__(self, written: Sequence[NotebookNode], submitted: Sequence[NotebookNode]) -> None:
        restored = {name: cell for cell in submitted if (name := name_of(cell)) and is_check_side(cell)}
        cells = {name: restored.get(name, cell) for cell in written if (name := name_of(cell))}
        # A test that was renamed since the release counts. A set-up cell that the instructor's notebook lacks
        # does not.
        unknown = {name: cell for name, cell in restored.items() if name not in cells}
        cells |= {name: cell for name, cell in unknown.items() if is_test(cell) or not written}
        self.cells = {name: cell for name, cell in cells.items() if cell.cell_type == "code"}
        self.locked = [name for name, cell in self.cells.items() if is_check_side(cell)]
        # A name that an answer only imports is a tool, and no answer.
        answers = {name: cell for name, cell in self.cells.items() if is_solution(cell)}
        self.answers = {name: defined([cell.source], imports=False) for name, cell in answers.items()}
        self.definitions = {name: defined([self.cells[name].source]) for name in self.locked}
        # Tools that a check uses and no locked cell imports.
        others = (cell for cell in written if cell.cell_type == "code" and not is_check_side(cell))
        self.imports = imported(cell.source for cell in others)

    def is_locked(self, cell: NotebookNode) -> bool:
        """True if a cell is one of the locked ones."""
        return is_check_side(cell) and name_of(cell) in self.definitions

    def before(self, cell: str) -> list[str]:
        """Return the names of the locked cells that stand before a locked one."""
        return self.locked[: self.locked.index(cell)]

    def asked_for(self, cell: str) -> tuple[set[str], set[str]]:
        """Return the names that a locked cell may take from a student.

        First those that the instructor's answers define: code that a check calls may use them too, so a test
        is given all of them. Then those that the cell uses and no cell of the instructor's defines.
        """
        used, reserved = loaded(self.cells[cell].source), self._reserved(cell)
        answers = set[str]().union(*self.answers.values()) - reserved
        if not is_test(self.cells[cell]):
            answers &= used
        return answers, used - answers - reserved

    def _reserved(self, cell: str) -> set[str]:
        """Names that a locked cell itself defines: they are never taken from a student."""
        # A test's name for a result may be that of a later answer: from that answer on it is the student's.
        reserved = set[str]().union(*self.definitions.values())
        for name, source in self.cells.items():
            if name == cell:
                break
            if name in self.answers:
                reserved -= self.answers[name]
            elif is_test(source):
                reserved |= self.definitions[name]
        set_up = (self.definitions[name] for name in self.locked if not is_test(self.cells[name]))
        return reserved.union(*set_up)


# --- which names a cell defines and uses, as Python's own compiler sees them ------------------------------
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


def defined(sources: Iterable[str], *, imports: bool = True) -> set[str]:
    """Return the names that cells define at their top level, in whatever way Python has, also by imports."""
    return {
        symbol.get_name()
        for source in sources
        for scope in _scopes(source)
        for symbol in scope.get_symbols()
        if symbol.is_assigned() or (imports and symbol.is_imported())
        # A function, or a walrus in a comprehension, can define a name of the module.
        if scope.get_type() == "module" or symbol.is_declared_global()
    }


def imported(sources: Iterable[str]) -> dict[str, str]:
    """Return by name the statement with which cells import it at their top level, if nothing else defines it.

    Examples
    --------
    >>> imported(["import numpy as np, os.path", "from math import pi as tau, sqrt", "sqrt = 3"])
    {'np': 'import numpy as np', 'os': 'import os.path', 'tau': 'from math import pi as tau'}
    """
    sources, found = list(sources), dict[str, str]()
    for tree in map(_tree, sources):
        for node in tree.body if tree else ():
            if isinstance(node, ast.Import):
                found |= {_bound_by(one): ast.unparse(ast.Import([one])) for one in node.names}
            elif isinstance(node, ast.ImportFrom):
                one_each = [(one, ast.ImportFrom(node.module, [one], node.level)) for one in node.names]
                found |= {_bound_by(one): ast.unparse(each) for one, each in one_each if one.name != "*"}
    otherwise = defined(sources, imports=False)
    return {name: statement for name, statement in found.items() if name not in otherwise}


def _bound_by(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


# What a cell defines at its top level, by the look of its lines. No compiler may read a student's cell here,
# since a text can be made for which it takes minutes.
DEFINITION = re.compile(
    r"^(?:(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)"
    r"|(\w[\w, \t]*)(?::[^=\n]*)?=(?!=)"
    r"|(?:from[ \t]+\S+[ \t]+)?import[ \t](.+))",
    re.MULTILINE,
)


def names_defined(source: str) -> set[str]:
    """Return the names that a cell defines at its top level, and all words of its imports."""
    return {name for words in DEFINITION.findall(source) for name in re.findall(r"\w+", " ".join(words))}


def loaded(source: str) -> set[str]:
    """Return the names that a cell uses and does not define, without Python's own and such as `__file__`."""
    here = ((scope.get_type(), symbol) for scope in _scopes(source) for symbol in scope.get_symbols())
    used = [one for kind, one in here if one.is_referenced() and (one.is_global() or kind == "module")]
    names = {one.get_name() for one in used} - defined([source]) - set(dir(builtins))
    return {name for name in names if not name.startswith("__")}


@lru_cache(maxsize=1000)
def _scopes(source: str) -> tuple[symtable.SymbolTable, ...]:
    """The scope of a cell and all within it; none of what is no Python."""
    scopes, tree = list[symtable.SymbolTable](), _tree(source)
    with suppress(*NOT_PYTHON):
        text = ast.unparse(ast.fix_missing_locations(_Generators().visit(deepcopy(tree)))) if tree else ""
        scopes = [symtable.symtable(text, "cell", "exec")]
    for scope in scopes:  # the list grows meanwhile
        scopes += scope.get_children()
    return tuple(scopes)


@lru_cache(maxsize=1000)
def _tree(source: str) -> ast.Module | None:
    """A cell as Python reads it; None of what is no Python."""
    magic, _, body = source.lstrip().partition("\n")
    # What a cell magic such as %%time runs is a cell too, and may begin with another one.
    if magic.startswith("%%"):
        return _tree(body)
    with suppress(*NOT_PYTHON):
        # IPython's own reading of lines such as `%matplotlib inline` and `files = !ls`.
        return ast.parse(TransformerManager().transform_cell(source))
    return None


class _Generators(ast.NodeTransformer):
    """Comprehensions as generators: from Python 3.12 on, the names of others seem to be the module's own."""

    def visit(self, node: ast.AST) -> ast.AST:
        node = self.generic_visit(node)
        if isinstance(node, ast.DictComp):
            return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)
        if isinstance(node, ast.ListComp | ast.SetComp):
            return ast.GeneratorExp(node.elt, node.generators)
        return node


# --- titles as people read them, and answers to essays ----------------------------------------------------
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
_POINTS = re.compile(r"\s*\([^()]*\bpoints?\b[^()]*\)$")
# What nbgrader takes out of a cell stands between such lines, with any signs around, which may look like
# headings.
_REGION = re.compile(r"^[^\w\n]*(?:BEGIN|END) (?:[A-Z]+ )*(?:SOLUTION|TESTS|SCHEME)\b[^\w\n]*$", re.MULTILINE)
SCHEME = re.compile(
    r"^[^\w\n]*BEGIN MARK SCHEME[^\w\n]*$(.*?)^[^\w\n]*END MARK SCHEME[^\w\n]*$", re.MULTILINE | re.DOTALL
)


def title_of(content: bytes, name: str) -> str:
    """Return the title of an instructor's notebook: its first heading, or the name of its file."""
    texts = (cell.source for cell in parse_cells(content) if cell.cell_type == "markdown")
    return next((match[1] for match in map(HEADING.search, texts) if match), name)


def titles_of(content: bytes, reference: Iterable[ReferenceCell]) -> dict[str, str]:
    """Return a title for each graded cell: the last heading before it, and its name if others share it."""
    titles = {cell.name: "" for cell in reference if cell.grade or cell.task}
    heading = ""
    for cell in parse_cells(content):
        # The headings of an answer are no titles.
        if cell.cell_type == "markdown" and not is_solution(cell):
            headings = HEADING.findall(_REGION.sub("", cell.source))
            heading = _POINTS.sub("", headings[-1]) if headings else heading
        if (name := name_of(cell)) in titles:
            titles[name] = heading
    count = Counter(titles.values())
    for name, heading in titles.items():
        words = re.sub(r"[-_]+", " ", re.sub(r"[-_]test$", "", name)).strip()
        if not heading or count[heading] > 1:
            titles[name] = f"{heading}: {words}" if heading else words
    return titles


@dataclass(frozen=True)
class ModelAnswer:
    """An answer that an instructor wrote into the cell of an essay, which learners get without it."""

    text: str  # Markdown, or code
    scheme: str  # what earns points, as Markdown; empty where nothing says so
    in_code: bool = False

    @classmethod
    def of(cls, source: str, cell_type: str = "markdown") -> Self:
        """Read it from the source of an instructor's cell."""
        scheme = "\n".join(SCHEME.findall(source)).strip()
        text = _REGION.sub("", SCHEME.sub("", source)).strip()
        return cls(text, scheme, cell_type == "code")

    @property
    def markdown(self) -> str:
        """The answer as Markdown."""
        return f"```python\n{self.text}\n```" if self.in_code else self.text


@dataclass(frozen=True)
class GradedNotebook:
    """A notebook as all students have it: its titles and model answers, in Markdown, by graded cell."""

    name: str
    title: str
    reference: list[ReferenceCell]
    titles: Mapping[str, str]
    model_answers: Mapping[str, str] = field(default_factory=dict)
    given_out: Collection[str] = ()  # the texts of all cells, and the solution

    @classmethod
    def of(cls, name: str, cells: list[ReferenceCell], content: bytes) -> Self:
        """Read it from an instructor's notebook."""
        answers = {cell: answer.markdown for cell, answer in model_answers(content).items()}
        given_out = {cell.source.strip() for cell in parse_cells(content)}
        given_out |= {text.strip() for cell in cells for text in (cell.released, cell.source)}
        return cls(name, title_of(content, name), cells, titles_of(content, cells), answers, given_out)


def model_answers(content: bytes) -> dict[str, ModelAnswer]:
    """Return the model answers in an instructor's notebook, by cell, in its order."""
    essays = [cell for cell in parse_cells(content) if is_grade(cell) and is_solution(cell)]
    answers = {str(name_of(cell)): ModelAnswer.of(cell.source, cell.cell_type) for cell in essays}
    return {name: answer for name, answer in answers.items() if answer.text}
