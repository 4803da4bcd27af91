"""How many samples an epoch of a pipeline has."""

from __future__ import annotations

from ...units import Number, Unchecked, positive_int
from ..description import Description

PASS_SAMPLES = "Pass samples=1_281_167, or dataset=Datasets.ImageNet to the pipeline."


def samples_of_epoch(pipeline: Description, given: Unchecked) -> Number:
    """As given, or as the pipeline's data set has them; None where nobody says."""
    if given is not None:
        return positive_int(given, "samples")
    return None if pipeline.samples is None else pipeline.samples.get("samples")
