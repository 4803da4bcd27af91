"""Messages arrive whole; silence, noise and an end of the line are told apart, each in time."""

import os
import struct
import threading

import pytest

from starvelab_grader.sandbox.channel import MAX_MESSAGE, Channel, ChannelError


@pytest.fixture
def ends():
    """Two channels that talk to each other."""
    (one_in, one_out), (two_in, two_out) = os.pipe(), os.pipe()
    pair = Channel(one_in, two_out), Channel(two_in, one_out)
    yield pair
    for end in pair:
        try:
            end.close()
        except OSError:
            continue


def test_messages_arrive_in_turn_and_whole(ends):
    here, there = ends
    big = {"text": "x" * 1_000_000}
    sender = threading.Thread(target=lambda: [here.send(big, 5), here.send({"next": 1}, 5)])
    sender.start()
    assert there.receive(5) == big
    assert there.receive(5) == {"next": 1}
    sender.join()


SILENT, GONE = r"Nothing came in time\.", r"The other end is gone\."
HALF, LONG = struct.pack(">I", 10) + b"{", struct.pack(">I", MAX_MESSAGE + 1)
# What the other end does, what is done here, and what is said then.
TROUBLE = {
    "silence": (id, lambda here: here.receive(0.05), SILENT),
    "half a message": (lambda there: os.write(there.sink, HALF), lambda here: here.receive(0.05), SILENT),
    "nobody reads": (id, lambda here: here.send({"text": "x" * 5_000_000}, 0.05), SILENT),
    "an end that is gone": (Channel.close, lambda here: here.receive(1), GONE),
    "an end that is gone, for what is sent": (Channel.close, lambda here: here.send({}, 1), GONE),
    "too long to be read": (
        lambda there: os.write(there.sink, LONG), lambda here: here.receive(1),
        f"{MAX_MESSAGE} bytes, and this one announces {MAX_MESSAGE + 1}",
    ),
    "too long to be sent": (
        id, lambda here: here.send({"text": "x" * MAX_MESSAGE}, 1),
        f"at most {MAX_MESSAGE} bytes, and this one has",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("there_does", "here_does", "said"), TROUBLE.values(), ids=TROUBLE)
def test_what_does_not_arrive_is_an_error_after_its_time(ends, there_does, here_does, said):
    here, there = ends
    there_does(there)
    with pytest.raises(ChannelError, match=said):
        here_does(here)


@pytest.mark.parametrize(
    "body", [b"\xff", b"{", b"[1]", b"3", b"[" * 100_000, b'{"a": ' + b"1" * 4301 + b"}"]
)
def test_what_is_no_message_is_refused(ends, body):
    def write():
        data = struct.pack(">I", len(body)) + body
        while data:
            try:
                data = data[os.write(ends[1].sink, data) :]
            except BlockingIOError:
                continue

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.raises(ChannelError, match="What was received is no message"):
        ends[0].receive(5)
    writer.join()


def test_a_message_holds_whole_numbers_of_many_digits(ends):
    ends[0].send({"value": -(10**400)}, 1)
    assert ends[1].receive(1) == {"value": -(10**400)}
