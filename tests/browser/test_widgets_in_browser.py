"""The widgets as a learner meets them: by keyboard, by mouse, after a restart, in two themes."""

import json

from playwright.sync_api import expect

IMPORTS = """from starvelab import Hardware, Models, Pipeline
from starvelab.widgets import explore, predict, reveal, scorecard"""

CHOICE = """predict("cpu-wall", question="Which resource sets the step?",
        choices=["storage", "CPU", "accelerator"])"""
NUMBER = """predict("busy", question="How busy is the accelerator?", unit="%")"""
REVEAL = """reveal("cpu-wall", "CPU", then=lambda: print("the story goes on"))"""
EXPLORE = """explore(Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=8),
        batch_size=(1, 1024), workers=(1, 64))"""


# The number of the cell that has the focus itself.
CELL_OF_FOCUS = "() => [...document.querySelectorAll('.jp-Cell')].indexOf(document.activeElement)"


def stored(notebook) -> dict:
    path = notebook.path.with_name("predictions.json")
    return json.loads(path.read_text()) if path.exists() else {}


def sources(notebook) -> list[str]:
    return [cell["source"] for cell in notebook.cells()]


def press(notebook, *keys: str) -> None:
    for key in keys:
        notebook.page.keyboard.press(key)
        notebook.page.wait_for_timeout(50)


def focused(notebook) -> str:
    """What has the focus: its role or tag, and its name, value or text."""
    return notebook.page.evaluate(
        """() => {
            const node = document.activeElement;
            return [node.getAttribute('role') || node.type || node.tagName,
                    node.dataset.value || node.getAttribute('aria-label')
                    || node.labels?.[0]?.textContent || node.textContent].join(': ');
        }"""
    )


def active_cell(notebook) -> int:
    return notebook.page.evaluate("() => jupyterapp.shell.currentWidget.content.activeCellIndex")


def test_predictions_are_made_by_keyboard_alone_also_while_a_kernel_works_and_stay_locked_after_it_restarts(
    opened,
):
    # While a kernel works, the page holds back what follows the first change of a control; a click it sends.
    slow = "for one in (box.answer, box.confidence): one.observe(lambda _: time.sleep(0.5), names='value')"
    late = NUMBER.replace('"busy"', '"late"')
    notebook = opened(f"{IMPORTS}\nimport time", CHOICE, NUMBER, f"box = {late}\n{slow}\nbox")
    notebook.run_all()
    before = sources(notebook)
    box, number, other = (notebook.cell(index).locator(".starvelab-box") for index in (1, 2, 3))

    # Enter the box as Tab does, from what stands before it.
    box.locator("input[type=radio]").first.focus()
    press(notebook, "Space", "ArrowDown")
    assert focused(notebook) == "radio: CPU"
    press(notebook, "Tab")
    assert focused(notebook) == "slider: How sure are you?"
    press(notebook, "ArrowRight", "ArrowRight", "ArrowRight")
    press(notebook, "Tab")
    assert focused(notebook) == "submit: Lock my prediction"
    press(notebook, "Enter")

    expect(box).to_contain_text('You predicted "CPU", 40 % sure')
    # The button is disabled now; the box has the focus, and whoever locked goes on from there.
    notebook.page.wait_for_function("() => document.activeElement.matches('.starvelab-box')")
    press(notebook, "Tab", "Tab")
    assert focused(notebook) == "text: My answer"
    press(notebook, "Escape", "ArrowUp")
    assert active_cell(notebook) == notebook.page.evaluate(CELL_OF_FOCUS) == 1, "Escape leaves the box"

    number.locator("input[type=text]").focus()
    expect(number.locator("input[type=text]")).to_have_css("outline-style", "solid")
    notebook.page.keyboard.type("18.3")
    press(notebook, "Enter")
    assert focused(notebook) == "slider: How sure are you that your number is within a quarter of the answer?"
    press(notebook, "ArrowRight", "Tab", "Space")
    expect(number).to_contain_text("You predicted 18.3 %, 0 % sure to be within a quarter of the answer")
    other.locator("input[type=text]").focus()
    notebook.page.keyboard.type("12.8")
    press(notebook, "Tab", *["ArrowRight"] * 5)
    other.get_by_role("button").click()
    expect(other).to_contain_text("You predicted 12.8 %, 20 % sure to be within a quarter of the answer")
    written = stored(notebook)
    assert (written["cpu-wall"]["answer"], written["cpu-wall"]["confidence"]) == ("CPU", 0.4)
    assert [written["busy"][name] for name in ("answer", "unit", "confidence")] == [18.3, "%", 0]
    assert sources(notebook) == before

    notebook.restart_kernel()
    notebook.command("notebook:clear-all-cell-outputs")
    notebook.run_all()
    expect(box).to_contain_text('You predicted "CPU"')
    expect(box.get_by_label("CPU")).to_be_checked()
    for control in box.locator("input, button").all():
        expect(control).to_be_disabled()
    assert stored(notebook) == written


