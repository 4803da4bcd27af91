"""The file of predictions: locked once, written whole, shared by several notebooks, and never destroyed."""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from starvelab.lesson.widgets import store
from starvelab.lesson.widgets.store import PredictionStore, now
from starvelab.prediction_file import MAX_BYTES, Contents, Prediction
from tests.lesson.widgets.locked import predictions

pytestmark = pytest.mark.programs

NAME = "predictions.json"
IMPORTING = os.environ | {"PYTHONPATH": str(Path(store.__file__).parents[3])}


def a_record(key="cpu-wall", answer="CPU", **fields) -> Prediction:
    return Prediction(key=key, answer=answer, locked_at=now(), **fields)


def test_the_file_is_plain_json_by_key_and_there_is_none_before_anything_is_locked(folder):
    assert PredictionStore().read() == Contents({}, None)
    assert (predictions(), list(folder.iterdir())) == ({}, [])
    PredictionStore().lock(a_record(answer=18.3, unit="%", confidence=0.5))
    data = json.loads((folder / NAME).read_text())
    assert data["cpu-wall"]["answer"] == 18.3
    assert data["cpu-wall"]["unit"] == "%"
    assert data["cpu-wall"]["locked_at"].endswith("+00:00")
    assert predictions() == data


def test_a_prediction_is_locked_once_and_the_file_is_left_untouched_then(folder):
    first = a_record()
    assert PredictionStore().lock(first) == store.StoreResult(first, is_new=True)
    before = (folder / NAME).read_bytes()
    stamp = os.stat(folder / NAME).st_mtime_ns
    assert PredictionStore().lock(a_record(answer="storage")) == store.StoreResult(first, is_new=False)
    assert (folder / NAME).read_bytes() == before
    assert os.stat(folder / NAME).st_mtime_ns == stamp


def test_the_first_reveal_stays_and_whoever_waits_for_a_key_is_called_once_when_it_is_locked():
    made, calls = PredictionStore(), []
    made.when_locked("cpu-wall", lambda: calls.append("locked"))
    with pytest.raises(KeyError):
        made.reveal("cpu-wall", truth=18.3, hit=True)
    made.wake("other")
    assert calls == []
    made.lock(a_record(answer=18.0, unit="%"))
    made.wake("cpu-wall")
    made.wake("cpu-wall")
    assert calls == ["locked"]
    first = made.reveal("cpu-wall", truth=18.3, hit=True)
    second = made.reveal("cpu-wall", truth=99.0, hit=False)
    assert (first.is_new, second.is_new) == (True, False)
    assert second.prediction == first.prediction
    assert predictions()["cpu-wall"]["truth"] == 18.3


def test_a_write_that_fails_half_way_leaves_the_old_file_whole(folder, monkeypatch):
    PredictionStore().lock(a_record())
    before = (folder / NAME).read_bytes()

    def half(_data, file, **_options):
        file.write('{"cpu-wall": {"ans')
        raise KeyboardInterrupt

    monkeypatch.setattr(store.json, "dump", half)
    with pytest.raises(KeyboardInterrupt):
        PredictionStore().lock(a_record(key="other"))
    assert (folder / NAME).read_bytes() == before
    assert [path.name for path in folder.glob("[!.]*")] == [NAME]


def test_many_kernels_writing_at_once_lose_nothing_and_one_of_them_is_first(folder):
    program = """
import sys
from starvelab.lesson.widgets.store import PredictionStore, now
from starvelab.prediction_file import Prediction
me, store, firsts = sys.argv[1], PredictionStore(), 0
for i in range(15):
    store.lock(Prediction(key=f"{me}-{i}", answer=me, locked_at=now()))
    firsts += store.lock(Prediction(key=f"shared-{i}", answer=me, locked_at=now())).is_new
print(firsts)
"""
    kernels = [
        subprocess.Popen(
            [sys.executable, "-c", program, name], stdout=subprocess.PIPE, text=True, env=IMPORTING
        )
        for name in ("a", "b")
    ]
    firsts = [int(kernel.communicate(timeout=120)[0]) for kernel in kernels]
    assert sum(firsts) == 15
    assert len(predictions()) == 3 * 15
    assert [path.name for path in folder.glob("[!.]*")] == [NAME], "and nothing that a learner sees"


HOLD = """
import sys
from starvelab.lesson.widgets.store import PredictionStore, now
from starvelab.prediction_file import Prediction

def hold(predictions):
    print("held", flush=True)
    sys.stdin.readline()
    return Prediction(key="slow", answer="x", locked_at=now())

PredictionStore()._update("slow", hold)
"""


@contextmanager
def held_by_a_kernel():
    kernel = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=IMPORTING
    )
    with kernel:
        assert kernel.stdout.readline() == "held\n"
        yield kernel


def test_two_never_hold_the_lock_however_long_the_first_one_takes(folder, monkeypatch):
    with held_by_a_kernel(), monkeypatch.context() as impatient:
        impatient.setattr(store, "LOCK_TIMEOUT", 0.2)
        (lock,) = folder.glob("*.lock")
        os.utime(lock, (0, 0))  # as after a laptop has slept
        result = PredictionStore().lock(a_record())
        assert result.is_new
        assert "another notebook is writing predictions.json" in result.problem
        assert "It counts until the kernel stops." in result.problem
    assert PredictionStore().lock(a_record(key="next")).problem is None
    assert set(predictions()) == {"slow", "cpu-wall", "next"}


