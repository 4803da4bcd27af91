"""Quantities, entries, assumptions, stage models, pipelines and steps survive copies and pickles."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from starvelab import PUBLISHED, Q_, DataModel, Hardware, Samples, SingleNodeModel, TransformationModel
from starvelab.units import Quantity
from tests.cases import WALL


@pytest.mark.parametrize("roundtrip", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])
@pytest.mark.parametrize("value", [
    *(Q_("500 KB"), Q_(2.5, "GB/s"), Q_([1, 2], "img/s"), Q_(5, "percent")),
    *(Hardware.Cloud.A100, PUBLISHED, WALL.replace(link="32 GB/s"), WALL.solve(), Samples(size="5 MB")),
    *(model(PUBLISHED) for model in (DataModel, TransformationModel, SingleNodeModel)),
], ids=lambda value: f"{value!r:.30}")  # fmt: skip
def test_what_is_copied_is_equal_and_has_the_same_type_hash_units_and_sources(value, roundtrip):
    again = roundtrip(value)
    assert type(again) is type(value)
    if isinstance(value, Quantity):
        assert np.array_equal(again.magnitude, value.magnitude)
        assert again.units == value.units
    else:
        assert again == value
    if value is Hardware.Cloud.A100 or value is PUBLISHED:
        assert hash(again) == hash(value)
        assert [fact.source for fact in again.facts.values()] == [f.source for f in value.facts.values()]


def test_a_pickled_quantity_keeps_its_dimension_in_a_process_that_never_saw_the_lab():
    code = "import pickle, sys; q = pickle.loads(sys.stdin.buffer.read()); print(q.dimensionality, q + q)"
    found = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(Q_("5 KB")), capture_output=True, check=True
    )
    assert found.stdout.decode().strip() == "[data] 10 KB"
