"""The table of what can be set in a course's configuration: complete for the grader, with its defaults."""

import ast
import re

from starvelab_grader import IsolatedExecute
from starvelab_grader.commands.grade import FeedbackApp, GradeApp
from starvelab_grader.commands.mark import MarkApp
from tests.documents import DOCS

CLASSES = {each.__name__: each for each in (IsolatedExecute, GradeApp, FeedbackApp, MarkApp)}


def test_the_table_has_the_graders_settings_with_their_defaults():
    text = (DOCS / "your-own-assignments.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `c\.(\w+)\.(\w+)` \| .* \| (.*) \|$", text, flags=re.MULTILINE)
    for owner, name, default in rows:
        if owner in CLASSES and default.startswith("`"):
            assert ast.literal_eval(default.strip("`")) == CLASSES[owner].class_traits()[name].default(), name
    inner = {"runners", "shown_warnings", "enabled"}  # which the grader itself sets
    listed = {name for owner, name, _ in rows if owner == "IsolatedExecute"}
    assert listed == IsolatedExecute.class_traits(config=True).keys() - inner
