"""What the three stage models that solve by themselves have in common."""

import dataclasses

import pytest

from starvelab import (
    PUBLISHED,
    TUTORIAL,
    DataModel,
    Hardware,
    InputError,
    Models,
    SingleNodeModel,
    Storage,
    TransformationModel,
)
from tests.rejected import bare, message, negative, no_entry, no_rate, none_of, not_positive, other_dimension

# Arguments that each can solve with.
SOLVED = {
    DataModel: {"workload_data_rate": "1 GB/s", "storage": "7 GB/s"},
    TransformationModel: {"batch_size": 64, "accelerator_step_time": "10 ms", "cpu_throughput": "9 img/s"},
    SingleNodeModel: {"batch_size": 256, "model": Models.ResNet50, "hardware": Hardware.Cloud.A100},
}
each_model = pytest.mark.parametrize("model", SOLVED)


@each_model
def test_a_stage_model_has_the_tutorials_assumptions_unless_given_others_and_cannot_be_changed(model):
    assert model().assumptions is TUTORIAL
    assert model(PUBLISHED).assumptions is PUBLISHED
    with pytest.raises(InputError, match="assumptions must be TUTORIAL, PUBLISHED or your own, got None"):
        model(None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model().assumptions = PUBLISHED


DRIVE = 'Pass storage=Storage.NVMe_Gen4 or bandwidth=Q_("7 GB/s").'


@pytest.mark.parametrize(("model", "arguments", "expected"), [
    (DataModel, {"storage": Models.ResNet50},
     f"storage must be an entry of Storage or Hardware or a bandwidth, got Models.ResNet50. {DRIVE}"),
    (DataModel, {"bandwidth": "7 GB"},
     "storage bandwidth must be convertible to GB/s, got 7 GB. Check what it counts."),
    (DataModel, {"bandwidth": "0 GB/s"},
     "storage bandwidth must be finite and positive, got 0 GB/s. Check the value and its sign."),
    (DataModel, *bare("GB/s", workload_data_rate=10.9)),
    (DataModel, *negative(workload_data_rate="-1 GB/s")),
    (DataModel, *other_dimension("GB/s", workload_data_rate="100 img/s")),
    (TransformationModel, {"cpu_throughput": "2 GB/s"},
     "A cpu_throughput in bytes needs the size of a sample, got none. Pass it, or a rate in img/s."),
    (TransformationModel, *no_rate(cpu_throughput=2)),
    (TransformationModel, *bare("KB", sample_size_bytes=500_000)),
    (TransformationModel, *bare("ms", accelerator_step_time=10)),
    (TransformationModel, *not_positive(batch_size=-64)),
    (SingleNodeModel, *no_entry("Models.ResNet50", model="ResNet50")),
    (SingleNodeModel, {"hardware": Storage.HDD},
     "hardware must be an entry of Hardware, got Storage.HDD. Pass for example Hardware.Cloud.A100."),
    (SingleNodeModel, *none_of("fp32, tf32, bf16, fp16", precision="int8")),
    (SingleNodeModel, *none_of("forward, training", phase="")),
    (SingleNodeModel, *not_positive(batch_size=0)),
])  # fmt: skip
def test_bad_input_is_refused(model, arguments, expected):
    assert message(InputError, model().solve, **{**SOLVED[model], **arguments}) == expected
