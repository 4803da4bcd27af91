"""How many accelerators one host, its drive and its workers can keep busy."""

from __future__ import annotations

from fractions import Fraction

from ...errors import InputError
from ...units import check_magnitude, exact, positive_int
from ..pipeline import Pipeline
from ..resources import ACCELERATOR, RESOURCES
from ..solver import by_resource, costs
from ..stages import STAGES, SingleNodeModel
from ..stages.step_parts import SingleNodeInputs, launch_wait
from ._point import one_point, overlapping

_BUSY = {stage.NAME: stage.BUSY and stage.RESOURCE is ACCELERATOR for stage in STAGES}


def accelerators_fed(pipeline: Pipeline, utilization: float = 0.9) -> int | None:
    """The largest number of accelerators that are busy for that share of each step.

    Parameters
    ----------
    pipeline : Pipeline
        Its number of accelerators does not matter. The cores, workers and drives are those of the whole host.
    utilization : float
        The busy share that is asked for, above 0 and up to 1.

    Returns
    -------
    int or None
        0 if not even one is busy enough, or has memory enough for its step; None if nothing that they share
        limits their number.

    Raises
    ------
    InputError

    Notes
    -----
    Exact: a shared resource takes ``n`` times as long for ``n`` accelerators, so ``n`` of them are busy for a
    share ``u`` as long as ``n supply <= own / u``. Where the pipeline names no cores, those of the host of
    one accelerator are meant, however many there are.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> accelerators_fed(Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=128))
    3
    """
    one_point(pipeline, "accelerators_fed", whatever=("accelerators",))
    overlapping(pipeline, "accelerators_fed")
    share = check_magnitude(utilization, "utilization")
    if share > 1:
        raise InputError(f"utilization must be a share up to 1, got {utilization}. Write 0.9 for 90 %.")
    one = pipeline.replace(accelerators=1)
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
