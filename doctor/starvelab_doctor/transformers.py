"""`StarvelabCallback` for the `Trainer` of `transformers`: how long the training waits for its batches."""

from __future__ import annotations

from typing import Any

from starvelab.errors import requiring

from .watching.loop import OWN_LOOP, LoopCallback

with requiring(__name__, OWN_LOOP):
    from transformers import TrainerCallback


class StarvelabCallback(LoopCallback, TrainerCallback):
    """Watch how long a `Trainer` waits for its batches: `Trainer(..., callbacks=[StarvelabCallback()])`.

    Parameters
    ----------
    progress : bool
        Say at the end what was found.

    Notes
    -----
    The wait is the time between the end of an optimizer step and the start of the next; logging, evaluations
    and checkpoints in between do not count. With gradient accumulation the batches of a step are fetched
    together before it begins, and count as one batch. Before transformers 4.46 they were fetched one by one
    within the step, where no hook tells of them: put `watch` around the loader there.
    """

    def on_epoch_begin(self, args: Any, *_: object, **__: object) -> None:  # Any: of transformers
        """Read what the loader is; the next batch is a first one."""
        self._recorder.batch_size = args.train_batch_size * args.gradient_accumulation_steps
        self._recorder.workers = args.dataloader_num_workers
        self._begin()

    def on_step_begin(self, *_: object, **__: object) -> None:
        """Record that the loop has the batches of this step."""
        self._pass.receive()

    def on_step_end(self, *_: object, **__: object) -> None:
        """Begin the wait for data: the step is over, or a log, an evaluation or a checkpoint after it."""
        self._pass.ask()

    on_log = on_evaluate = on_save = on_epoch_end = on_step_end  # none of these is a wait for data

    def on_train_end(self, *_: object, **__: object) -> None:
        """Say what was found."""
        self._end()
