"""A training script is read by what it does, and its four faults are faults."""

import io

import pytest
from PIL import Image

from starvelab.errors import InputError
from starvelab.lesson.course.training_script import (
    blur,
    changed_training,
    crop,
    decode,
    read_labels,
    script_text,
    simulated_throughput,
    starved_counts,
    starved_script,
    what_it_does,
)

# Each repair, and the numbers that it changes.
REPAIRS = {
    "workers": [("workers=3", "workers=4")],
    "order": [('Transform("blur", blur),', ""), ("crop),", 'crop), Transform("blur", blur),')],
    "labels": [("    labels = read_labels()", ""), ("def look_up", "labels = read_labels()\n\ndef look_up")],
    "bytes": [('Transform("normalize", normalize),', "")],
}
CHANGED = {
    "workers": {"workers": 4},
    "order": {"blurred pixels": 224 * 224},
    "labels": {"label reads": 0},
    "bytes": {"bytes sent": 3 * 224 * 224},
}


def repaired(*names):
    text = starved_script()
    for old, new in (pair for name in names for pair in REPAIRS[name]):
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def starved():
    return what_it_does(starved_script())


def test_the_starved_script_is_counted(starved):
    assert (
        starved
        == starved_counts()
        == {
            "workers": 3,
            "batch size": 32,
            "shape": [3, 224, 224],
            "bytes sent": 4 * 3 * 224 * 224,
            "decoded pixels": 500 * 375,
            "blurred pixels": 500 * 375,
            "label reads": 1,
            "labels used": 1,
            "images sent": 1,
        }
    )
    assert what_it_does(starved_script(), 640, 480) == starved_counts(640, 480)


@pytest.mark.parametrize("name", REPAIRS)
def test_a_repair_changes_one_number_and_makes_it_faster_with_the_others(starved, name):
    done = what_it_does(repaired(name))
    assert done == starved | CHANGED[name]
    others = what_it_does(repaired(*(one for one in REPAIRS if one != name)))
    everything = simulated_throughput(what_it_does(repaired(*REPAIRS)))
    assert simulated_throughput(starved) <= simulated_throughput(done) < everything
    assert simulated_throughput(others) < 2 * simulated_throughput(starved) < everything


def test_what_belongs_to_the_training_is_told_from_its_speed(starved):
    assert changed_training(starved) == "nothing"
    assert changed_training(starved | {"batch size": 16}) == "batch size"
    assert changed_training(starved | {"shape": [3, 112, 112]}) == "pixels"
    assert changed_training(starved | {"blurred pixels": 0}) == "blur"
    assert changed_training(starved | {"labels used": 0}) == "labels"


def test_a_script_that_runs_nothing_or_twice_is_rejected():
    with pytest.raises(InputError, match=r"A training script runs one pipeline, got 0\. Call its"):
        what_it_does("print('hello')")
    with pytest.raises(InputError, match=r"got 2\."):
        what_it_does(starved_script() + "\n    pipeline.measure()\n")


def test_the_starved_script_is_given_once_and_what_was_edited_stays(tmp_path):
    path = tmp_path / "train.txt"
    assert script_text(path) == starved_script() == path.read_text()
    path.write_text("edited")
    assert script_text(path) == "edited"


FAR = "def far(image): return image.filter(__import__('PIL.ImageFilter').ImageFilter.GaussianBlur(2))"


@pytest.mark.parametrize(("changes", "counts"), [
    ([("import blur, crop, decode", "import blur, crop"), ("decode, part", "transforms.decode, part")],
     {"decoded pixels": 0}),
    ([("labels = read_labels()", "labels = {'00000.jpg': 0}"), ('"blur", blur', '"blur", far')],
     {"blurred pixels": 0, "label reads": 0, "labels used": 0}),
    ([('Transform("label", look_up),', "")], {"label reads": 0, "labels used": 0}),
    ([('"to array", to_array', '"none", lambda image: 0 * to_array(image)')], {"images sent": 0}),
    ([('"blur", blur', '"blur", lambda image: (blur(Image.new("RGB", (224, 224))), image)[1]')],
     {"blurred pixels": 0}),
])  # fmt: skip
def test_only_what_the_parts_do_to_the_photographs_counts(starved, changes, counts):
    text = f"from PIL import Image\nfrom starvelab.measure import transforms\n{FAR}\n{starved_script()}"
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    assert what_it_does(text) == starved | counts


@pytest.mark.parametrize(("once", "labels"), [
    ("functools.cache(read_labels)", "once()"),
    ("functools.cache(lambda: read_labels().get('00000.jpg'))", "{'00000.jpg': once()}"),
    ("dict(read_labels())", "once"),
])  # fmt: skip
def test_what_is_done_once_for_all_images_is_not_done_to_each(starved, once, labels):
    text = starved_script().replace("def look_up", f"import functools\nonce = {once}\n\ndef look_up")
    assert what_it_does(text.replace("labels = read_labels()", f"labels = {labels}")) == starved | {
        "label reads": 0
    }


@pytest.mark.parametrize(("asks", "message"), [
    ('work("settle", -1, 32)', "A script asks for 0 to 10000 workers, and as many images, got -1"),
    ('work("settle", 4, "32")', "and as many images, got '32'"),
    ('work("photo"); work("decode", b"x")', "decode takes the bytes of the photograph that was read last"),
    ('work("blur", np.zeros((2, 2), "u1"))', "blur takes an image in colors, got array"),
    ('work("send", [1])', r"A pipeline sends arrays, got \[1\]"),
    ('work("photo")', r"Each photograph is read once, and there are no more\."),
])  # fmt: skip
def test_what_a_script_asks_for_itself_is_checked(asks, message):
    parts = "from starvelab.lesson.course import training_script as parts"
    own = f"import numpy as np\n{parts}\nwork = parts._work.get()\n"
    text = f"{own}{asks}\n{starved_script()}"
    if asks == 'work("photo")':
        text = (
            starved_script()
            .replace("return image", f"{asks}; return image")
            .replace("def look_up", f"{own}\ndef look_up")
        )
    with pytest.raises(InputError, match=message):
        what_it_does(text)


def test_parts_do_their_work_where_nobody_counts():
    stored = io.BytesIO()
    Image.new("RGB", (300, 200)).save(stored, "JPEG")
    image = blur(crop(decode(stored.getvalue())))
    assert image.size == (224, 224)
    assert read_labels()["00000.jpg"] == 0
