"""`StarvelabCallback` for Lightning: how long the training waits for its batches.

It needs the package `lightning` or `pytorch_lightning`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

from ..errors import InputError
from .loop import LoopCallback

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback
else:
    try:
        # Each of the two packages accepts only callbacks of its own: that one counts which the program uses.
        if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
            from pytorch_lightning.callbacks import Callback
        else:
            from lightning.pytorch.callbacks import Callback
    except ImportError as error:
        raise InputError(
            "starvelab.jobs.lightning needs Lightning, and it is not installed. Install lightning, or put "
            "watch(loader) around the loader of your own loop."
        ) from error


class WithLoader(Protocol):
    """The part that is read of a `Trainer`."""

    train_dataloader: object


class StarvelabCallback(LoopCallback, Callback):
    """Watch how long a `Trainer` waits for its batches: `Trainer(callbacks=[StarvelabCallback()])`.

    Parameters
    ----------
    progress : bool
        Say at the end what was found.

    Notes
    -----
    The wait is the time between the end of a step and the start of the next. Evaluations in between do not
    count, and neither does a wait in which a checkpoint was written.
    """

    def on_train_epoch_start(self, trainer: WithLoader, *_: object) -> None:
        """Read what the loader is; the next batch is a first one."""
        self._recorder.describe(trainer.train_dataloader)
        self._begin()

    def on_train_batch_start(self, trainer: object, pl_module: object, batch: object, *_: object) -> None:  # noqa: ARG002
        """Record that the loop has its batch."""
        self._pass.receive(batch)

    def on_train_batch_end(self, *_: object) -> None:
        """Begin the wait for the next batch: the step is over, or an evaluation after it."""
        self._pass.ask()

    on_validation_end = on_train_batch_end

    def on_save_checkpoint(self, *_: object) -> None:
        """Leave the next wait out: a checkpoint is written, and no hook says when that is done."""
        self._pass.interrupt()

    def on_train_end(self, *_: object) -> None:
        """Say what was found."""
        self._end()
