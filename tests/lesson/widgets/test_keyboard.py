"""The box and its script, as far as they can be seen without a browser; tests/browser/ presses the keys."""

import ipywidgets

from starvelab.lesson.widgets.keyboard import Box


def test_a_box_hands_its_name_and_its_script_to_the_page():
    box = Box("My group", [ipywidgets.Label("inside")])
    script = box.children[-1].children[0]
    assert script.name == "My group"
    assert "keydown" in script._esm
    assert ".starvelab-box" in script._css


def test_what_is_to_follow_changes_waits_for_the_page_that_answers_and_for_no_other():
    box, acted = Box("My group", []), []
    box.after_changes(lambda: acted.append("no page"))
    assert acted == ["no page"]
    script = box.children[-1].children[0]
    script.answers = True
    box.after_changes(lambda: acted.append("page"))
    assert acted == ["no page"]
    for _window in range(2):  # each that shows the box answers
        script._handle_custom_msg({}, [])
    assert acted == ["no page", "page"]