# As where JupyterLab has no anywidget: nobody has registered a module of that name.
WITHOUT_ANYWIDGET = f"""import traitlets
from starvelab.lesson.widgets import keyboard
usual = keyboard._Keyboard
class Missing(usual):
    _model_module = _view_module = traitlets.Unicode("not-installed").tag(sync=True)
keyboard._Keyboard = Missing
box = {CHOICE.replace("cpu-wall", "other")}
keyboard._Keyboard = usual
box"""


def test_shift_enter_in_a_widget_runs_the_cell_no_other_key_reaches_the_notebook_and_a_mouse_needs_no_script(
    opened,
):
    plain = "import ipywidgets\nipywidgets.RadioButtons(options=['a', 'b'])"
    notebook = opened(IMPORTS, CHOICE, plain, WITHOUT_ANYWIDGET)
    notebook.run_all()
    box = notebook.cell(3).locator(".starvelab-box")
    expect(box.get_by_role("radiogroup")).to_have_count(0)  # the script is missing indeed
    box.locator("label", has_text="CPU").click()
    box.get_by_role("button").click()
    expect(box).to_contain_text('You predicted "CPU"')
    # JupyterLab's own words stand in the hidden part of the box.
    broken = box.get_by_text("Click to show javascript error")
    expect(broken).to_have_count(1)
    expect(broken).to_be_hidden()

    count = notebook.cells()[1]["count"]
    notebook.cell(1).locator("input[type=radio]").first.focus()
    press(notebook, "Shift+Enter")
    notebook.page.wait_for_function(
        "count => jupyterapp.shell.currentWidget.content.widgets[1].model.executionCount > count", arg=count
    )
    notebook.wait_until_idle()

    notebook.cell(1).locator(".jp-InputArea-editor").click()
    press(notebook, "Escape")
    before, place = sources(notebook), active_cell(notebook)
    for key in ("x", "b", "a", "d", "z", "m", "ArrowDown", "ArrowUp", "Enter", "Space", "j", "k"):
        for part in ("input[type=radio]", "[role=slider]", "button"):
            # If a key before this one did reach the notebook, the cell may be gone: fail soon.
            notebook.cell(1).locator(part).first.focus(timeout=5000)
            press(notebook, *([key] if key != "d" else ["d", "d"]))
        assert (sources(notebook), active_cell(notebook)) == (before, place), key
    # On a plain radio button one of these keys does cut the cell: what stands above can fail.
    notebook.cell(2).locator("input[type=radio]").first.focus()
    press(notebook, "x")
    notebook.page.wait_for_function("() => jupyterapp.shell.currentWidget.content.widgets.length === 3")


