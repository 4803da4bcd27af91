"""How many accelerators one host, its drive and its workers can keep busy."""

from __future__ import annotations

from fractions import Fraction

from ...errors import InputError
from ...units import check_magnitude, exact, positive_int
from ..description import Description
from ..resources import ACCELERATOR, RESOURCES
from ..solver import by_resource, costs
from ..stages import STAGES, SingleNodeModel
from ..stages.step_parts import SingleNodeInputs, launch_wait
from ._point import one_point, overlapping

_BUSY = {stage.NAME: stage.BUSY and stage.RESOURCE is ACCELERATOR for stage in STAGES}


def accelerators_fed(pipeline: Description, utilization: float = 0.9) -> int | None:
    """The largest number of accelerators that are busy for that share of each step."""
    one_point(pipeline, "accelerators_fed", whatever=("hardware.count",))
    overlapping(pipeline, "accelerators_fed")
    share = check_magnitude(utilization, "utilization")
    if share > 1:
        raise InputError(f"utilization must be a share up to 1, got {utilization}. Write 0.9 for 90 %.")
    one = pipeline.replace({"hardware.count": 1})
    batch = positive_int(one.batch_size, "batch_size")
    if not one.solve().feasible:
        return 0
    stages = costs(one.inputs, 1, exact=True)
    times = {name: Fraction(cost.at(batch)) for name, cost in by_resource(stages).items()}
    busy = sum(Fraction(cost.at(batch)) for name, cost in stages.items() if _BUSY[name])
    model = one.inputs[SingleNodeModel.NAME]
    assert isinstance(model, SingleNodeInputs)
    busy -= Fraction(float(launch_wait(model, batch)))
    longest = busy / exact(share, "utilization")
    own = {name: time for name, time in times.items() if not RESOURCES[name].shared}
    if max(own.values()) > longest or times[ACCELERATOR.name] > longest:
        return 0
    shared = [time for name, time in times.items() if RESOURCES[name].shared and time > 0]
    return min((int(longest / time) for time in shared), default=None)
