"""A training script read by what it does: it runs, and its work on one image is counted."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from ..errors import InputError
from ..simulate import Loader, simulate
from ..units import Q_, Quantity, Unchecked
from .input_pipeline import InputPipeline
from .training_parts import counting

STARVED = Path(__file__).with_name("starved_script.txt")
# What one worker takes, and what the script's devices take: figures of the exercise, not of any machine.
DECODE, BLUR = Q_("25 ns"), Q_("40 ns")  # for each pixel
READ_LABELS = Q_("3 ms")
OTHER = Q_("2 ms")  # for each image
LINK, STEP = Q_("0.15 GB/s"), Q_("30 ms")


def starved_script() -> str:
    """The text of the script that learners are given."""
    return STARVED.read_text(encoding="utf-8")


def script_text(path: str | os.PathLike[str] = "train.txt") -> str:
    """The text of a script; where there is no such file, the starved one is written there first."""
    file = Path(path)
    if not file.exists():
        file.write_text(starved_script(), encoding="utf-8")
    return file.read_text(encoding="utf-8")


@dataclass(frozen=True)
class _OneImage:
    """Stands for the photographs while a script is read."""

    content: bytes
    name: str = "one image"

    def read(self, _: int) -> bytes:
        return self.content


def what_it_does(text: str, width: int = 500, height: int = 375) -> dict[str, Unchecked]:
    """What a training script does to one image, as counts.

    Parameters
    ----------
    text : str
        The script. It is run, with `photos` and `run` of `starvelab.measure` replaced.
    width, height : int
        Pixels of the image.

    Returns
    -------
    dict
        Workers (0 where the loop prepares by itself), batch size, the shape and the bytes of a sample as it
        is sent, decoded and blurred pixels, and how often labels are read.

    Raises
    ------
    InputError
        If the script runs no pipeline, or several.
    """
    from PIL import Image

    stored = io.BytesIO()
    Image.new("RGB", (width, height), "gray").save(stored, "JPEG")
    given: list[InputPipeline] = []

    def keep(pipe: InputPipeline, **_: object) -> str:
        given.append(pipe)
        return ""

    measure = __package__
    with (
        patch(f"{measure}.photos", lambda *_, **__: _OneImage(stored.getvalue())),
        patch(f"{measure}.run", keep),
        redirect_stdout(io.StringIO()),
    ):
        exec(compile(text, "train.txt", "exec"), {"__name__": "__main__"})
    if len(given) != 1:
        raise InputError(f"A training script runs one pipeline, got {len(given)}. Call run(pipeline) once.")
    pipe = given[0]
    with counting() as counter:
        value: Unchecked = stored.getvalue()
        for transform in pipe.transforms:
            value = transform.function(value)
    return {
        "workers": pipe.worker_count,
        "batch size": pipe.batch_size,
        "shape": list(value.shape),
        "bytes sent": int(value.nbytes),
        "decoded pixels": counter["decoded pixels"],
        "blurred pixels": counter["blurred pixels"],
        "label reads": counter["label reads"],
    }


def simulated_throughput(done: Mapping[str, float], *, cores: int = 4) -> Quantity:
    """The throughput [sample/time] of a script that does this, on a machine with so many cores.

    Parameters
    ----------
    done : mapping
        From `what_it_does`.
    cores : int
    """
    image = done["decoded pixels"] * DECODE + done["blurred pixels"] * BLUR
    image += done["label reads"] * READ_LABELS + OTHER
    batch = int(done["batch size"])
    loader = Loader(
        step_time=STEP,
        prepare_time=batch * image,
        copy_time=Q_(batch * done["bytes sent"], "B") / LINK,
        batch_size=batch,
        workers=int(done["workers"]),
        cores=cores,
    )
    return simulate(loader, batches=200, warm_up=40).throughput


def changed_training(done: Mapping[str, Unchecked]) -> str:
    """What a script changes that belongs to the training and not to its speed: a word for it, or "nothing".

    Parameters
    ----------
    done : mapping
        From `what_it_does`.
    """
    if done["batch size"] != 32:
        return "batch size"
    if list(done["shape"]) != [3, 224, 224]:
        return "pixels"
    if not done["blurred pixels"]:
        return "blur"
    return "nothing" if done["decoded pixels"] else "images"
