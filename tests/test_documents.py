"""The documents are right: examples run, links lead somewhere, tables and lists agree with their sources."""

import doctest
import inspect
import re
from itertools import chain
from pkgutil import resolve_name

import pytest

from benchmarks import report, results
from benchmarks.solve_path import lines_of, solve
from starvelab import Pipeline, show
from starvelab.tables import percent
from tests.assignments import EXPECTED, REPOSITORY
from tests.documents import DOCS, DOCUMENTS, PAGES, anchors, load, sources, text_of, without_code

pytestmark = pytest.mark.programs

each_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
README, INDEX, LEARNERS = (
    (REPOSITORY / page).read_text(encoding="utf-8")
    for page in ("README.md", "docs/index.md", "docs/learners.md")
)


@pytest.fixture(scope="module")
def build():
    for house in ("starvelab_doctor", "starvelab_grader"):  # the pages take parts from each
        pytest.importorskip(house)
    return load("build")


# --- what is generated -----------------------------------------------------------------------------------


def test_the_generated_parts_are_fresh_and_a_stale_one_is_written_anew(build, tmp_path, capsys):
    for page in (*(f"docs/{page}" for page, _ in build.PARTS.values()), *build.FILES):
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / page).write_text((REPOSITORY / page).read_text(encoding="utf-8"), encoding="utf-8")
    page = tmp_path / "docs/how-right.md"
    text = re.sub(r"\| [\d.]+ % \|", "| 99.9 % |", page.read_text(encoding="utf-8"), count=1)
    page.write_text(text, encoding="utf-8")
    assert build.main(["--check"], tmp_path) == 1
    assert capsys.readouterr().out == (
        "docs/how-right.md: the part 'how-right' is stale\n"
        "Restore it with: python docs/build.py (or: make build)\n"
    )
    for drawn in build.FILES:
        (tmp_path / drawn).unlink()
    assert build.main([], tmp_path) == 0
    for written in ("docs/how-right.md", *build.FILES):
        new, kept = ((root / written).read_text(encoding="utf-8") for root in (tmp_path, REPOSITORY))
        assert new == kept, written


def test_a_page_without_a_place_for_its_part_is_refused(build):
    with pytest.raises(ValueError, match="A page with the part 'layers' needs the lines <!-- begin layers"):
        build.with_part("# Architecture\n", "layers", "text")


# --- examples, commands, names ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["README.md", "docs/package.md", "docs/compare.md"])
def test_each_example_prints_what_the_document_shows(name):
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(>>>.*?)```", text, flags=re.DOTALL)
    assert blocks, f"{name} has no example"
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, name, 0)
    result = doctest.DocTestRunner().run(example)
    assert result.attempted > 0
    assert result.failed == 0


@each_document
def test_each_make_target_and_each_path_that_is_named_exists(path):
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"(?:`|^ *)make ([a-z-]+)", text_of(path), flags=re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    folders = "benchmarks|binder|docs|doctor|grader|labs|solutions|starvelab|tests"
    for name in set(re.findall(rf"`((?:{folders})/[a-z][\w./-]*)`", text_of(path))):
        if "_build" not in name and not re.search(r"[A-Z]{3}|NN_", name):  # a name to be filled in
            assert (REPOSITORY / name).exists(), name


def test_each_file_and_each_function_of_the_walks_exists():
    walks = (DOCS / "architecture.md").read_text(encoding="utf-8").split("## One solve")[1]
    written = "\n".join(path.read_text(encoding="utf-8") for path in sources())
    defined = set(re.findall(r"^ *(?:def|class) (\w+)|^(\w+) = ", written, re.MULTILINE))
    names = {name for pair in defined for name in pair if name}
    for named in set(re.findall(r"`([\w./]+)`", walks)):
        if named.endswith(".py"):
            assert any(path.as_posix().endswith(f"/{named}") for path in sources()), named
        elif re.search(r"_|[a-z][A-Z]", named) and "/" not in named and not named.startswith("Models."):
            assert named.rpartition(".")[2] in names, named


def test_the_walk_of_a_solve_names_the_files_that_it_runs_in_their_order():
    walk = (DOCS / "architecture.md").read_text(encoding="utf-8").split("## One solve")[1].split("\n## ")[0]
    named = re.findall(r"^\d+\. `([\w/.]+)`", walk, flags=re.MULTILINE)
    lines, _ = lines_of(solve)
    assert named == [*lines]


