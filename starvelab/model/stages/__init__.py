"""The stage models: what a batch costs each resource.

Each is a frozen dataclass of assumptions. `STAGES` lists them in the order in which a batch meets them; a new
stage is a file here, an entry in this list, and its fields in `starvelab.model.parts`.
"""

from .data import DataModel
from .single_node import SingleNodeModel
from .stage import (
    BarrierModel,
    DecoderModel,
    DeviceInputModel,
    HostLoopModel,
    LoopModel,
    SerializedCopyModel,
    StepOverheadModel,
    TransferModel,
)
from .transformation import TransformationModel

STAGES = (
    DataModel,
    TransformationModel,
    LoopModel,
    TransferModel,
    SerializedCopyModel,
    DecoderModel,
    DeviceInputModel,
    SingleNodeModel,
    BarrierModel,
    StepOverheadModel,
    HostLoopModel,
)

__all__ = [
    "STAGES", "BarrierModel", "DataModel", "DecoderModel", "DeviceInputModel", "HostLoopModel", "LoopModel",
    "SerializedCopyModel", "SingleNodeModel", "StepOverheadModel", "TransferModel", "TransformationModel",
]  # fmt: skip
