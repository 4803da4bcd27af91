"""`StarvelabCallback` for `lightning` or `pytorch_lightning`: how long the training waits for its batches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from starvelab.errors import requiring

from .watching.training import OWN_LOOP, WatchedTraining

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback
else:
    with requiring(__name__, OWN_LOOP):
        # Each of the two packages accepts only callbacks of its own: that one counts which the program uses.
        if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
            from pytorch_lightning.callbacks import Callback
        else:
            from lightning.pytorch.callbacks import Callback


class StarvelabCallback(WatchedTraining, Callback):
    """Watch how long a `Trainer` waits for its batches: `Trainer(callbacks=[StarvelabCallback()])`.

    Parameters
    ----------
    progress : bool
        Say at the end what was found.
    """

    def on_fit_start(self, *_: object) -> None:
        """Begin to watch, before the trainer goes over its loader."""
        self._begin()

    def on_fit_end(self, *_: object) -> None:
        """Say what was found."""
        self._end()

    def on_exception(self, *_: object) -> None:
        """Say the same where the training fails, or is interrupted."""
        self._end()
