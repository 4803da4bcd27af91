"""Pipelines that many tests start from: the walkthrough's wall, and a medical workload that was measured."""

import re
from pathlib import Path

from starvelab import PUBLISHED, Q_, Datasets, Hardware, Models, Pipeline, Samples, Storage, Workers

# 500 KB images, eight workers of 250 MB/s, batches of 256: the CPU binds.
WALL = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)

# KiTS19 volumes into a 3D U-Net on one A100 with a drive of its own: the accelerator binds.
KITS = Pipeline(
    model=Models.UNet3D, hardware=Hardware.Cloud.A100, batch_size=7,
    dataset=Samples(size=Datasets.KiTS19.sample_size),
    workers=Workers(rate=1 / Datasets.KiTS19.preparation_time * Q_("1 img")), storage=Storage.NVMe_Gen4,
    assumptions=PUBLISHED,
)  # fmt: skip


def golden(name):
    """The texts of tests/golden/NAME.txt, each under its own name in brackets."""
    text = (Path(__file__).parent / "golden" / f"{name}.txt").read_text(encoding="utf-8")
    parts = re.split(r"^\[(.+)\]\n", text, flags=re.MULTILINE)[1:]
    return {heading: part.strip("\n") for heading, part in zip(parts[::2], parts[1::2], strict=True)}
