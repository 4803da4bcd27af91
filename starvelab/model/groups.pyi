"""The entries of each group. Written by docs/build.py (`make build`): do not edit it."""

from collections.abc import Iterator

from ..units import Quantity
from .catalogue import Entry, Group

class _HardwareEntry(Entry):
    family: str
    peak_fp16_dense: Quantity
    peak_bf16_dense: Quantity
    peak_tf32_dense: Quantity
    peak_fp32_dense: Quantity
    matmul_bf16_sustained: Quantity
    memory_capacity: Quantity
    memory_bandwidth: Quantity
    link_bandwidth_each_way: Quantity
    link_bandwidth_pinned_sustained: Quantity
    storage_bandwidth: Quantity
    host_cores: int
    video_decoders: int
    image_decode_rate: Quantity

class _HardwareWorkstation(Group):
    RTX4090: _HardwareEntry
    def __iter__(self) -> Iterator[_HardwareEntry]: ...

class _HardwareCloud(Group):
    A100: _HardwareEntry
    A100_40GB: _HardwareEntry
    H100: _HardwareEntry
    H100_PCIe: _HardwareEntry
    H200: _HardwareEntry
    V100: _HardwareEntry
    T4: _HardwareEntry
    A10: _HardwareEntry
    L4: _HardwareEntry
    B200: _HardwareEntry
    GB200: _HardwareEntry
    B300: _HardwareEntry
    MI300X: _HardwareEntry
    MI355X: _HardwareEntry
    L40S: _HardwareEntry
    TPU_v5e: _HardwareEntry
    TPU_v5p: _HardwareEntry
    TPU_v6e: _HardwareEntry
    def __iter__(self) -> Iterator[_HardwareEntry]: ...

class _Hardware(Group):
    Cloud: _HardwareCloud
    Workstation: _HardwareWorkstation
    def __iter__(self) -> Iterator[_HardwareEntry]: ...

class _StorageEntry(Entry):
    bandwidth_sustained: Quantity
    request_bandwidth: Quantity
    request_latency: Quantity
    queued_latency: Quantity
    parallel_requests: int
    requests_per_file: int
    request_rate: Quantity
    million_requests_price: Quantity

class _Storage(Group):
    HDD: _StorageEntry
    SATA_SSD: _StorageEntry
    NVMe_Gen3: _StorageEntry
    NVMe_Gen4: _StorageEntry
    NVMe_Gen5: _StorageEntry
    EBS_gp3: _StorageEntry
    EBS_gp3_max: _StorageEntry
    S3_connection: _StorageEntry
    GCS_FUSE: _StorageEntry
    NFS_10GbE: _StorageEntry
    def __iter__(self) -> Iterator[_StorageEntry]: ...

class _LinksEntry(Entry):
    bandwidth_each_way: Quantity
    bandwidth_pinned_sustained: Quantity
    bandwidth_pageable_sustained: Quantity

class _Links(Group):
    PCIe3_x16: _LinksEntry
    PCIe4_x16: _LinksEntry
    PCIe5_x16: _LinksEntry
    NVLink_C2C: _LinksEntry
    def __iter__(self) -> Iterator[_LinksEntry]: ...

class _ModelsEntry(Entry):
    family: str
    macs_forward: Quantity
    macs_forward_rounded: Quantity
    parameters: int
    layers: int
    input_elements: int
    activation_size: Quantity

class _Models(Group):
    ResNet18: _ModelsEntry
    ResNet50: _ModelsEntry
    ResNet152: _ModelsEntry
    ViT_B16: _ModelsEntry
    UNet3D: _ModelsEntry
    GPT2_small: _ModelsEntry
    def __iter__(self) -> Iterator[_ModelsEntry]: ...

class _DatasetsEntry(Entry):
    content: str
    sample_size: Quantity
    sample_size_sd: Quantity
    samples: int
    decoded_elements: int
    tokens: int
    tokens_sd: int
    decoded_size: Quantity
    preparation_time: Quantity
    decoding_time: Quantity
    collation_time: Quantity
    token_quantiles: tuple[int, ...]

class _Datasets(Group):
    ImageNet: _DatasetsEntry
    KiTS19: _DatasetsEntry
    Medical5MB: _DatasetsEntry
    OpenWebText: _DatasetsEntry
    OpenWebText_tiktoken: _DatasetsEntry
    WikipediaSequences: _DatasetsEntry
    TokenizedText: _DatasetsEntry
    Cosmoflow: _DatasetsEntry
    LAION: _DatasetsEntry
    Kinetics400: _DatasetsEntry
    LibriSpeech: _DatasetsEntry
    OpenImages_RetinaNet: _DatasetsEntry
    Flux: _DatasetsEntry
    Criteo_DLRM: _DatasetsEntry
    def __iter__(self) -> Iterator[_DatasetsEntry]: ...

Hardware: _Hardware
Storage: _Storage
Links: _Links
Models: _Models
Datasets: _Datasets
