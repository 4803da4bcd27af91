"""What people have, brought to a pipeline: a DataLoader as it is, a Dataset, or an `InputPipeline`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, TypeAlias, cast

from ..errors import InputError
from ..units import Unchecked
from .datasets import Dataset, DatasetPipeline, has_items
from .own_loader import TorchLoader, is_loader, options_of
from .protocols import Pipeline

NO_STEP = "1 us"  # the training step of a loader that is measured alone
# The options of a dataset that say what a training step takes.
STEP_OPTIONS = ("step", "step_time", "accelerator")

Given: TypeAlias = Pipeline | Dataset | TorchLoader


def to_pipeline(
    given: Given, options: dict[str, Unchecked], *, function: str, or_also: str = "", alone: bool = False
) -> tuple[Pipeline, bool]:
    """The pipeline of what was given, and whether its training step is known.

    Parameters
    ----------
    given : InputPipeline, torch DataLoader or Dataset
        A loader keeps its settings.
    options : dict
        The fields of `DatasetPipeline` that the caller chose.
    function : str
        Who asks, for messages.
    or_also : str
        What else that function takes, for messages.
    alone : bool
        Whether a loader may do without a training step. It is then measured alone.

    Raises
    ------
    InputError, UnknownNameError
    """
    if hasattr(given, "worker_count"):
        if options:
            raise InputError(
                f"{', '.join(options)} belong to a dataset, and this is an InputPipeline already. "
                "Change it with pipe.replace(...)."
            )
        return cast(Pipeline, given), True
    step_known = True
    if is_loader(given):
        step_known = any(options.get(name) is not None for name in STEP_OPTIONS)
        if alone and not step_known:
            options = options | {"step_time": NO_STEP}
        options = options_of(given) | options
        given = options.pop("dataset")
    elif isinstance(given, Mapping | str | bytes):  # these have items and a length, and are no datasets
        _reject(given, function, or_also)
    if not has_items(given):
        _reject(given, function, or_also)
    return DatasetPipeline.around(cast(Dataset, given), **options), step_known


def _reject(given: object, function: str, or_also: str) -> NoReturn:
    kinds = f"an InputPipeline, a DataLoader, {'' if or_also else 'or '}a dataset with items and a length"
    raise InputError(f"{function} takes {kinds}{or_also}, got {type(given).__name__}. Pass one of these.")
