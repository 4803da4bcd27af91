"""A training script read by what it does: it runs, and its work on one image is counted.

An object in another process does what counts, so that no count can be changed by the script.
"""

from __future__ import annotations

import io
import json
import os
from collections import Counter, UserDict
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from unittest.mock import patch

import numpy as np

from ...errors import InputError
from ...grading import run_apart
from ...measure import transforms
from ...measure.setup import setup_of
from ...model.parts import Samples, Workers
from ...pipeline import Pipeline
from ...units import Q_, Quantity, Unchecked

if TYPE_CHECKING:
    from PIL.Image import Image

PHOTOS = 3  # that a script is given
MAX_SETTING = 10_000
BLUR_RADIUS = 2  # pixels
LABELS = json.dumps({f"{number:05}.jpg": number % 1000 for number in range(20_000)})
COUNTED = ("bytes sent", "decoded pixels", "blurred pixels", "label reads", "labels used", "images sent")
FOLLOW = f"from {__name__} import follow\nfollow(script, work)"
Pixels: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]"
STARVED = Path(__file__).with_name("starved_script.txt")
# What one worker takes, and what the script's devices take: figures of the exercise, not of any machine.
DECODE, BLUR = Q_("25 ns"), Q_("40 ns")  # for each pixel
READ_LABELS = Q_("3 ms")
OTHER = Q_("2 ms")  # for each image
CORES, LINK, STEP = 4, Q_("0.15 GB/s"), Q_("30 ms")

# Any: takes the name of a part and plain data, and returns plain data. None where nobody counts.
Work: TypeAlias = Callable[..., Any]
_work: ContextVar[Work | None] = ContextVar("starvelab_parts", default=None)

# --- the parts that a script calls ---

crop, to_array, normalize = transforms.RandomResizedCrop(224), transforms.to_array, transforms.normalize


class _Labels(UserDict[str, int]):
    """Labels by the name of an image, which count when one is used."""

    def __getitem__(self, name: str) -> int:
        if (work := _work.get()) is not None:
            work("label")
        return super().__getitem__(name)


def read_labels() -> Mapping[str, int]:
    """The label of each image, from a file of twenty thousand lines: some milliseconds each time."""
    work = _work.get()
    return _Labels(json.loads(LABELS if work is None else work("labels")))


def decode(raw: bytes) -> Image:
    """The pixels of a stored image."""
    from PIL import Image

    work = _work.get()
    return transforms.decode(raw) if work is None else Image.fromarray(work("decode", raw))


def blur(image: Image) -> Image:
    """The image, a little softer."""
    from PIL import Image, ImageFilter

    if (work := _work.get()) is not None:
        return Image.fromarray(work("blur", np.asarray(image)))
    return image.filter(ImageFilter.GaussianBlur(BLUR_RADIUS))


# --- what they do is counted ---


def starved_script() -> str:
    """The text of the script that learners are given."""
    return STARVED.read_text(encoding="utf-8")


def script_text(path: str | os.PathLike[str] = "train.txt") -> str:
    """The text of a script; where there is no such file, the starved one is written there first."""
    file = Path(path)
    if not file.exists():
        file.write_text(starved_script(), encoding="utf-8")
    return file.read_text(encoding="utf-8")


