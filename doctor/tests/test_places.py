"""A place is a line of the user's own code, and the call below it."""

import gzip
import io
import sys

import pytest

from starvelab_doctor.watching import hooks
from starvelab_doctor.watching.places import code_line_of, is_own, moved_to_search, stack_of


def here():
    """The stack of whoever calls this."""
    return stack_of(sys._getframe(1))


def test_the_line_that_calls_a_function_of_python_is_named_with_it():
    seen = []

    class Source(io.BytesIO):
        def read(self, *size):
            seen.append(here())
            return super().read(*size)

    with gzip.open(Source(gzip.compress(b"text"))) as file:
        file.read()
    # The innermost line of the user's code counts, and this class is the user's.
    assert code_line_of(seen[0]).call == "here"
    outer = tuple(frame for frame in seen[0] if frame[0].co_name != "read" or "gzip" in frame[0].co_filename)
    place = code_line_of(outer)
    assert place.call.startswith("gzip.")
    assert place.own


def test_a_call_of_c_has_the_name_that_the_source_gives_it():
    seen = []
    min([0], key=lambda _: seen.append(here()))
    caller = seen[0][:-1]
    place = code_line_of(caller)
    first = test_a_call_of_c_has_the_name_that_the_source_gives_it.__code__.co_firstlineno
    assert (place.call, place.line) == ("min", first + 2)


@pytest.mark.parametrize("file", ["<string>", hooks.__file__])
def test_the_doctor_and_code_made_from_a_text_are_passed_over(file):
    # The proxy of a Manager and an inner DataLoader had such a name, which tells nothing.
    files = {"train.py": "item", file: "timed", "/x/site-packages/managers.py": "call"}
    stack = tuple(
        (compile("pass", name, "exec").replace(co_name=called, co_qualname=called), 0)
        for name, called in files.items()
    )
    assert code_line_of(stack).call == "managers.call"


def test_python_and_packages_are_not_the_users():
    assert is_own(__file__)
    assert not is_own(gzip.__file__)
    assert not is_own(pytest.__file__)
    assert not is_own("<frozen importlib._bootstrap>")
    assert is_own("<ipython-input-3-0123456789ab>")


class Searched:
    def __init__(self, items):
        self.items = items

    def seen(self):
        frame = sys._getframe()
        found = -1 in self.items
        stack = stack_of(frame)
        return found, moved_to_search(frame, stack)


@pytest.mark.parametrize(("items", "line"), [(list(range(2000)), 2), (set(range(2000)), 3), ([1], 3)])
def test_a_late_sample_is_of_the_search_before_it_where_that_is_long(items, line):
    _, stack = Searched(items).seen()
    assert code_line_of(stack).line == Searched.seen.__code__.co_firstlineno + line
