"""`StarvelabCallback` for Keras on PyTorch: how long the training waits for its batches.

It needs the package `keras`. On TensorFlow and JAX a batch is fetched within the step, where no hook tells of
it: put `watch` around what `fit` goes over there.
"""

from __future__ import annotations

from typing import Any

from starvelab.errors import InputError, requiring

from .watching.loop import OWN_LOOP, LoopCallback

with requiring(__name__, OWN_LOOP):
    from keras.backend import backend
    from keras.callbacks import Callback


class StarvelabCallback(LoopCallback, Callback):
    """Watch how long `fit` waits for its batches: `fit(loader, callbacks=[StarvelabCallback(loader)])`.

    Parameters
    ----------
    loader : optional
        What `fit` goes over, to be asked for its batch size and its workers.
    progress : bool
        Say at the end what was found.

    Notes
    -----
    The share of waiting is among the logs of each epoch. Callbacks that stand behind this one find it there:
    those of TensorBoard, W&B and MLflow. What such callbacks do at the end of a batch counts as waiting.
    """

    def __init__(self, loader: object = None, *, progress: bool = True) -> None:
        if backend() != "torch":
            raise InputError(
                f"starvelab_doctor.keras times Keras on PyTorch, got {backend()}, where the step fetches its "
                "batch itself. Put watch(...) around what fit goes over."
            )
        super().__init__(progress=progress)
        self._recorder.describe(loader)

    def on_epoch_begin(self, *_: object, **__: object) -> None:
        """Begin a pass: its first batch is awaited."""
        self._begin()

    def on_train_batch_begin(self, *_: object, **__: object) -> None:
        """Record that the loop has its batch."""
        self._pass.receive()

    def on_train_batch_end(self, *_: object, **__: object) -> None:
        """Begin the wait for the next batch."""
        self._pass.ask()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:  # noqa: ARG002  # Any: Keras's
        """Put the share of waiting among the logs of the epoch."""
        if logs is not None:
            logs.update(self.metrics())

    def on_train_end(self, *_: object, **__: object) -> None:
        """Say what was found."""
        self._end()
