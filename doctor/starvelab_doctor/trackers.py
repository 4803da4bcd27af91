"""Trackers that a program logs to: nothing is started for them.

A run of W&B or MLflow is taken while it is active, a writer of TensorBoard while it is open.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

Log: TypeAlias = Callable[[Mapping[str, float], int], object]  # of metrics, at a step
WRITERS = ("torch.utils.tensorboard.writer", "tensorboardX.writer")


class Trackers:
    """What the program logs to; a tracker that fails is left out from then on, and the training goes on."""

    def __init__(self) -> None:
        self.writers = open_writers()
        self.failed: set[str] = set()

    def log(self, shares: Mapping[str, float], step: int, loggers: Sequence[Any] = ()) -> None:
        """Log shares at a step of the training, to the loggers of its framework or else what is active."""
        logs = ((type(one).__name__, one.log_metrics) for one in loggers) if loggers else self._active()
        for name, log in logs:
            if not shares or name in self.failed:
                continue
            try:
                log(shares, step)
            except Exception as error:  # whatever a tracker, its file or its server raises
                self.failed.add(name)
                warnings.warn(
                    f"starvelab logs the share of waiting to trackers, and {name} did not take it: {error}. "
                    "It gets no more of them, and the training goes on.",
                    stacklevel=2,
                )

    def _active(self) -> Iterator[tuple[str, Log]]:
        run, mlflow = getattr(sys.modules.get("wandb"), "run", None), sys.modules.get("mlflow")
        if run is not None:  # in the row that the program logs next, whose step is its own
            yield "W&B", lambda shares, _: run.log(dict(shares), commit=False)
        if mlflow is not None and mlflow.active_run() is not None:
            yield "MLflow", lambda shares, step: mlflow.log_metrics(dict(shares), step=step)
        for writer in self.writers:
            if writer.file_writer is not None:  # closed; to write would open it again
                yield "TensorBoard", partial(_write_scalars, writer)


def _write_scalars(writer: Any, shares: Mapping[str, float], step: int) -> None:
    for name, share in shares.items():
        writer.add_scalar(name, share, step)


def open_writers() -> list[Any]:
    """Return the writers of TensorBoard of this process, which frameworks keep to themselves."""
    kinds = [getattr(sys.modules[name], "SummaryWriter", None) for name in WRITERS if name in sys.modules]
    return [one for one in gc.get_objects() if any(type(one) is kind for kind in kinds)] if kinds else []
