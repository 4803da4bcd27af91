"""Rows as people read them, in text and in HTML."""

import sys

import numpy as np
import pytest
from bs4 import BeautifulSoup

from starvelab import PUBLISHED, Q_, Datasets, Hardware, Models, Pipeline
from starvelab.errors import MissingPackageError
from starvelab.show import stage_bars
from starvelab.tables import cell, percent, points, to_html, to_text
from starvelab.units import Quantity


@pytest.mark.parametrize(("value", "text"), [
    (None, ""), (Q_(11.743205, "ms"), "11.74 ms"), (True, "yes"), (np.False_, "no"), (256, "256"),
    (1_000_001, "1000001"), (np.int64(25557032), "25557032"), (0.41857, "0.4186"), (np.float64(2.0), "2"),
    ("CPU", "CPU"),
])  # fmt: skip
def test_a_cell_shows_a_value_as_people_write_it(value, text):
    assert cell(value) == text


def test_figures_align_to_the_right_and_words_to_the_left():
    text = to_text(["batch", "binds", "gain"], [[8, "CPU", "+12.5 %"], [256, "accelerator", "-3.0 %"]])
    assert [line.rstrip() for line in text.splitlines()] == [
        "  batch  binds           gain",
        "-------  -----------  -------",
        "      8  CPU          +12.5 %",
        "    256  accelerator   -3.0 %",
    ]
    # A gap or dots do not turn figures into words.
    text = to_text(["time"], [[Q_("8 ms")], [None], ["..."], [Q_("16.5 ms")]])
    assert [line.rstrip() for line in text.splitlines()[2:]] == ["   8 ms", "", "    ...", "16.5 ms"]
    # Text that looks like a number is left as it is.
    assert to_text(["what"], [["1e3"], ["007"]]).split()[-2:] == ["1e3", "007"]


def test_a_table_without_rows_is_its_headers_and_rows_may_come_from_a_generator():
    assert to_text(["a", "b"], []).splitlines()[0].split() == ["a", "b"]
    assert "<tbody></tbody>" in to_html(["a", "b"], [])
    assert "<td>2</td>" in to_html(["n"], ([n] for n in (1, 2)))
    assert "2" in to_text(["n"], ([n] for n in (1, 2)))


def test_html_names_its_columns_for_screen_readers_and_aligns_words_to_the_left():
    html = to_html(["time", "binds"], [[8, "CPU"], [Q_("8 ms"), "link"]], caption="A step")
    assert '<caption>A step</caption><thead><tr><th scope="col">time</th>' in html
    assert '<td>8</td><td style="text-align:left">CPU</td>' in html  # of figures the notebook decides
    assert "<td>8 ms</td>" in html
    html = to_html(["<b>"], [["<script>"]], caption="<i>")
    assert not any(typed in html for typed in ("<b>", "<script>", "<i>"))


def test_points_are_short_and_never_more_than_they_are_and_a_share_is_a_percentage():
    numbers = (3, 2.5, 2.25, 2.625, 2.9999, 7 / 3, 0.1 + 0.2)
    assert [points(one) for one in numbers] == ["3", "2.5", "2.25", "2.6", "2.9", "2.3", "0.3"]
    assert (percent(0.18349), percent(0.18349, 3)) == ("18.3 %", "18.349 %")


PIPE = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=32, workers=8)
SHOWN = {
    "step": PIPE.solve,
    "sweep": lambda: PIPE.sweep(workers=[4, 8]),
    "bill": lambda: PIPE.bill(price="2 USD/h", samples=1000),
    "epochs": lambda: PIPE.replace(dataset=Datasets.ImageNet, storage="1 GB/s").epochs(memory="64 GB"),
    "simulation": lambda: PIPE.simulate(batches=40),
    "crossover": PIPE.crossover,
    "workers needed": PIPE.workers_needed,
    "entry": lambda: Hardware.Cloud.A100,
    "assumptions": lambda: PUBLISHED,
    "figure": lambda: stage_bars(PIPE.solve()),
}


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("name", SHOWN)
def test_every_table_becomes_a_data_frame_or_says_what_to_install(name, monkeypatch):
    shown = SHOWN[name]()
    frame = shown.to_pandas()
    assert len(frame) == shown._repr_html_().count("<tr><td")
    assert not any(isinstance(value, Quantity) for value in frame.to_numpy().flat)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match=r"^to_pandas\(\) needs pandas, .* pip install pandas\.$"):
        shown.to_pandas()


@pytest.mark.needs("pandas")
def test_a_data_frame_holds_numbers_with_their_unit_in_the_name_of_their_column():
    step = PIPE.solve()
    frame = step.to_pandas()
    assert [*frame.columns] == ["resource", "time of a step [ms]", "idle"]
    assert frame["time of a step [ms]"].tolist() == [t.m_as("ms") for t in step.resource_times.values()]
    assert frame["idle"].tolist() == [*step.headroom.values()]
    assert PIPE.bill(price="2 USD/h").to_pandas()["money [USD]"].tolist() == [2.0]
    needed = PIPE.workers_needed().to_pandas()["value"].tolist()
    assert needed[0] == str(PIPE.workers_needed().workers), "a count and a bandwidth have no unit together"


@pytest.mark.needs("pandas")
def test_a_data_frame_of_a_long_sweep_has_all_of_its_rows():
    table = PIPE.sweep(batch_size=range(1, 101))
    frame = table.to_pandas()
    assert len(frame) == 100
    assert frame["throughput [img/s]"].tolist() == table["throughput"].m_as("img/s").tolist()
    assert frame["bottleneck"].tolist() == table["bottleneck"].tolist()


@pytest.mark.parametrize(("shown", "key", "value"), [
    (PIPE.solve(), "workers", "8 ms"),
    (PIPE.workers_needed(), "workers", str(PIPE.workers_needed().workers)),
    (PIPE.crossover(), "first batch that starves", str(PIPE.crossover().starves_from)),
    (PIPE, "hardware", "Hardware.Cloud.A100"),
])  # fmt: skip
def test_an_answer_and_a_pipeline_are_tables_in_a_notebook(shown, key, value):
    html = BeautifulSoup(shown._repr_html_(), "html.parser")
    rows = {row.td.text: row("td")[1].text for row in html("tr") if row.td}
    assert html.caption.text
    assert "None" not in rows.values()
    assert rows[key] == value


def test_an_obstacle_and_an_accelerator_that_is_always_fed_are_rows():
    narrow = PIPE.replace(storage="10 MB/s").workers_needed()
    assert [row[1] for row in narrow.rows if row[0] == "obstacle"] == [*narrow.obstacles] != []
    fed = Pipeline(hardware="10 img/s", workers="1000 img/s").crossover()
    assert (fed.rows, fed.summary) == ([], "The GPU binds at every batch size.")
    assert "<caption>The GPU binds at every batch size." in fed._repr_html_()


@pytest.mark.parametrize(("headers", "rows", "hint"), [
    (["batch", "step"], [[32, "5.856 ms"]], False),
    (["exercise", "how it stands"], [["Exercise 1.1: the step time, and more", "done, and right"]], False),
    (["what", "rate", "source"], [["training", "2470 img/s", "NVIDIA/DeepLearningExamples@729963dd"]], True),
])  # fmt: skip
def test_a_table_that_is_cut_on_a_phone_says_that_it_can_be_scrolled(headers, rows, hint):
    page = BeautifulSoup(to_html(headers, rows), "html.parser")
    assert "overflow-x:auto" in page.div["style"]
    assert page.div.table
    assert bool(page.find(class_="sl-hint")) == hint
