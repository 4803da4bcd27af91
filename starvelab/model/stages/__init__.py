"""The four stage models: what one batch costs the storage, the CPU workers, the link and the accelerator.

Each is a frozen dataclass of assumptions with a keyword-only `solve`; none knows of the others.
"""

from .cost import Cost, Line
from .data import DataModel, DataResult
from .single_node import SingleNodeModel, SingleNodeResult
from .transfer import TransferModel, TransferResult
from .transformation import TransformationModel, TransformationResult

__all__ = [
    "Cost",
    "DataModel",
    "DataResult",
    "Line",
    "SingleNodeModel",
    "SingleNodeResult",
    "TransferModel",
    "TransferResult",
    "TransformationModel",
    "TransformationResult",
]
