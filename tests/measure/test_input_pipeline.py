"""An input pipeline says what shall run, and refuses what cannot."""

from __future__ import annotations

import numpy as np
import pytest

from starvelab import InputError, UnknownNameError
from starvelab.measure import InputPipeline, Transform, VirtualAccelerator, photo_transforms, run

from .scenes import kind, pipeline, zeros


def refused(home, **changes):
    with pytest.raises(InputError) as caught:
        pipeline(home, **changes)
    return str(caught.value)


def test_without_any_argument_it_prepares_photos_in_two_threads():
    pipe = InputPipeline()
    assert (pipe.samples.name, pipe.workers, pipe.loader) == ("about 100 KB", 2, "threads")
    assert pipe.batch_shape == (32, 3, 224, 224)
    assert pipe.batch_bytes == 32 * 3 * 224 * 224 * 4
    assert pipe.dtype == np.float32


def test_uint8_is_a_quarter_of_the_bytes():
    assert InputPipeline(transforms=photo_transforms(send="uint8")).batch_bytes == 32 * 3 * 224 * 224


def test_a_copy_differs_in_what_was_changed_only(tmp_path):
    pipe = pipeline(tmp_path)
    more = pipe.replace(workers=4, loader="processes")
    assert (more.workers, more.loader, more.samples) == (4, "processes", pipe.samples)
    assert (pipe.workers, pipe.loader) == (2, "threads")


def test_the_training_loop_itself_has_no_workers_beside_it(tmp_path):
    assert "in the training loop itself" in str(pipeline(tmp_path, workers=0))
    assert "with 2 workers (threads)" in str(pipeline(tmp_path))


def test_a_misspelt_field_is_told_the_one_that_was_meant(tmp_path):
    with pytest.raises(UnknownNameError) as caught:
        pipeline(tmp_path).replace(worker=3)
    assert str(caught.value) == "An input pipeline has no field 'worker'. Did you mean workers?"
    with pytest.raises(UnknownNameError, match=r"no field 'gpu'\. There is: samples, transforms, batch_size"):
        pipeline(tmp_path).replace(gpu=3)


@pytest.mark.parametrize("name", ["batch_size", "prefetch", "workers"])
def test_a_count_is_one_whole_number(tmp_path, name):
    assert refused(tmp_path, **{name: 2.5}) == (
        f"{name} must be a whole number, got 2.5. Round it to the one you mean."
    )
    assert refused(tmp_path, **{name: -1}).startswith(f"{name} must be finite and positive, got -1.")
    assert refused(tmp_path, **{name: "two"}).startswith(f"{name} must be a whole number, got 'two'.")
    assert refused(tmp_path, **{name: False}).startswith(f"{name} must be a whole number, got False.")
    assert refused(tmp_path, **{name: [1, 2]}) == (
        f"A pipeline has one {name}, got an array. Make one with pipe.replace({name}=...)."
    )
    assert type(getattr(pipeline(tmp_path, **{name: 3.0}), name)) is int


def test_a_loader_is_one_of_three(tmp_path):
    assert refused(tmp_path, loader="dali") == (
        "loader must be one of threads, processes, torch, got 'dali'. Pass one of these."
    )


def test_samples_come_from_photos_or_a_folder(tmp_path):
    assert refused(tmp_path, samples="100 KB") == (
        "samples must come from photos or folder, got '100 KB'. Write for example photos(\"100 KB\")."
    )


@pytest.mark.parametrize(("name", "kind"), [("storage", "VirtualStorage"), ("link", "VirtualLink")])
def test_devices_are_of_their_own_class(tmp_path, name, kind):
    assert refused(tmp_path, **{name: "1 GB/s"}) == (
        f"{name} must be a {kind} or None, got '1 GB/s'. Write for example {kind}(bandwidth=\"1 GB/s\")."
    )


def test_an_accelerator_can_be_opened(tmp_path):
    assert refused(tmp_path, accelerator="30 ms") == (
        "accelerator must be a VirtualAccelerator or a CudaDevice, got '30 ms'. "
        'Write for example VirtualAccelerator(step_time="30 ms").'
    )


def test_stages_are_a_sequence_of_stages(tmp_path):
    assert refused(tmp_path, transforms=abs).startswith(
        "transforms must be a sequence of Transform, got <built-in"
    )
    assert refused(tmp_path, transforms=zeros()).endswith("Put it into a list.")
    assert refused(tmp_path, transforms=[abs]) == (
        "transforms must be of the class Transform, got <built-in function abs>. "
        "Write Transform('name', function)."
    )


def test_decoding_comes_before_transforming(tmp_path):
    wrong = [Transform("crop", abs), Transform("decode", abs, part="decode")]
    assert refused(tmp_path, transforms=wrong) == (
        "There must be transforms, those that decode before those that transform, got crop (transform), "
        "decode (decode). Put them in that order."
    )
    assert "got none." in refused(tmp_path, transforms=[])


@pytest.mark.parametrize("name", ["read", "collate", "mine"])
def test_two_transforms_of_one_name_could_not_be_told_apart(tmp_path, name):
    assert refused(tmp_path, transforms=[Transform("mine", abs), Transform(name, abs)]) == (
        f"Each transform needs a name of its own, got {name!r} twice. Rename one of them."
    )


@pytest.mark.parametrize("loader", ["inline", "threads", "processes", "torch"])
def test_the_last_transform_makes_an_array(tmp_path, nothing_stays, loader):
    pipe = pipeline(tmp_path, transforms=[Transform("as list", list)], **kind(loader))
    with pytest.raises(InputError) as caught:
        run(pipe, progress=False)
    assert str(caught.value) == (
        "The last transform must return a NumPy array, got list from 'as list'. "
        "Add a transform that converts, such as numpy.asarray."
    )


def test_an_accelerator_of_ones_own_needs_only_to_open(tmp_path):
    class Mine:
        def open(self, **rest):
            return VirtualAccelerator(step_time="2 ms").open(**rest)

    assert run(pipeline(tmp_path, accelerator=Mine()), seconds="0.05 s", progress=False).utilization > 0
