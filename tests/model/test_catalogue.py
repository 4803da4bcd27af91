"""Facts with their sources: nothing loads without one, and a name that is wrong says which was meant."""

import tomllib
from importlib.resources import files

import pytest

from starvelab import (
    Q_,
    Datasets,
    Hardware,
    InputError,
    Links,
    MissingValueError,
    Models,
    Storage,
    UnknownNameError,
)
from starvelab.model.catalogue import FIELDS, Group, entry_at, read_group
from starvelab.model.facts import KINDS, Fact
from starvelab.model.rates import measured_rate, measured_rates
from starvelab.units import positive
from tests.rejected import bare, message, not_positive, not_whole, other_dimension

GROUPS = {"Hardware": Hardware, "Storage": Storage, "Links": Links, "Models": Models, "Datasets": Datasets}
A100 = Hardware.Cloud.A100


GUESS = ', kind = "assumption", note = "n"'


def hardware(figures):
    """The entry of a file with one accelerator that has these lines."""
    return read_group("Hardware", tomllib.loads(f'[Cloud.X]\nname = "X"\n{figures}'))["Cloud"].X


# ---- What is in it -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", GROUPS)
def test_every_fact_of_every_entry_has_a_sane_figure_and_says_where_it_comes_from(kind):
    for entry in GROUPS[kind]:
        text, html = repr(entry), entry._repr_html_().replace("_<wbr>", "_")
        assert text.startswith(f"{entry.name}  ({kind}.{entry.path})\n")
        for name, fact in entry.facts.items():
            assert (name in html, name in text, fact.origin in text) == (True, True, True), entry.path
            unit, place = FIELDS[kind][name], f"{entry.path}.{name}"
            if unit == "count":
                assert type(fact.value) is int, place
                assert fact.value >= 1, place
            elif unit == "counts":
                assert (fact.value[0] >= 1, sorted(fact.value)) == (True, [*fact.value]), place
            elif unit == "word":
                assert fact.value.isalnum(), place
            else:
                assert positive(fact.value, unit, name) > 0, place
            assert fact.kind in KINDS, place
            assert len(fact.note if fact.kind == "assumption" else fact.source) > 10, place


def test_the_card_of_an_accelerator_shows_the_four_rows_that_matter_and_folds_the_others():
    shown, _, folded = Hardware.Cloud.A100._repr_html_().replace("_<wbr>", "_").partition("<details>")
    assert shown.count("<tr>") == 1 + 4
    for name in ("peak_fp16_dense", "memory_capacity", "memory_bandwidth", "link_bandwidth_each_way"):
        assert (name in shown, name in folded) == (True, False)
    assert '<td style="white-space: nowrap">312 TFLOP/s</td>' in shown
    others = len(Hardware.Cloud.A100.facts) - 4
    assert f"{others} more</summary>" in folded
    assert "<details>" not in Models.ResNet50._repr_html_()


def test_nothing_copies_faster_than_its_link_peaks():
    for link in Links:
        sustained = link.get("bandwidth_pinned_sustained", link.bandwidth_each_way)
        assert link.get("bandwidth_pageable_sustained", sustained) <= sustained <= link.bandwidth_each_way


# ---- Loading -----------------------------------------------------------------------------------------------


def test_a_file_is_read_when_something_in_it_is_first_asked_for():
    group = Group("Links")
    assert group.__dict__["_members"] is None
    assert group.PCIe4_x16.name == "PCI Express 4.0 x16"
    assert group.__dict__["_members"] is not None


UNSOURCED = "A fact needs its source, got none for 80 GB. Name the document, and the table in it."


