"""Count how documents of unequal length fill the rows of a batch, and hand the rows to `Samples`.

Useful tokens are those of documents: tokens that are computed on, times one less the share of padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log1p, sqrt
from statistics import NormalDist

import numpy as np

from ...errors import InputError, MissingValueError
from ...model.catalogue import Entry
from ...model.samples import Samples
from ...model.step import Step
from ...units import Q_, Number, Quantity, Unchecked, positive_int

STRATEGIES = ("padded", "sorted", "split", "first-fit")
# Where all documents, by length, are cut into parts: ever finer among the longest hundredth, since one long
# document among ten thousand is as long as the batch that it is in.
_EDGES = np.concatenate((np.linspace(0, 0.99, 991), 1 - np.geomspace(0.01, 1e-6, 201)[1:], [1.0]))
_SHARES = np.diff(_EDGES)
# Documents that are drawn, and the most in a pool: packing takes longer than sorting.
_DRAWN = {"sorted": 100_000, "first-fit": 10_000}


class Lengths(tuple[float, ...]):
    """Lengths of documents [tokens], ascending: the mean of each part that `_EDGES` cut."""

    @property
    def mean(self) -> float:
        """Their mean [tokens]."""
        return float(np.array(self) @ _SHARES)


@dataclass(frozen=True)
class Rows:
    """What a row holds on average, in tokens unless it says otherwise.

    Attributes
    ----------
    documents : float
        How many, or which part of one.
    useful, computed : float
        Tokens of documents, and tokens with padding.
    length : int
        Of the longest row, as the model takes it.
    """

    documents: float
    useful: float
    computed: float
    length: int

    @property
    def padding(self) -> float:
        """Share of what is computed on that belongs to no document."""
        return 1 - self.useful / self.computed

    @property
    def share(self) -> float:
        """Mean length of a row as a share of the longest: so much of a full row's time it takes."""
        return self.computed / self.length

    def samples(self, *, size: Unchecked = None, cpu_time: Unchecked = None) -> Samples:
        """Return rows as samples, from the size and the CPU time of a document (quantities or texts)."""
        size, cpu_time = (None if part is None else self.documents * Q_(part) for part in (size, cpu_time))
        return Samples(size=size, cpu_time=cpu_time)

    def useful_tokens(self, step: Step) -> Quantity:
        """Return the tokens of documents that are trained on in a second, when a sample is such a row."""
        return Q_(step.throughput.m_as("sample/s") * self.useful, "tokens/s")


def pack(
    documents: Entry | Unchecked, strategy: str, length: int, *, pool: int = 1000, batch_size: int = 1
) -> Rows:
    """Count what rows hold when documents of unequal length are laid into them.

    Parameters
    ----------
    documents : catalogue entry, or array of int
        A data set whose lengths are known, the lengths of your documents [tokens], or
        ``lognormal_lengths(mean, sd)``.
    strategy : {"padded", "sorted", "split", "first-fit"}
        Each document in a row of its own; the same, sorted by length, so that a batch is as long as its
        longest document; all documents joined, and cut into rows; or each in the first row with room for it,
        the longest first.
    length : int
        Tokens of a row, as the model takes them.
    pool : int
        How many documents are sorted or packed at a time; fewer leave more padding.
    batch_size : int
        Only that of sorted documents matters: the larger a batch, the longer its rows.

    Raises
    ------
    InputError, MissingValueError

    Notes
    -----
    For sorted and packed documents, padding is computed on random pools with a fixed seed. A model must keep
    the documents of one row apart.

    Examples
    --------
    >>> rows = pack([100, 300, 500], "split", 400)
    >>> round(rows.documents, 2), rows.samples(cpu_time="1.5 ms").cpu_time
    (1.33, <Quantity(2.0, 'millisecond')>)
    """
    if strategy not in STRATEGIES:
        raise InputError(
            f"The strategy must be one of {', '.join(STRATEGIES)}, got {strategy!r}. Pass one of these."
        )
    length, pool, batch_size = (
        positive_int(number, name)
        for number, name in ((length, "length"), (pool, "pool"), (batch_size, "batch_size"))
    )
    lengths = documents if isinstance(documents, Lengths) else _lengths_of(documents, strategy)
    return _rows(lengths, length, strategy, pool, batch_size)


