"""Loaders prepare batches in the training loop itself, in threads, in processes, or in PyTorch's DataLoader.

Each worker has its own queue, and batch j goes to worker j mod W, as in PyTorch's DataLoader. The simulation
follows the same rule.
"""

from __future__ import annotations

from ..protocols import Loader
from ..setup import Setup


def open_loader(setup: Setup) -> Loader:
    """The loader that a pipeline names, running."""
    _ = setup.batch_bytes  # prepares one sample here: a transform that fails says so before any worker starts
    # Each is imported where it is used: a browser's Python has no processes, and PyTorch takes seconds.
    if setup.kind == "torch":
        from .torch import TorchLoader

        return TorchLoader(setup)
    if setup.kind == "processes" and setup.workers:
        from .processes import ProcessLoader

        return ProcessLoader(setup)
    from .threads import InlineLoader, ThreadLoader

    return ThreadLoader(setup) if setup.workers else InlineLoader(setup)