class _Work:
    """Serves photographs to a script, and counts what is done and arrives here, not what the script says."""

    def __init__(self, width: int, height: int) -> None:
        random = np.random.default_rng()
        self.photos = [_photo(random, width, height) for _ in range(PHOTOS)]
        self.settings: list[tuple[int, int]] = []
        self.counts: list[Counter[str]] = []  # of each photograph that was read
        self.shapes: list[list[int]] = []
        self.labeled = False  # once for all images, before the second one

    def __call__(self, part: str, *values: Unchecked) -> object:
        """Do what a part does."""
        parts = (self.settle, self.photo, self.labels, self.label, self.decode, self.blur, self.send)
        return {one.__name__: one for one in parts}[part](*values)

    def settle(self, workers: Unchecked, batch_size: Unchecked) -> None:
        """Note what the script asks for."""
        for value in (workers, batch_size):
            if not isinstance(value, int) or not 0 <= value <= MAX_SETTING:
                raise InputError(
                    f"A script asks for 0 to {MAX_SETTING} workers, and as many images, got {value!r:.60}."
                )
        self.settings.append((int(workers), int(batch_size)))

    def photo(self) -> bytes:
        """The next photograph, as it is stored."""
        if len(self.counts) == PHOTOS:
            raise InputError("Each photograph is read once, and there are no more. Let the pipeline read.")
        self.stored, self.pixels = self.photos[len(self.counts)]
        self.counts.append(Counter())
        self.blurred: list[Pixels] = []
        return self.stored

    def labels(self) -> str:
        """All labels, as they are stored."""
        self._count("label reads", 1)
        return LABELS

    def label(self) -> None:
        """Note that an image got its label."""
        self.labeled |= len(self.counts) < 2
        self._count("labels used", 1)

    def decode(self, raw: Unchecked) -> Pixels:
        """The pixels of the photograph that was read last."""
        if not self.counts or raw != self.stored:
            raise InputError(
                "decode takes the bytes of the photograph that was read last. Pass them as they are."
            )
        self._count("decoded pixels", self.pixels.shape[0] * self.pixels.shape[1])
        return self.pixels

    def blur(self, pixels: Unchecked) -> Pixels:
        """An image, a little softer; what is no part of the photograph counts for nothing."""
        from PIL import Image, ImageFilter

        if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[2:] != (3,):
            raise InputError(
                f"blur takes an image in colors, got {pixels!r:.60}. Pass what decode or crop returned."
            )
        image = np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(BLUR_RADIUS)))
        if self.counts and _is_like(pixels, self.pixels):
            self._count("blurred pixels", pixels.shape[0] * pixels.shape[1])
            self.blurred.append(image)
        return image

    def send(self, values: Unchecked) -> None:
        """Take what goes to the accelerator."""
        if not isinstance(values, np.ndarray):
            raise InputError(f"A pipeline sends arrays, got {values!r:.60}. End it with to_array.")
        self.shapes.append(list(values.shape))
        self._count("bytes sent", values.nbytes)
        blurred = [one.transpose(2, 0, 1) for one in self.blurred] if self.counts else []
        alike = [one for one in blurred if one.shape == values.shape]
        flat = np.atleast_2d(values).reshape(len(values), -1).astype(float)
        shows = any(_correlates(values, one) for one in alike) if alike else bool(np.ptp(flat, axis=1).all())
        self._count("images sent", int(shows))

    def _count(self, what: str, number: int) -> None:
        if self.counts:
            self.counts[-1][what] += number

    def done(self) -> dict[str, Unchecked]:
        """Return what was done to one image; what was done once for all, with the first one, is left out."""
        if len(self.settings) != 1:
            raise InputError(
                f"A training script runs one pipeline, got {len(self.settings)}. Call its measure() once."
            )
        if len(self.shapes) != PHOTOS or len(self.counts) != PHOTOS:
            raise InputError(
                f"A pipeline makes one array of each photograph, got {len(self.shapes)} of "
                f"{len(self.counts)}. Take source=photos(...)."
            )
        (workers, batch_size), later = self.settings[0], self.counts[1:]
        counted = {what: sum(one[what] for one in later) / len(later) for what in COUNTED}
        counted["labels used"] = max(counted["labels used"], float(self.labeled))
        return {
            "workers": workers,
            "batch size": batch_size,
            "shape": self.shapes[-1],
            **{what: int(each) if each.is_integer() else each for what, each in counted.items()},
        }