@pytest.mark.parametrize(("line", "error", "expected"), [
    ('memory_capacity: value = "80 GB", kind = "datasheet"', InputError, UNSOURCED),
    ('memory_capacity: value = "80 GB", kind = "paper", note = "somewhere"', InputError, UNSOURCED),
    ('host_cores: value = 16, kind = "assumption"', InputError,
     "An assumption needs a note, got none for 16. Say why it has this value."),
    (
        'host_cores: value = 16, kind = "rumour", note = "n"',
        InputError,
        "A fact's kind must be one of datasheet, paper, measured, assumption, got 'rumour'. Say where "
        "it is from.",
    ),
    ("host_cores: value = 16.5" + GUESS, InputError, not_whole(host_cores=16.5)[1]),
    (
        'memory_capacity: value = "80 Gb"' + GUESS,
        InputError,
        "A unit must be unambiguous, got '80 Gb': Gb could be bits or bytes. Write GB for bytes or "
        "Gbit for bits.",
    ),
    *(
        (f"memory_capacity: value = {row[0]['memory_capacity']!r}" + GUESS, InputError, row[1])
        for row in (
            other_dimension("GB", memory_capacity="80 GB/s"),
            not_positive(memory_capacity="-80 GB"),
            bare("GB", memory_capacity=80),
        )
    ),
    ('memory_capacity: value = "80 GB", low = "1 s", high = "90 GB"' + GUESS, InputError,
     other_dimension("GB", memory_capacity="1 s")[1]),
    ('memory_capcity: value = "80 GB"' + GUESS, UnknownNameError,
     "A Hardware entry has no 'memory_capcity'. Did you mean memory_capacity?"),
    ('memory_capacity: value = "80 GB", kind = "paper", souce = "s"', InputError,
     "A fact has value and kind, and source or note, got value, kind, souce. Check the spelling."),
    ('memory_capacity: kind = "paper", source = "s"', InputError,
     "A fact has value and kind, and source or note, got kind, source. Check the spelling."),
])  # fmt: skip
def test_a_line_that_is_wrong_is_refused_with_its_place(line, error, expected):
    field, fact = line.split(": ", 1)
    assert message(error, hardware, f"{field} = {{ {fact} }}") == f"Hardware.Cloud.X.{field}: {expected}"


# ---- Asking ------------------------------------------------------------------------------------------------


def test_figures_are_attributes_and_complete_with_tab_and_a_group_lists_its_entries():
    assert "memory_bandwidth" in dir(A100)
    assert "storage_bandwidth" not in dir(Hardware.Cloud.T4)
    assert "Cloud" in dir(Hardware)
    assert "A100" in dir(Hardware.Cloud)
    assert repr(Links) == "Links: PCIe3_x16, PCIe4_x16, PCIe5_x16, NVLink_C2C"


@pytest.mark.parametrize(("ask", "expected"), [
    (lambda: Hardware.Cloud.A101, "Hardware.Cloud has no 'A101'. Did you mean A10?"),
    (lambda: Hardware.Cloud.a100, "Hardware.Cloud has no 'a100'. Did you mean A100?"),
    (lambda: Hardware.A100, "Hardware has no 'A100'. Did you mean Hardware.Cloud.A100?"),
    (lambda: Hardware.Cloud.RTX4090,
     "Hardware.Cloud has no 'RTX4090'. Did you mean Hardware.Workstation.RTX4090?"),
    (lambda: Models.Resnet50, "Models has no 'Resnet50'. Did you mean ResNet50?"),
    (lambda: Links.Thunderbolt,
     "Links has no 'Thunderbolt'. There is: PCIe3_x16, PCIe4_x16, PCIe5_x16, NVLink_C2C."),
    (lambda: A100.memory_bandwith,
     "Hardware entry NVIDIA A100 80GB SXM has no 'memory_bandwith'. Did you mean memory_bandwidth?"),
])  # fmt: skip
def test_a_wrong_name_says_which_was_meant(ask, expected):
    assert message(UnknownNameError, ask) == expected


def test_a_missing_figure_is_refused_and_not_guessed_and_a_default_can_be_asked_for():
    assert message(MissingValueError, lambda: Hardware.Cloud.T4.storage_bandwidth) == (
        "NVIDIA T4 lists no storage_bandwidth, and a value without a source is not guessed. "
        'Pass your own with .replace(storage_bandwidth="...").'
    )
    assert Hardware.Cloud.T4.get("storage_bandwidth") is None
    assert Hardware.Cloud.T4.get("storage_bandwidth", Q_("1 GB/s")) == Q_("1 GB/s")


# ---- Changing ----------------------------------------------------------------------------------------------


