"""`StarvelabCallback` for `lightning` or `pytorch_lightning`: how long the training waits for its batches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from starvelab.errors import requiring

from .watching.loop import OWN_LOOP, LoopCallback

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback
else:
    with requiring(__name__, OWN_LOOP):
        # Each of the two packages accepts only callbacks of its own: that one counts which the program uses.
        if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
            from pytorch_lightning.callbacks import Callback
        else:
            from lightning.pytorch.callbacks import Callback


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

    def on_train_epoch_start(self, trainer: Any, *_: object) -> None:  # Any: of Lightning
        """Read what the loader is; the next batch is a first one."""
        self._recorder.describe(trainer.train_dataloader)
        self._begin()

    def on_train_batch_start(self, trainer: object, pl_module: object, batch: object, *_: object) -> None:  # noqa: ARG002
        """Record that the loop has its batch."""
        self._pass.receive(batch)

    def on_train_batch_end(self, *_: object) -> None:
        """Begin the wait for the next batch: the step is over."""
        self._pass.ask()

    def on_validation_end(self, *_: object) -> None:
        """Begin it anew after an evaluation."""
        self._pass.ask()

    def on_save_checkpoint(self, *_: object) -> None:
        """Leave the next wait out: a checkpoint is written, and no hook says when that is done."""
        self._pass.interrupt()

    def on_train_end(self, *_: object) -> None:
        """Say what was found."""
        self._end()