def test_a_kernel_that_dies_leaves_no_lock_and_where_none_can_be_had_predictions_are_kept(
    folder, monkeypatch
):
    with held_by_a_kernel() as kernel:
        kernel.kill()
    assert PredictionStore().lock(a_record()).problem is None
    assert set(predictions()) == {"cpu-wall"}
    # In a browser there is no lock.
    (folder / "page").mkdir()
    monkeypatch.setattr(sys, "platform", "emscripten")
    monkeypatch.setitem(sys.modules, "filelock", None)
    assert PredictionStore(folder / "page").lock(a_record()).problem is None
    assert [path.name for path in (folder / "page").iterdir()] == [NAME]


def test_a_folder_that_cannot_be_written_keeps_the_prediction_until_the_kernel_stops(folder):
    (folder / "file").touch()
    nowhere = folder / "file" / "below"  # no folder: every write fails, for root too
    result = PredictionStore(nowhere).lock(a_record(answer="CPU"))
    assert result.is_new
    assert result.problem.startswith("A prediction is kept in ")
    # In the brackets stand the system's own words.
    assert re.search(r"could not be written \(.+\). It counts until the kernel stops\.", result.problem)
    assert "Make the folder writable, then run this cell again." in result.problem
    again = PredictionStore(nowhere).lock(a_record(answer="storage"))
    assert (again.prediction.answer, again.is_new) == ("CPU", False)
    revealed = PredictionStore(nowhere).reveal("cpu-wall", truth="CPU", hit=True)
    assert revealed.prediction.hit
    assert PredictionStore(nowhere).get("cpu-wall").truth == "CPU"
    # What could not be written is written with the next.
    late = folder / "late"
    PredictionStore(late).lock(a_record(key="first"))
    late.mkdir()
    PredictionStore(late).lock(a_record(key="second"))
    assert set(json.loads((late / NAME).read_text())) == {"first", "second"}
    (folder / NAME).mkdir()
    problem = PredictionStore().read().problem
    assert re.match(r"predictions\.json must be readable, and it is not \(.+\)", problem), problem


CORRUPT = {
    b"{": "must be JSON, and it is not",
    b"": "must be JSON, and it is not",
    b'{"a": "\xff"}': "must be text in UTF-8 or UTF-16, and it is not",
    b'{"a": %s}' % (b"9" * 10_000): "must be JSON, and it is not (Exceeds the limit",
    b'{"\\ud800": {"answer": "x", "locked_at": "t"}}': r"('\ud800': key is not what a prediction holds)",
    b'{"a": {"answer": "x", "locked_at": "t", "choices": ["\\udfff"]}}': "('a': choices is not what",
    b'{"%s": 3}' % (b"k" * 5000): f"('{'k' * 78}…: it is no table of fields)",
    b"{%s}" % b",".join(b'"k%d": 3' % n for n in range(50)): "'k9': it is no table of fields; and 40 more)",
    b'{"a": "%s"}' % (b"x" * MAX_BYTES): "may have 1 MB, and it has more",
    b"[1, 2]": "must hold one table of predictions, and it holds a list",
    b'{"a": 3}': "must hold whole predictions, and not all are ('a': it is no table of fields)",
    b'{"a": {"answer": "x"}}': "('a': locked_at is missing)",
    b'{"a": {"answer": true, "locked_at": "t"}}': "('a': answer is not what a prediction holds)",
    b'{"a": {"answer": NaN, "locked_at": "t"}}': "('a': answer is not what a prediction holds)",
    b'{"a": {"answer": 1, "locked_at": "t", "confidence": 1%s}}' % (b"0" * 400): (
        "('a': confidence is not what a prediction holds)"
    ),
}


@pytest.mark.parametrize(("content", "said"), CORRUPT.items())
def test_a_corrupt_file_is_explained_left_alone_by_reading_and_set_aside_by_locking(folder, content, said):
    (folder / NAME).write_bytes(content)
    contents = PredictionStore().read()
    assert said in contents.problem
    assert "The next prediction you lock sets it aside" in contents.problem
    assert (folder / NAME).read_bytes() == content

    result = PredictionStore().lock(a_record())
    assert result.is_new
    assert "It was moved to predictions.json.bad-1; nothing in it was changed." in result.problem
    assert (folder / f"{NAME}.bad-1").read_bytes() == content
    assert PredictionStore().read().problem is None


def test_whole_predictions_beside_a_broken_one_are_kept(folder):
    PredictionStore().lock(a_record(key="whole"))
    data = json.loads((folder / NAME).read_text())
    data["whole"]["mood"] = "good"  # a field of a later version
    for number, key in enumerate(("next", "last"), start=1):
        (folder / NAME).write_text(json.dumps(data | {"broken": {"answer": number}}))
        assert set(predictions()) == {"whole"}
        PredictionStore().lock(a_record(key=key))
        assert set(predictions()) == {"whole", key}
        assert json.loads((folder / f"{NAME}.bad-{number}").read_text())["broken"] == {"answer": number}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_what_an_editor_of_windows_saves_is_read(folder, encoding):
    PredictionStore().lock(a_record(question="Wie schnell überhaupt?"))
    content = (folder / NAME).read_text(encoding="utf-8").replace("\n", "\r\n")
    (folder / NAME).write_bytes(content.encode(encoding))
    assert PredictionStore().read().problem is None
    PredictionStore().lock(a_record(key="next"))
    assert set(json.loads((folder / NAME).read_text(encoding="utf-8"))) == {"cpu-wall", "next"}