def test_a_choice_can_be_predicted_by_mouse_and_is_then_revealed(opened):
    notebook = opened(IMPORTS, CHOICE, REVEAL, "scorecard()")
    notebook.run_all()
    box = notebook.cell(1).locator(".starvelab-box")
    revealed = notebook.cell(2).locator(".jp-Cell-outputWrapper")
    expect(revealed).to_contain_text("Lock your prediction above first")
    expect(revealed).not_to_contain_text("the story goes on")

    box.get_by_role("button").click()
    expect(box).to_contain_text("Choose one of the answers first")
    box.get_by_label("accelerator").click()
    box.get_by_role("button").click()
    expect(box).to_contain_text('You predicted "accelerator"')
    expect(box.get_by_role("button")).to_be_disabled()
    expect(revealed).to_contain_text("Miss. The answer is")
    expect(revealed).to_contain_text("the story goes on")
    expect(revealed).not_to_contain_text("Lock your prediction above first")
    lesson = revealed.get_by_role("textbox", name="What did this teach you?")
    expect(lesson).to_be_visible()
    woken = revealed.inner_text()
    lesson.fill("The CPU sets the step.")
    expect(lesson).to_have_css("outline-style", "solid")
    press(notebook, "Tab")
    expect(revealed).to_contain_text("It is kept for your lab report.")
    expect(revealed.locator(".widget-output")).to_have_count(1)

    notebook.run_all()
    expect(revealed.locator(".widget-output")).to_have_count(0)
    assert revealed.inner_text() == woken
    expect(lesson).to_have_value("The CPU sets the step.")
    expect(notebook.cell(3)).to_contain_text("0 of 1 revealed prediction came true")
    assert stored(notebook)["cpu-wall"]["hit"] is False


def test_an_explorer_opens_with_its_prediction_follows_a_slider_and_keeps_its_table_open(opened):
    after = EXPLORE.replace("batch_size=(1,", 'after="cpu-wall", batch_size=(1,')
    notebook = opened(IMPORTS, CHOICE, CHOICE.replace("cpu-wall", "second"), after)
    notebook.run_all()
    first, second, box = (notebook.cell(index).locator(".starvelab-box") for index in (1, 2, 3))
    expect(box).to_contain_text("This explorer opens when you have locked your prediction")
    expect(box.locator("svg")).to_have_count(0)
    first.get_by_label("CPU").click()
    second.get_by_label("storage").click()
    expect(first.get_by_label("CPU")).to_be_checked()
    expect(second.get_by_label("storage")).to_be_checked()
    first.get_by_role("button").click()
    expect(box.locator("svg")).to_have_count(1)
    expect(box).not_to_contain_text("This explorer opens")

    title = box.locator("svg > title")
    before = title.text_content()
    handle = box.get_by_role("slider", name="batch size")
    start = handle.bounding_box()
    x, y = start["x"] + start["width"] / 2, start["y"] + start["height"] / 2
    notebook.page.mouse.move(x, y)
    notebook.page.mouse.down()
    for step in range(1, 21):
        notebook.page.mouse.move(x - 2 * step, y)
    notebook.page.mouse.up()
    expect(title).not_to_have_text(before)

    # The picture is drawn again before the page hears that its table was opened.
    # In one piece of script: what the slider has asked for may be drawn at any moment.
    drawn = "const table = box.querySelector('details'), drawn = table.cloneNode(true)"
    click = "table.querySelector('summary').click()"
    box.evaluate(f"box => {{ {drawn}; {click}; table.replaceWith(drawn); }}")
    cell = box.locator("td").nth(1)
    expect(cell).to_be_visible()
    before = cell.text_content()
    handle.focus()
    press(notebook, "PageDown")
    expect(cell).not_to_have_text(before)
    expect(cell).to_be_visible()


