"""The stage models: what a batch costs each resource.

Each is a frozen dataclass of assumptions. `STAGES` lists them in the order in which a batch meets them; a new
stage is a file here, an entry in this list, and its fields in `starvelab.model.parts`.
"""

from ..cost import Cost, Line
from .data import DataModel, DataResult
from .single_node import SingleNodeModel, SingleNodeResult
from .stage import DecoderModel, DeviceInputModel, HostLoopModel, StageModel, StepOverheadModel
from .transfer import SerializedCopyModel, TransferModel, TransferResult
from .transformation import TransformationModel, TransformationResult

STAGES = (
    DataModel,
    TransformationModel,
    TransferModel,
    SerializedCopyModel,
    DecoderModel,
    DeviceInputModel,
    SingleNodeModel,
    StepOverheadModel,
    HostLoopModel,
)

__all__ = [
    "STAGES",
    "Cost",
    "DataModel",
    "DataResult",
    "DecoderModel",
    "DeviceInputModel",
    "HostLoopModel",
    "Line",
    "SerializedCopyModel",
    "SingleNodeModel",
    "SingleNodeResult",
    "StageModel",
    "StepOverheadModel",
    "TransferModel",
    "TransferResult",
    "TransformationModel",
    "TransformationResult",
]
