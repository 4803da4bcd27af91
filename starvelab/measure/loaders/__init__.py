"""Loaders prepare batches in the training loop itself, in threads, in processes, or in PyTorch's DataLoader.

Each worker has its own queue, and batch j goes to worker j mod W, as in PyTorch's DataLoader. The simulation
follows the same rule.
"""

from __future__ import annotations

from typing import cast

from ..protocols import ArrayPipeline, Loader, Pipeline

LOADERS = ("inline", "threads", "processes", "torch")


def open_loader(pipe: Pipeline) -> Loader:
    """The loader that a pipeline names, running.

    Raises
    ------
    InputError, WorkerError
        If PyTorch is asked for and missing, a sample cannot be prepared, or there is no room for batches.
    """
    _ = pipe.batch_bytes  # prepares one sample here: a transform that fails says so before any worker starts
    # Each is imported where it is used: a browser's Python has no processes, and PyTorch takes seconds.
    if pipe.loader == "torch":
        from .torch import TorchLoader

        return TorchLoader(pipe)
    arrays = cast(ArrayPipeline, pipe)  # a dataset is always behind torch
    if pipe.worker_count == 0:
        from .inline import InlineLoader

        return InlineLoader(arrays)
    if pipe.loader == "threads":
        from .threads import ThreadLoader

        return ThreadLoader(arrays)
    from .processes import ProcessLoader

    return ProcessLoader(arrays)
