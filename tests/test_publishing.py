"""What is published is one list, each address follows from one place, and what installs it works today."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.assignments import REPOSITORY
from tests.documents import DOCS, DOCUMENTS, install_lines, load, published

ADDRESSES = load("addresses")
WORKFLOW = REPOSITORY / ".github" / "workflows" / "release.yml"
OF_HOSTS = re.compile(
    r"(?:github\.com|[\w-]+\.github\.io|raw\.githubusercontent\.com|mybinder\.org|colab\.research\.google\.com)/[^\s\"'`)\]>\\]+"
)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def files() -> list[Path]:
    """The text files of the repository in which an address stands."""
    return [path for path in ADDRESSES.tracked(REPOSITORY) if OF_HOSTS.search(read(path))]


def projects() -> dict[str, dict]:
    """What each folder that is published says of itself."""
    return {
        folder: tomllib.loads(read(REPOSITORY / folder / "pyproject.toml"))["project"]
        for folder in published()
    }


# --- addresses ---------------------------------------------------------------------------------------


def test_each_address_of_the_project_follows_from_one_place(files):
    owner, name = ADDRESSES.owner_and_name(REPOSITORY)
    right = re.compile("|".join(rf"{re.escape(one)}(?![\w-])" for one in ADDRESSES.addresses(owner, name)))
    ours = re.compile(rf"\b({owner}|{name}|starvelab)\b", re.IGNORECASE)
    found = {
        address: path.name
        for path in files
        for address in OF_HOSTS.findall(read(path))
        if ours.search(address)
    }
    assert len(found) > 40
    assert {address: path for address, path in found.items() if not right.search(address)} == {}


def test_one_command_moves_every_address_to_another_owner_and_back(files, tmp_path):
    for path in files:
        copy = tmp_path / path.relative_to(REPOSITORY)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    copies = [tmp_path / path.relative_to(REPOSITORY) for path in files]
    before, name = ADDRESSES.owner_and_name(tmp_path)
    other = f"{before}-Two"
    count = ADDRESSES.move(tmp_path, copies, other)
    assert count > 40
    assert ADDRESSES.owner_and_name(tmp_path) == (other, name)
    old = re.compile("|".join(rf"{re.escape(one)}\b" for one in ADDRESSES.addresses(before, name)))
    assert [copy for copy in copies if old.search(read(copy))] == []
    assert f"https://{other.lower()}.github.io/{name}/lite/" in read(tmp_path / "README.md")
    assert ADDRESSES.move(tmp_path, copies, before) == count
    assert [copy.read_bytes() for copy in copies] == [path.read_bytes() for path in files]


def test_an_owner_that_cannot_be_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["addresses.py", "ten lakes"])
    with pytest.raises(SystemExit):
        ADDRESSES.main()
    assert "has letters, digits and single hyphens, got 'ten lakes'" in capsys.readouterr().err


# --- what is published -------------------------------------------------------------------------------


def test_each_distribution_and_each_extra_that_is_published_exists():
    for folder, extras in published().items():
        assert set(extras) <= projects()[folder].get("optional-dependencies", {}).keys()


def test_the_checklist_for_owners_has_each_distribution_and_what_the_index_asks_for():
    job = yaml.safe_load(read(WORKFLOW))["jobs"]["publish"]
    address, *_ = ADDRESSES.addresses(*ADDRESSES.owner_and_name(REPOSITORY))
    for project in projects().values():
        row = f"| `{project['name']}` | `{address}` | `{WORKFLOW.name}` | `{job['environment']}` |"
        assert row in read(DOCS / "maintainers.md")


def test_each_line_that_installs_names_what_is_published_or_an_extra_of_the_checkout():
    names = {
        f"{projects()[folder]['name']}{extra}"
        for folder, extras in published().items()
        for extra in ("", *(f"[{one}]" for one in extras))
    }
    for folder, project in projects().items():
        here = folder if folder == "." else f"./{folder}"
        names |= {here, *(f"{here}[{extra}]" for extra in project.get("optional-dependencies", ()))}
    named = {re.sub(r"^git\+https://[\w./-]+", ".", named) for _, named in install_lines()}
    assert named <= names


def test_beside_each_line_of_the_index_stands_the_one_that_works_in_a_checkout():
    checked = 0
    told = {"CHANGELOG.md", "decisions.md"}  # what was done and why, which nobody types
    for path in (path for path in DOCUMENTS if path.name not in told):
        for section in re.split(r"^#+ ", read(path), flags=re.MULTILINE):
            for house, extra in re.findall(
                r"(?:pip install|uvx|uv tool) [^`\n]*?starvelab(?:-(doctor|grader))?(\[\w+\])?(?![\w-])",
                section,
            ):
                if house or extra:
                    checkout = f"./{house}{extra}" if house else f".{extra}"
                    assert checkout in section, f"{path.name}: no line of a checkout for {house}{extra}"
                checked += 1
    assert checked >= 3