def _photo(random: np.random.Generator, width: int, height: int) -> tuple[bytes, Pixels]:
    """A photograph that nobody has seen, as it is stored and as its pixels: soft clouds in a color."""
    from PIL import Image

    clouds = random.integers(-40, 40, (height // 16, width // 16, 3)) + random.integers(60, 190, 3)
    stored = io.BytesIO()
    image = Image.fromarray(clouds.astype(np.uint8)).resize((width, height), Image.Resampling.BICUBIC)
    image.save(stored, "JPEG")
    return stored.getvalue(), np.asarray(transforms.decode(stored.getvalue()))


def _is_like(pixels: Pixels, photo: Pixels) -> bool:
    """True if an image may be a part of a photograph: its colors, and not one color."""
    near = np.abs(pixels.mean((0, 1)) - photo.mean((0, 1))).max() < 25
    return bool(pixels.size and near and pixels.std((0, 1)).min() > 3)


def _correlates(values: np.ndarray, image: Pixels) -> bool:
    """True if channels show what those of an image show, however they are scaled."""
    pairs = zip(values.reshape(len(values), -1).astype(float), image.reshape(len(image), -1), strict=True)
    with np.errstate(all="ignore"):
        return all(np.corrcoef(one, other)[0, 1] > 0.95 for one, other in pairs)


def what_it_does(text: str, width: int = 500, height: int = 375) -> dict[str, Unchecked]:
    """Count what a training script does to one image of `width` times `height` pixels.

    The script runs one pipeline, with `photos` and `Pipeline.measure` replaced; while grading, in the
    student's sandbox. Workers, batch size and shape of a sample are told beside `COUNTED`.
    """
    if not isinstance(text, str) or text.endswith(".txt"):
        raise InputError(
            f"A script is the text of its file, got {text!r:.60}. Pass script_text(...), for example."
        )
    work = _Work(width, height)
    run_apart(FOLLOW, {"script": text, "work": work})
    return work.done()


def follow(script: str, work: Work) -> None:
    """Run a script, and then its pipeline for a few photographs; `work` does what counts."""
    token = _work.set(work)
    try:
        with (
            patch("starvelab.measure.photos", lambda *_, **__: _Photos(work)),
            patch("starvelab.Pipeline.measure", autospec=True, return_value="") as measure,
            redirect_stdout(io.StringIO()),
        ):
            exec(compile(script, "train.txt", "exec"), {"__name__": "__main__"})
            setups = [setup_of(call.args[0]) for call in measure.call_args_list]
            for setup in setups:
                work("settle", setup.workers, setup.batch_size)
            for number in range(PHOTOS if len(setups) == 1 else 0):
                value: Unchecked = cast(_Photos, setups[0].samples).read(number)
                for transform in setups[0].transforms:
                    value = transform.function(value)
                work("send", np.asarray(value))
    finally:
        _work.reset(token)


@dataclass(frozen=True)
class _Photos:
    """Stands for the photographs while a script is read."""

    work: Work
    name: str = "photographs"

    def read(self, _: int) -> bytes:
        stored: bytes = self.work("photo")
        return stored


def starved_counts(width: int = 500, height: int = 375) -> dict[str, Unchecked]:
    """Return what the script that learners are given does to one image, as `what_it_does` counts it."""
    pixels, sent = width * height, [3, 224, 224]
    counts = dict(zip(COUNTED, (4 * prod(sent), pixels, pixels, 1, 1, 1), strict=True))
    return {"workers": 3, "batch size": 32, "shape": sent, **counts}


def simulated_throughput(done: Mapping[str, float]) -> Quantity:
    """The throughput [sample/time] of a script of which `what_it_does` says this, on four cores."""
    image = done["decoded pixels"] * DECODE + done["blurred pixels"] * BLUR
    image += done["label reads"] * READ_LABELS + OTHER
    batch, workers = int(done["batch size"]), int(done["workers"])
    pipeline = Pipeline(
        batch_size=batch,
        dataset=Samples(cpu_time=image, transfer=Q_(done["bytes sent"], "B")),
        workers=Workers(workers, cores=CORES),
        link=LINK,
        hardware=STEP,
    )
    return pipeline.simulate(batches=200, warm_up=40, replicas=1).throughput


def changed_training(done: Mapping[str, Unchecked]) -> str:
    """A word for what a script changes that belongs to the training and not to its speed, or "nothing"."""
    if done["batch size"] != 32:
        return "batch size"
    if list(done["shape"]) != [3, 224, 224]:
        return "pixels"
    if not done["blurred pixels"]:
        return "blur"
    return "nothing" if done["labels used"] else "labels"
