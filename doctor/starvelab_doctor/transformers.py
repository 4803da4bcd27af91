"""`StarvelabCallback` for the `Trainer` of `transformers`: how long the training waits for its batches."""

from __future__ import annotations

from starvelab.errors import requiring

from .watching.training import OWN_LOOP, WatchedTraining

with requiring(__name__, OWN_LOOP):
    from transformers import TrainerCallback


class StarvelabCallback(WatchedTraining, TrainerCallback):
    """Watch how long a `Trainer` waits for its batches: `Trainer(..., callbacks=[StarvelabCallback()])`.

    Parameters
    ----------
    progress : bool
        Say at the end what was found.
    """

    def on_train_begin(self, *_: object, **__: object) -> None:
        """Begin to watch, before the trainer goes over its loader."""
        self._begin()

    def on_train_end(self, *_: object, **__: object) -> None:
        """Say what was found."""
        self._end()
