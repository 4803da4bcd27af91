"""The stage models: what a batch costs each resource.

Each is a frozen dataclass of assumptions. `STAGES` lists them in the order in which a batch meets them; a new
stage is a file here, an entry in this list, and its fields in `starvelab.model.parts`.
"""

from .barrier import BarrierModel
from .data import DataModel
from .given_time import DecoderModel, DeviceInputModel, HostLoopModel, StepOverheadModel
from .loop import LoopModel
from .single_node import SingleNodeModel
from .transfer import SerializedCopyModel, TransferModel
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