def _lengths_of(documents: Entry | Unchecked, strategy: str) -> Lengths:
    """Return the lengths of a data set's documents, as far as a strategy needs them, or those of an array."""
    if not isinstance(documents, Entry):
        if not np.size(lengths := positive_int(documents, "documents")):
            raise InputError("Documents have lengths, got none. Pass one length or more.")
        return array_lengths(lengths)
    facts = documents.facts
    if documents.get("decoded_elements") is not None:
        raise InputError(
            f"Documents are packed into rows, got {documents.name}, whose samples have one length. "
            "Pass documents such as Datasets.OpenWebText."
        )
    if "token_quantiles" in facts:
        # Lengths at equal steps from the shortest to the longest, straight between.
        ends = np.asarray(facts["token_quantiles"].value, dtype=float)
        return array_lengths(np.interp((np.arange(1000) + 0.5) / 1000, np.linspace(0, 1, len(ends)), ends))
    if {"tokens", "tokens_sd"} <= set(facts):
        return lognormal_lengths(documents.needed("tokens"), documents.needed("tokens_sd"))
    if "tokens" in facts and strategy == "split":
        return array_lengths([documents.needed("tokens")])
    raise MissingValueError(
        f"Packing needs the lengths of documents, and {documents.name} lists none. "
        "Pass an array of lengths, or lognormal_lengths(mean, sd)."
    )


def array_lengths(lengths: Unchecked) -> Lengths:
    """Return the distribution of an array of lengths, each of them as likely."""
    ascending = np.sort(np.asarray(lengths, dtype=float), axis=None)
    return _parts(np.linspace(0, 1, len(ascending) + 1), np.append(0, np.cumsum(ascending)) / len(ascending))


@lru_cache
def lognormal_lengths(mean: float, sd: float) -> Lengths:
    """Return a lognormal distribution by its mean and standard deviation [tokens]."""
    sigma, normal = sqrt(log1p((sd / mean) ** 2)), NormalDist()
    # Documents up to the quantile p hold this share of all tokens.
    held = [0.0, *(normal.cdf(normal.inv_cdf(p) - sigma) for p in _EDGES[1:-1]), 1.0]
    return _parts(_EDGES, mean * np.array(held))


def _parts(shares: np.ndarray, held: np.ndarray) -> Lengths:
    """Return the mean length of each part, from the tokens that each share of the documents holds."""
    return Lengths((np.diff(np.interp(_EDGES, shares, held)) / _SHARES).tolist())


@lru_cache(maxsize=1024)
def _rows(lengths: Lengths, length: Number, strategy: str, pool: Number, batch: Number) -> Rows:
    """Return what rows hold on average.

    What a document has beyond a row is cut off, and of first-fit fills rows of its own. A pool of one batch
    is one without sorting.
    """
    every = np.array(lengths)
    mean, useful = lengths.mean, float(np.minimum(every, length) @ _SHARES)
    if strategy == "split":
        return Rows(length / mean, float(length), float(length), length)
    if strategy == "padded":
        return Rows(1.0, useful, float(length), length)
    # Pools are drawn, always the same, and each length as often as it comes: what is left over in one has no
    # formula.
    drawn = _DRAWN[strategy]
    batch = min(batch, drawn) if strategy == "sorted" else 1
    every = np.maximum(np.rint(every), 1)
    count = batch * ceil(min(pool, drawn) / batch)
    places = np.random.default_rng(0).permutation(ceil(drawn / count) * count) + 0.5
    pools = every[np.searchsorted(_EDGES, places / len(places)) - 1].reshape(-1, count)
    if strategy == "sorted":
        kept = np.sort(np.minimum(pools, length)).reshape(-1, batch)
        return Rows(1.0, useful, useful * float(kept[:, -1].mean() / kept.mean()), length)
    # Full rows of long documents are counted in all of them, since a few may hold most of the tokens.
    full, rest = float(every // length @ _SHARES) * pools.size, pools % length
    rows = full + sum(_first_fit(np.sort(ends), length) for ends in rest)
    useful = (full * length + float(rest.sum())) / rows
    return Rows(useful / mean, useful, float(length), length)


def _first_fit(lengths: np.ndarray, length: Number) -> int:
    """Count the rows that ascending lengths fill, the longest first."""
    room = np.full(len(lengths), length)
    for document in lengths[::-1]:
        room[np.argmax(room >= document)] -= document
    return int(np.count_nonzero(room < length))