def test_a_replaced_figure_is_an_assumption_and_leaves_the_entry_as_it_was():
    mine = A100.replace(storage_bandwidth="2 GB/s", name="my host")
    assert (mine.name, mine.storage_bandwidth) == ("my host", Q_("2 GB/s"))
    assert mine.facts["storage_bandwidth"].kind == "assumption"
    assert mine.memory_bandwidth == A100.memory_bandwidth
    assert A100.storage_bandwidth == Q_("7 GB/s")


def test_a_measured_rate_is_not_taken_for_that_of_a_changed_accelerator_or_model():
    measured = {"precision": "fp16", "phase": "training"}
    assert measured_rate(hardware=A100.replace(storage_bandwidth="2 GB/s"), model=Models.ResNet50, **measured)
    assert not measured_rate(
        hardware=A100.replace(peak_fp16_dense="100 TFLOP/s"), model=Models.ResNet50, **measured
    )
    assert not measured_rate(hardware=A100, model=Models.ResNet50.replace(layers=101), **measured)


def test_a_replacement_passes_the_same_gate_as_a_line_of_the_file():
    for figures, expected in (bare("GB/s", storage_bandwidth=2), not_positive(storage_bandwidth="-2 GB/s")):
        assert message(InputError, A100.replace, **figures) == expected
    assert message(UnknownNameError, A100.replace, storage_bandwith="2 GB/s") == (
        "A Hardware entry has no 'storage_bandwith'. Did you mean storage_bandwidth?"
    )


def test_an_entry_cannot_be_changed_in_place():
    def change():
        A100.memory_capacity = Q_("160 GB")

    assert message(InputError, change).startswith(
        "A catalogue entry cannot be changed, got NVIDIA A100 80GB SXM.memory_capacity = "
    )
    with pytest.raises(TypeError):
        A100.facts["memory_capacity"] = None


# ---- Measured rates ----------------------------------------------------------------------------------------


def test_every_measured_rate_belongs_to_an_accelerator_and_a_model_that_exist_and_has_a_source():
    for rate in measured_rates():
        assert entry_at("Hardware", rate.hardware), rate
        assert entry_at("Models", rate.model), rate
        assert (rate.phase in ("forward", "training"), rate.fact.kind) == (True, "measured"), rate
        assert rate.fact.value.m_as("img/s") > 0, rate
        assert len(rate.fact.source) > 10, rate


def test_a_combination_has_at_most_one_default_rate_and_one_of_each_framework():
    defaults = [(r.hardware, r.model, r.precision, r.phase) for r in measured_rates() if r.default]
    assert len(defaults) == len(set(defaults))
    every = [(r.hardware, r.model, r.precision, r.phase, r.framework) for r in measured_rates()]
    assert len(every) == len(set(every))


def test_every_data_file_is_one_that_the_lab_reads():
    found = {path.name for path in (files("starvelab.model") / "data").iterdir() if ".toml" in path.name}
    others = ("rates", "assumptions", "levers", "loaders")
    assert found == {f"{kind.lower()}.toml" for kind in (*FIELDS, *others)}


def test_a_fact_shows_its_source_and_its_note_as_one_line():
    assert Fact(1, "paper", "The paper.", "twice.").origin == "The paper. Twice"
    assert Fact(1, "paper", "The paper", "a guess of x16").origin == "The paper. A guess of x16"
    assert Fact(1, "paper", "The paper", "x16 is a name").origin == "The paper. x16 is a name"
    assert Fact(1, "assumption", note="because").origin == "because"


# ---- Where sources disagree --------------------------------------------------------------------------------


@pytest.mark.parametrize(("ends", "expected"), [
    ({"low": 1}, "A spread has low and high, got one of them for 2. Give both."),
    (
        {"low": 3, "high": 4, "note": "two papers"},
        "A spread holds the value between low and high and has a note, got 2 beside 3 and 4. "
        "Say in the note who gives which.",
    ),
    (
        {"low": 1, "high": 3},
        "A spread holds the value between low and high and has a note, got 2 beside 1 and 3. "
        "Say in the note who gives which.",
    ),
])  # fmt: skip
def test_a_spread_without_both_ends_around_its_value_or_without_a_note_is_rejected(ends, expected):
    assert message(InputError, Fact, 2, "paper", "A paper.", **ends) == expected
