"""The sampler in the workers: however they start, and whatever they go over."""

import gc
import os
import pickle
import time
from multiprocessing import forkserver

import pytest
import torch.utils.data

from starvelab_doctor.watching.job_lines import JobSamples
from starvelab_doctor.watching.places import CodeLine
from starvelab_doctor.watching.stack_samples import Sample
from starvelab_doctor.watching.worker_sampler import (
    COLLATE,
    DATASET,
    IDLE,
    WorkerFolder,
    WorkerSamples,
    library_threads,
    read_samples,
)

pytestmark = pytest.mark.programs  # each starts workers


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, index):
        time.sleep(0.01)  # item
        return index


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        if torch.utils.data.get_worker_info().id:
            return
        for index in range(80):
            time.sleep(0.01)  # streamed
            yield index


def slowly(items):
    time.sleep(0.02)  # collated
    return items


def line_of(mark):
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.endswith(f"  # {mark}\n"))


@pytest.fixture
def folder():
    folder = WorkerFolder()
    yield folder
    folder.close()
    forkserver._forkserver._stop()  # it would outlive the test
    assert not folder.path.exists()


def seen(folder, loader):
    """What each worker did, and at which lines of this file."""
    with folder.starting(loader) as token:
        source = iter(loader)
    assert loader.worker_init_fn is None
    assert sum(1 for _ in source) == 10
    del source
    return folder.of({token})


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_that_start_in_any_way_say_where_they_are(folder, method):
    loader = torch.utils.data.DataLoader(
        Items(), 8, num_workers=1, multiprocessing_context=method, collate_fn=slowly
    )
    (worker,) = seen(folder, loader)
    placed = [one for one in worker.samples if one.place]
    lines = {(one.phase, one.place.line) for one in placed if one.place.file == __file__}
    assert {(DATASET, line_of("item")), (COLLATE, line_of("collated"))} <= lines
    assert any("sleep" in one.place.call for one in placed)


def test_a_worker_without_items_is_idle(folder):
    loader = torch.utils.data.DataLoader(Stream(), 8, num_workers=2)
    busy, idle = seen(folder, loader)
    lines = {one.place.line for one in busy.samples if one.phase == DATASET and one.place}
    assert lines == {line_of("streamed")}
    assert not [one for one in idle.samples if one.phase == DATASET and one.place]
    assert {one.phase for one in busy.samples} & {DATASET}
    assert idle.worker == 1


class Collecting(Items):
    def __getitem__(self, index):
        if index % 20 == 0:  # it looks at all that pytest and torch have loaded, which takes long
            gc.collect()
        return super().__getitem__(index)


def test_pauses_of_the_collector_and_threads_are_counted(folder):
    (worker,) = seen(folder, torch.utils.data.DataLoader(Collecting(), 8, num_workers=1))
    assert worker.pauses > 0
    assert worker.threads == 0  # of a library, that compute


def test_a_thread_that_waits_for_a_core_has_work(tmp_path):
    first = os.getpid()
    # It computes for 2 s and waits for 30 s; a helper of its library only waits; a third one rests.
    for task, times in {first: (2e9, 30e9), "1": (0.1e9, 31e9), "2": (0.1e9, 0.3e9)}.items():
        (tmp_path / str(task)).mkdir()
        (tmp_path / str(task) / "schedstat").write_text("{:.0f} {:.0f} 9\n".format(*times), encoding="ascii")
    assert library_threads(33.0, tmp_path) == (1, 30.0)
    assert library_threads(330.0, tmp_path) == (0, 30.0)  # the worker rests for most of its life


def test_lines_and_shares_of_a_whole_job():
    samples, loader = JobSamples(), torch.utils.data.DataLoader(Stream(), 8, num_workers=2)
    with samples.watching():
        begun = time.perf_counter()
        with samples.folder.starting(loader) as token:
            source = iter(loader)
        for _ in source:
            pass
        span = (begun, time.perf_counter())
        del source
    found = samples.of({token}, [span], [], sent=True)
    assert found.preparing[0].place == f"test_worker_sampler.py:{line_of('streamed')}"
    assert found.preparing[0].share > 0.5
    assert (found.idle, found.reason) == (1, "")
    assert IDLE not in {line.phase for line in found.preparing}
    assert samples.of({99}, [span], [], sent=True).reason == "none of them wrote a sample"


def test_what_is_being_written_is_left_out(tmp_path):
    path, first = tmp_path / "0-1-2.samples", Sample(1.0, 0.02, "dataset", None)
    second = Sample(2.0, 0.03, "collate", CodeLine("train.py", 3))
    with path.open("wb") as file:
        for written in (([first], 0.25, 3, 0.0), ([second], 0.5, 4, 0.2)):
            file.write(pickle.dumps(written))
        file.write(pickle.dumps(([first], 0.75, 5, 0.3))[:-9])
    assert read_samples(path) == WorkerSamples(1, [first, second], 0.5, 4, 0.2)
