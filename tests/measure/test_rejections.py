"""What cannot be meant is rejected with a sentence that says what to do."""

import pytest

from starvelab import (
    Q_,
    Accelerator,
    Drive,
    InputError,
    Pipeline,
    Requests,
    Samples,
    UnknownNameError,
    Workers,
)
from starvelab.lesson.course.training_script import what_it_does
from starvelab.measure import SimulatedClock, Transform, diagnose, photo_transforms, photos
from starvelab.measure.diagnosis import climb_ladder
from starvelab.measure.samples import given_samples
from starvelab.measure.session import run
from starvelab.measure.setup import setup_of

from .scenes import described

SETUP = described()
TINY = given_samples("tables")
STORED = TINY.source
ENDS = {"nothing": "100 ms", "device batch": "30 ms"}
NO_RATE = (
    "'nothing' must be steps in a second or the time of a step, got {}. "
    'Write for example "0.89 / s" or "1.12 s".'
)
NO_SOURCE = (
    "A source of samples comes from photos, or has a name and a method read(index), got {}. "
    'Write for example Samples(source=photos("100 KB")). A job with a DataLoader of '
    "PyTorch is measured as it is: starvelab-doctor --ladder train.py."
)


def prepared(**fields):
    return setup_of(Pipeline(**{"dataset": TINY, "hardware": "30 ms"} | fields))


def transformed(*transforms):
    return prepared(dataset=Samples(source=STORED, transforms=list(transforms)))


REJECTED = [
    # devices
    (lambda: prepared(hardware=Accelerator(device="train")),
     "device must be a function that trains on one batch, got 'train'. Pass for example device=train_step."),
    # transforms and samples
    (lambda: photo_transforms(send="float16"),
     "send must be float32 or uint8, got 'float16'. Pass one of these."),
    (lambda: Transform("read", abs, part="read"),
     "The part of a transform must be decode or transform, got 'read'. Pass one of these."),
    (lambda: Transform("crop", 224),
     "A transform needs a function of a sample, got 224. Pass the function without calling it."),
    (
        lambda: photos("1 MB"),
        "photos makes images of 100 KB, 500 KB, 5 MB, got '1 MB'. Pass one of these.",
    ),
    (lambda: photos(count=0), "count must be finite and positive, got 0"),
    (lambda: given_samples("photos"),
     "recordings, tables, volumes, got 'photos'. Choose one, or bring your own."),
    # what a run is described by
    (lambda: prepared(workers=[1, 2]), "A run has one value for each field, got arrays of workers. Run one"),
    (lambda: prepared(workers="3 GB/s"), "got what all of them supply, 3 GB/s. Pass for example workers=4."),
    (lambda: prepared(workers=Workers(2, kind="pool")),
     "A run has workers of the kind threads, processes or torch, got pool. Pass Workers(..., kind="),
    (lambda: prepared(hardware=Accelerator(rate="30 ms", count=2)),
     "A run cannot have Accelerator(count=2): solve or simulate it. Leave count out of the Accelerator."),
    (lambda: prepared(storage=Drive("1 GB/s", requests=Requests(open=65))),
     "at most 64 of them, got Requests(open=65). Pass fewer, or solve or simulate it."),
    (
        lambda: prepared(dataset=Samples(size="100 KB")),
        "Measuring needs samples that exist, and this pipeline only describes them. Pass for example "
        'dataset=Samples(source=photos("100 KB")).',
    ),
    *(
        (lambda given=given: prepared(dataset=Samples(source=given)), NO_SOURCE.format(repr(given)))
        for given in ("100 KB", 5, {"a": 1}, [1, 2])
    ),
    (lambda: prepared(dataset=Samples(source=STORED, transforms=abs)),
     "transforms must be a sequence of Transform, got <built-in function abs>. Put it into a list."),
    (lambda: transformed(abs),
     "transforms must be of the class Transform, got <built-in function abs>. Write Transform('name',"),
    (
        lambda: transformed(Transform("crop", abs), Transform("decode", abs, part="decode")),
        "A run needs transforms, and those that decode come first, got crop (transform), "
        "decode (decode). Put them in that order.",
    ),
    (transformed, "those that decode come first, got none. Put them in that order."),
    *(
        (
            lambda name=name: transformed(Transform("mine", abs), Transform(name, abs)),
            f"Each transform needs a name of its own, got {name!r} twice. Rename one of them.",
        )
        for name in ("read", "collate", "mine")
    ),
    # a run, a diagnosis, a calibration
    (lambda: run(SETUP, seconds=3), "seconds needs a unit, got the bare int 3"),
    (lambda: run(SETUP, seconds="0 s"), "seconds must be finite and positive, got 0 s"),
    (lambda: climb_ladder(SETUP, budget=8), "budget needs a unit, got the bare int 8"),
    (lambda: Pipeline(dataset=TINY).calibrated(seconds=2), "seconds needs a unit, got the bare int 2"),
    # a simulated clock
    (
        lambda: SimulatedClock({"copy": "3 ms"}),
        "A worker's parts are read, decode, transform, collate, got 'copy'. The copy's time comes from the "
        "link, that of computing from the GPU.",
    ),
    (lambda: SimulatedClock({"decode": 3}), "decode needs a unit, got the bare int 3"),
    (lambda: SimulatedClock(handover="-1 ms"), "handover must be finite and not negative, got -1 ms"),
    (lambda: SimulatedClock(transfer_size="0 B"), "transfer_size must be finite and positive, got 0 B"),
    (lambda: SimulatedClock(cores=0), "cores must be finite and positive, got 0"),
    (lambda: SimulatedClock(jitter=-1), "jitter must be finite and not negative, got -1"),
    (
        lambda: run(SETUP.replace(device=print), clock=SimulatedClock()),
        f"A simulated clock needs the time of a step, got {print!r}. "
        "Measure it, and pass hardware=Accelerator(rate=...).",
    ),
    # a ladder that was measured by hand
    (
        lambda: diagnose(ENDS | {"jpeg": "50 ms"}),
        "No rung is called 'jpeg'. There is: nothing, raw sample, decoded sample, processed sample, "
        "host batch, device batch.",
    ),
    *(
        (
            lambda end=end: diagnose({name: time for name, time in ENDS.items() if name != end}),
            "A ladder needs its ends, with nothing cached and with a device batch, and "
            f"{end!r} is missing. Measure that one too.",
        )
        for end in ENDS
    ),
    *(
        (lambda value=value: diagnose(ENDS | {"nothing": value}), NO_RATE.format(came))
        for value, came in (("3 GB", "3 GB"), (0.89, "0.89"), (Q_(3, "img/s"), "3 img/s"))
    ),
    (lambda: diagnose(ENDS | {"nothing": "0 ms"}), "nothing must be finite and positive, got 0 ms"),
    (
        lambda: diagnose(5),
        "diagnose takes a mapping of rates, got int. A pipeline diagnoses itself: write pipeline.diagnose().",
    ),
    # a training script
    (
        lambda: what_it_does({"workers": 4}),
        "A script is the text of its file, got {'workers': 4}. Pass script_text(...)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REJECTED)
def test_what_cannot_be_meant_is_rejected(call, message):
    with pytest.raises((InputError, UnknownNameError)) as caught:
        call()
    assert message in str(caught.value)
