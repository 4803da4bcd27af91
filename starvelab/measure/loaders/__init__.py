"""Loaders prepare batches in the training loop itself, in threads, in processes, or in PyTorch's DataLoader.

Each worker has its own queue, and batch j goes to worker j mod W, as in PyTorch's DataLoader. The simulation
follows the same rule.
"""

from __future__ import annotations

from ..input_pipeline import InputPipeline
from ..protocols import Loader


def open_loader(pipe: InputPipeline) -> Loader:
    """The loader that a pipeline names, running."""
    _ = pipe.batch_bytes  # prepares one sample here: a transform that fails says so before any worker starts
    # Each is imported where it is used: a browser's Python has no processes, and PyTorch takes seconds.
    if pipe.loader == "torch":
        from .torch import TorchLoader

        return TorchLoader(pipe)
    if pipe.loader == "processes" and pipe.workers:
        from .processes import ProcessLoader

        return ProcessLoader(pipe)
    from .threads import InlineLoader, ThreadLoader

    return ThreadLoader(pipe) if pipe.workers else InlineLoader(pipe)
