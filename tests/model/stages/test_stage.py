"""What the four stage models have in common."""

import dataclasses
import inspect

import pytest

from starvelab import (
    PUBLISHED,
    TUTORIAL,
    DataModel,
    InputError,
    SingleNodeModel,
    TransferModel,
    TransformationModel,
)

MODELS = [DataModel, TransformationModel, TransferModel, SingleNodeModel]
pytestmark = pytest.mark.parametrize("model", MODELS)


def test_a_stage_model_has_the_tutorials_assumptions_unless_given_others_and_cannot_be_changed(model):
    assert model().assumptions is TUTORIAL
    assert model(PUBLISHED).assumptions is PUBLISHED
    with pytest.raises(InputError, match="assumptions must be TUTORIAL, PUBLISHED or your own, got None"):
        model(None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model().assumptions = PUBLISHED


def test_the_arguments_of_solve_go_by_name_only(model):
    parameters = list(inspect.signature(model.solve).parameters.values())[1:]
    assert {p.kind for p in parameters} == {inspect.Parameter.KEYWORD_ONLY}


def test_solve_and_the_class_are_documented_with_their_errors_and_limits(model):
    assert "Raises" in inspect.getdoc(model.solve)
    assert "Examples" in inspect.getdoc(model.solve)
    assert "tops being true" in inspect.getdoc(model)