def test_widgets_can_be_read_in_both_themes_and_narrow_windows_and_each_control_has_a_name(opened):
    notebook = opened(
        IMPORTS, CHOICE, NUMBER,
        'predict("done", "CPU", question="Which of the two?", choices=["CPU", "GPU"])', 'predict("done")',
        'reveal("done", "GPU")', EXPLORE, "scorecard()", "Hardware.Cloud.A100",
    )  # fmt: skip
    notebook.run_all()
    assert notebook.errors() == []
    page = notebook.page
    expect(page.get_by_role("radiogroup", name="Which resource sets the step?")).to_have_count(1)
    expect(page.get_by_role("textbox", name="My answer")).to_have_count(2)
    sure = page.get_by_role("slider", name="How sure are you?", exact=True).first
    expect(sure).to_have_attribute("aria-valuetext", "not said yet")
    expect(page.get_by_role("slider", name="workers")).to_have_count(1)
    expect(page.get_by_role("group", name="Explorer: batch size, workers")).to_have_count(1)
    assert notebook.pictures_without_words() == []
    for theme in ("light", "dark"):
        notebook.set_theme(theme)
        assert notebook.faint_texts() == [], f"in the {theme} theme"
    # In a narrow window a slider stands below its question and is not cut off.
    box, usual = notebook.cell(2).locator(".starvelab-box"), page.viewport_size
    page.set_viewport_size({"width": 390, "height": 800})
    try:
        # The question stands there to its end, on as many lines as it takes.
        cut_off = "it => [it.scrollHeight - it.clientHeight > 1, it.scrollWidth > it.clientWidth]"
        assert box.locator(".widget-hslider .widget-label").evaluate(cut_off) == [False, False]
        whole = box.bounding_box()
        for name in (".widget-hslider .widget-label", ".noUi-target", ".widget-readout", "button"):
            part = box.locator(name).first.bounding_box()
            assert part["x"] + part["width"] <= whole["x"] + whole["width"] + 1, name
        # A wider one has the slider of an explorer and its number in one line.
        page.set_viewport_size({"width": 480, "height": 800})
        names = (".noUi-target", ".widget-readout")
        slider, readout = (notebook.cell(6).locator(name).first.bounding_box() for name in names)
        assert abs(slider["y"] + slider["height"] / 2 - readout["y"] - readout["height"] / 2) < 8
        for place, name in ((6, ".widget-readout"), (8, "table")):
            whole = notebook.cell(place).locator(".jp-OutputArea-output").bounding_box()
            part = notebook.cell(place).locator(name).first.bounding_box()
            assert part["x"] + part["width"] <= whole["x"] + whole["width"] + 3, name
    finally:
        page.set_viewport_size(usual)


def test_a_figure_takes_the_color_of_the_theme_and_an_explorer_is_read_on_a_phone(opened):
    notebook = opened(
        "from starvelab import Pipeline, Samples, Hardware, Models\n"
        "from starvelab.show import loader_timeline\nfrom starvelab.widgets import explore\n"
        "pipe = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=8)\n"
        "loader_timeline(pipe.simulate(replicas=1))",
        "explore(pipe, {'workers.count': (1, 64)})",
    )
    page = notebook.page
    notebook.run_all()
    plot = page.locator("figure svg[role=img]")
    inks = []
    for theme in ("light", "dark"):
        notebook.set_theme(theme)
        inks.append(plot.evaluate("one => getComputedStyle(one).color.match(/\\d+/g).map(Number)"))
        assert notebook.faint_texts() == []
    assert max(inks[0][:3]) < 100 < 180 < min(inks[1][:3])
    notebook.set_theme("light")
    size = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 844})
    try:
        page.wait_for_timeout(500)
        picture = page.locator(".jp-OutputArea svg[role=img]").last
        picture.scroll_into_view_if_needed()
        shown = picture.evaluate("one => 14 * one.getBoundingClientRect().width / one.viewBox.baseVal.width")
        assert shown >= 11, f"{shown:.1f} pixels"
    finally:
        page.set_viewport_size(size)


def test_a_long_line_of_code_is_broken_and_not_cut_off(opened):
    notebook = opened(f"said = '{40 * 'word '}'")
    assert notebook.cell(0).locator(".cm-scroller").evaluate("it => it.scrollWidth <= it.clientWidth")
