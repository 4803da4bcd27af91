"""Tokenizers and token files on one core of this machine, and a tokenizer in real workers beside the model.

The vocabulary is trained here, on the text of Python's own library: published ones would have to be fetched.
The package `tokenizers` trains it, and `tiktoken` encodes with the same one.
"""

from __future__ import annotations

import os
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np
from tabulate import tabulate

from starvelab import Pipeline, Samples, Workers
from starvelab.measure import Transform
from starvelab.measure.samples import StoredSource

from .report import machine, options
from .results import save

CHARACTERS, ROW, VOCABULARY = 4000, 1024, 16_000
WORDS = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


@cache
def documents() -> tuple[bytes, ...]:
    """Text of Python's own library, in pieces of one length."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    text = "".join(file.read_text(encoding="utf-8", errors="ignore") for file in files)
    return tuple(text[i : i + CHARACTERS].encode() for i in range(0, len(text) - CHARACTERS, CHARACTERS))


@cache
def trained() -> str:
    """A byte-level vocabulary of these documents, as the package `tokenizers` writes it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator((one.decode() for one in documents()), trainer)
    return made.to_str()


@cache
def encoder(name: str) -> Callable[[str], Sequence[int]]:
    """The function of a library that makes tokens of a text; each process makes its own."""
    from tokenizers import Tokenizer

    made = Tokenizer.from_str(trained())
    if name == "tokenizers":
        return lambda text: made.encode(text).ids
    import tiktoken
    from tokenizers import pre_tokenizers

    # The vocabulary writes each byte as a character of its own.
    byte_of = {}
    for byte in range(256):
        character = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        byte_of |= {} if byte >= 128 else {character.pre_tokenize_str(chr(byte))[0][0]: byte}
    extra = iter(sorted(set(pre_tokenizers.ByteLevel.alphabet()) - set(byte_of)))
    byte_of |= {character: byte for byte, character in zip(range(128, 256), extra, strict=True)}
    ranks = {bytes(byte_of[c] for c in word): rank for word, rank in made.get_vocab().items()}
    return tiktoken.Encoding(
        "trained here", pat_str=WORDS, mergeable_ranks=ranks, special_tokens={}
    ).encode_ordinary


def row(tokens: Sequence[int]) -> np.ndarray:
    """One document in a row of its own: the rest is padding."""
    made = np.zeros(ROW, dtype=np.uint16)
    made[: len(tokens)] = tokens[:ROW]
    return made


class Tokenize:
    """Make tokens of a stored document, in whatever process this is."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, raw: bytes) -> Sequence[int]:
        """Tokens of a document."""
        return encoder(self.name)(raw.decode())


def rate(seconds: float, work: Callable[[int], int]) -> tuple[float, float]:
    """Documents and tokens that one core makes in a second of its own, whatever runs beside it."""
    work(0)
    start, count, tokens = time.process_time(), 0, 0
    while time.process_time() < start + seconds:
        tokens += work(count)
        count += 1
    took = time.process_time() - start
    return count / took, tokens / took


def from_file(folder: str) -> Callable[[int], int]:
    """Rows at random places of a file of tokens that were made before."""
    path, random = Path(folder) / "tokens.bin", np.random.default_rng(0)
    np.random.default_rng(1).integers(0, VOCABULARY, 50_000_000, dtype=np.uint16).tofile(path)
    tokens = np.memmap(path, dtype=np.uint16, mode="r")
    return lambda _: len(
        tokens[(place := int(random.integers(len(tokens) - ROW))) : place + ROW].astype(np.int64)
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__, seconds=(5.0, 0.2), run=("2 s", "0.3 s"), turns=(7, 1), workers=((1, 2), (1,)))
    asked = parser.parse_args(arguments)
    print(f"{machine()}\n")
    installed = [name for name in ("tokenizers", "tiktoken") if find_spec(name) and find_spec("tokenizers")]
    if len(installed) < 2:
        print("Not everything was measured: `pip install tokenizers tiktoken` first.\n")
    size, shown = len(documents()[0]), []
    for name in installed:
        encode = encoder(name)
        texts, tokens = rate(
            asked.seconds, lambda i, f=encode: len(f(documents()[i % len(documents())].decode()))
        )
        shown.append([name, f"{texts * size / 2**20:.1f} MiB/s", f"{tokens / 1e6:.2f} M"])
        save(
            f"text {name}",
            f"{name}, one core",
            f"{texts * size / 2**20:.1f} MiB/s",
            f"{tokens / 1e6:.2f} M tokens/s",
        )
    with tempfile.TemporaryDirectory() as folder:
        rows, tokens = rate(asked.seconds, from_file(folder))
    shown.append([f"np.memmap, rows of {ROW} tokens", f"{1e6 / rows:.1f} us a row", f"{tokens / 1e6:.0f} M"])
    save(
        "text memmap",
        "a file of tokens, one core",
        f"{1e6 / rows:.1f} us a row",
        f"{tokens / 1e6:.0f} M tokens/s",
    )
    print(tabulate(shown, ["one core", "rate", "tokens/s"]))
    print()
    rows, loads = [], []
    for name in installed:
        source, parts = StoredSource("documents", documents(), noun=""), (Tokenize(name), row)
        transforms = tuple(
            Transform(what, part) for what, part in zip(("tokenize", "pad"), parts, strict=True)
        )
        live = Samples(source=source, transforms=transforms)
        base = Pipeline(dataset=live, batch_size=32, hardware="1 ms", workers=Workers(1, kind="processes"))
        found: dict[int, list[list[float]]] = {count: [] for count in asked.workers}
        # Other programs slow a calibration and a run alike, if they come together.
        for _ in range(asked.turns):
            known = base.calibrated(seconds=asked.run, progress=False)
            for count, turn in found.items():
                many = known.replace(workers=count)
                loads.append(os.getloadavg()[0])
                run = base.replace(workers=count).measure(seconds=asked.run, repeat=True, progress=False)
                turn.append([one.throughput.m_as("img/s") for one in (many.solve(), many.simulate(), run)])
        for count, turn in found.items():
            shown = [f"{median(one) * size / 2**20:.2g} MiB/s" for one in zip(*turn, strict=True)]
            off = f"{100 * (median(one[0] / one[2] for one in turn) - 1):+.1f} %"
            rows.append([name, count, *shown, off])
            what = f"{name} in {count} worker process{'es' * (count > 1)}, measured, and solved from one"
            save(f"text live {name} {count}", what, shown[2], shown[0], off)
    print(tabulate(rows, ["tokenizer", "workers", "solved", "simulated", "measured", "error"]))
    if loads:
        print(f"\nMeanwhile {min(loads):.0f} to {max(loads):.0f} processes wanted a core, by the load.")


if __name__ == "__main__":
    main()