def test_each_file_and_each_table_that_a_recipe_names_exists():
    recipes = without_code((REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    folders = "starvelab|doctor|grader|tests|docs|benchmarks"
    for name in set(re.findall(rf"(?<![\w/])(?:{folders})/[\w./-]*\w", recipes)):
        if not re.search(r"NAME|ASSIGNMENT", name):  # a name to be filled in
            assert (REPOSITORY / name).exists(), f"CONTRIBUTING.md names {name}, and there is no such file"
    folders = (REPOSITORY / folder for folder in ("docs", "tests", "grader/tests"))
    files = [*sources(), *chain.from_iterable(folder.rglob("*.py") for folder in folders)]
    written = "\n".join(path.read_text(encoding="utf-8") for path in files)
    for name in set(re.findall(r"`(_\w+|[A-Z][A-Z_]+)`", recipes)):
        if not re.fullmatch(r"_[a-z_]+", name):  # an ending of names, such as _dense
            defined = re.search(rf"^ *{name}\b.* = ", written, flags=re.MULTILINE)
            assert defined, f"CONTRIBUTING.md names {name}, and nothing defines it"


def test_each_notebook_has_a_page_and_a_row_and_the_readme_fits_on_two_screens():
    menu = {
        caption: re.findall(r"^(?:learners/([\w-]+)/)?([\w-]+)$", pages, flags=re.MULTILINE)
        for caption, pages in re.findall(r"```{toctree}\n:hidden:\n:caption: (.+)\n\n([^`]+)```", INDEX)
    }
    site = load("addresses").SITE
    for assignment, names in EXPECTED.items():
        assert menu[assignment] == [(assignment, name) for name in names], (
            "The menu of docs/index.md lists the notebooks as EXPECTED in tests/assignments.py does"
        )
        for name in names:
            row = f"| [{name}]({site}learners/{assignment}/{name}.html) |"
            assert row in LEARNERS, f"docs/learners.md has no row for {name}"
        assert f"| `{assignment}` |" in README, f"README.md has no row for {assignment}"
    assert len(README.splitlines()) <= 90
    # Before a class has answered, it is not shown how.
    assert "model-answers" not in INDEX


@pytest.mark.needs("starvelab_grader")  # which docs/build.py imports
def test_an_afternoon_takes_at_most_100_minutes_and_every_door_offers_it():
    _, rows = load("build").course.afternoon()
    *parts, (_, _, whole) = rows
    assert sum(int(minutes) for _, _, minutes in parts) == int(whole) <= 100
    assert len(parts) == 5 + 2
    first = next(iter(EXPECTED))
    for door in ("docs/index.md", "docs/instructors.md", f"solutions/{first}/01_compute_baseline.py"):
        assert "afternoon" in (REPOSITORY / door).read_text(encoding="utf-8"), door


@pytest.mark.needs("starvelab_grader")  # which docs/build.py imports
def test_the_first_page_is_the_picture_a_question_two_buttons_and_three_rows():
    page = INDEX.partition("```{toctree}")[0]
    question = re.search(r"^\*\*.+\?\*\*$", page, flags=re.MULTILINE)
    assert page.index("pictures/moving.svg") < question.start() < page.index('<p class="start">')
    (buttons,) = re.findall(r'<p class="start">(.*?)</p>', page, flags=re.DOTALL)
    game, lab = re.findall(r'<a href="(.*?)">', buttons)
    assert (DOCS / "_extra" / game).is_file()
    assert lab.startswith(f"{load('addresses').IN_A_TAB}{next(iter(EXPECTED))}/01_")
    assert len(re.findall(r"^\| ", page, flags=re.MULTILINE)) == 1 + 3
    assert "(afternoon.md)" in page
    # Picture, example, first notebook and the text tell the same story.
    build = load("build")
    assert percent(build.WALL.solve().utilization, 0) == "40 %"
    picture = (DOCS / "pictures/moving.svg").read_text(encoding="utf-8")
    assert "waits 60 % of the time" in picture
    assert "is busy 40.0%" in README
    assert "at 40 %" in README
    assert "18.3" not in README
    source = (REPOSITORY / "solutions/starving-the-gpu/01_compute_baseline.py").read_text(encoding="utf-8")
    for words in ('hardware="20 ms"', 'cpu_time="6.25 ms"', "batch_size=64", "workers=8", "says 40 %"):
        assert words in source, words
    # The README begins with the same picture, and a still of it shows a GPU that waits.
    first = re.sub(r"<style>.*?</style>", "", picture)
    shown = [tag for tag in re.findall(r"<path[^>]*>", first) if 'visibility="hidden"' not in tag]
    assert any("M24 42h16M60 42h16M34 74q16 -14 32 0" in tag for tag in shown), "its face is not sad"
    assert README.startswith("# starvelab\n\n![")
    assert re.findall(r"!\[(.*)\]", README)[0] == re.findall(r"!\[(.*)\]", page)[0]


def test_each_figure_and_each_question_of_a_pipeline_is_in_the_api_reference():
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    for name in vars(Pipeline):
        listed = name.startswith("_") or name == "solve" or f".. automethod:: Pipeline.{name}\n" in page
        assert listed, f"docs/api.md does not list Pipeline.{name}"
    # Tab shows what the page shows: the fields, which are parameters, and the methods.
    fields = inspect.signature(Pipeline).parameters
    members = re.findall(r"^\.\. automethod:: Pipeline\.(\w+)$", page, flags=re.MULTILINE)
    shown = {*fields, "replace", "solve", *members} - {"unknown", "values"}
    assert dir(Pipeline(hardware="1 ms")) == sorted(shown)
    assert ".. autoclass:: Pipeline\n   :members: replace, solve\n" in page
    for name in set(show.__all__) - {"svg"}:
        assert f".. autofunction:: starvelab.show.{name}\n" in page, f"docs/api.md does not list {name}"


@pytest.mark.needs("starvelab_doctor", "starvelab_grader")
def test_all_that_the_api_reference_lists_exists():
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\.\. auto\w+:: (\S+)\n(?:   :members: (.+))?", page, flags=re.MULTILINE)
    assert len(listed) > 80
    for name, members in listed:
        one = resolve_name(f"starvelab:{name}" if name[0].isupper() else name)
        for member in filter(None, members.split(", ")):
            assert hasattr(one, member), f"docs/api.md lists {name}.{member}"


# --- links -----------------------------------------------------------------------------------------------


@each_document
def test_each_link_within_the_repository_leads_somewhere_and_a_picture_is_small_and_described(path):
    links = re.findall(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", without_code(path.read_text(encoding="utf-8")))
    for is_picture, words, link in links:
        if re.match(r"https?:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{path.name} links to {link}, and there is no such file"
        if anchor:
            assert anchor in anchors(target), f"{path.name} links to {link}, and there is no such heading"
        if is_picture:
            assert len(words.split()) >= 5, name
            assert target.stat().st_size < 150_000, name


def test_each_page_is_in_a_table_of_contents_of_the_site():
    blocks = [
        (path, block)
        for path in PAGES
        for block in re.findall(r"```{toctree}\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    ]
    listed = {line for _, block in blocks for line in block.splitlines() if line and not line.startswith(":")}
    pages = {path.stem for path in PAGES} - {"index"}
    assert {one for one in listed if "/" not in one} == pages


# --- the results of the benchmarks -----------------------------------------------------------------------


def test_a_benchmark_keeps_its_result_where_it_is_asked_to_and_the_other_rows_stay(tmp_path, monkeypatch):
    written = [report.number(value) for value in (0.2312, 10_123, 21_300_000, 34.06)]
    assert written == ["0.231", "10,100", "21 million", "34.1"]
    file = tmp_path / "results.json"
    monkeypatch.delenv(results.SAVE, raising=False)
    results.save("a", "what a is", "1 s", path=file)
    assert not file.exists()
    monkeypatch.setenv(results.SAVE, "1")
    results.save("a", "what a is", "1 s", path=file)
    results.save("b", "what b is", "2 s", "4 s", "2 times", path=file)
    results.save("a", "what a is", "3 s", path=file)
    rows = results.read(file)
    assert list(rows) == ["a", "b"]
    assert (rows["a"]["starvelab"], rows["b"]["ratio"]) == ("3 s", "2 times")
