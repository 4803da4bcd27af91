"""What is trained on, and how documents of unequal length become rows of one length.

Useful tokens are those of documents: tokens that are computed on, times one less the share of padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log1p, sqrt
from statistics import NormalDist

import numpy as np

from ..errors import InputError, MissingValueError
from ..units import Amount, Number, Unchecked, positive_int
from . import fields
from .catalogue import Entry, dataset_of
from .fields import Part

# Bytes of one number as it crosses the link.
DTYPE_BYTES = {"uint8": 1, "float16": 2, "float32": 4}
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

    def __repr__(self) -> str:
        return f"<lengths of {self.mean:.4g} tokens on average>"


@dataclass(frozen=True)
class Rows:
    """What a row holds on average, in tokens unless it says otherwise."""

    documents: Number  # how many, or which part of one
    useful: Number  # of documents
    computed: Number  # with padding
    length: int  # of the longest row, as the model takes it

    @property
    def padding(self) -> Number:
        """Share of what is computed on that belongs to no document."""
        return 1 - self.useful / self.computed


def given_lengths(lengths: Unchecked) -> Lengths:
    """Return the distribution of an array of lengths, each of them as likely."""
    ascending = np.sort(np.asarray(lengths, dtype=float), axis=None)
    return _parts(np.linspace(0, 1, len(ascending) + 1), np.append(0, np.cumsum(ascending)) / len(ascending))


@lru_cache
def _quantile_lengths(quantiles: tuple[int, ...]) -> Lengths:
    """Return a distribution by lengths at equal steps from the shortest to the longest, straight between."""
    ends = np.asarray(quantiles, dtype=float)
    return given_lengths(np.interp((np.arange(1000) + 0.5) / 1000, np.linspace(0, 1, len(ends)), ends))


@lru_cache
def lognormal_lengths(mean: float, sd: float) -> Lengths:
    """Return a lognormal distribution by its mean and standard deviation."""
    sigma, normal = sqrt(log1p((sd / mean) ** 2)), NormalDist()
    # Documents up to the quantile p hold this share of all tokens.
    held = [0.0, *(normal.cdf(normal.inv_cdf(p) - sigma) for p in _EDGES[1:-1]), 1.0]
    return _parts(_EDGES, mean * np.array(held))


def lengths_of(documents: Entry, strategy: str) -> Lengths | None:
    """Return the lengths of a data set's documents, as far as a strategy needs them; None if nobody knows."""
    facts = documents.facts
    if "token_quantiles" in facts:
        return _quantile_lengths(facts["token_quantiles"].value)
    if {"tokens", "tokens_sd"} <= set(facts):
        return lognormal_lengths(documents.needed("tokens"), documents.needed("tokens_sd"))
    return given_lengths([documents.needed("tokens")]) if "tokens" in facts and strategy == "split" else None


def _parts(shares: np.ndarray, held: np.ndarray) -> Lengths:
    """Return the mean length of each part, from the tokens that each share of the documents holds."""
    return Lengths((np.diff(np.interp(_EDGES, shares, held)) / _SHARES).tolist())


def rows_of(lengths: Lengths, length: int, strategy: str, pool: int, batch: Number) -> Rows:
    """Return what rows hold; of sorted ones that depends on the size of a batch, which may be an array."""
    if strategy != "sorted":
        return _rows(lengths, length, strategy, pool, 1)
    sizes = np.asarray(batch)
    found = [_rows(lengths, length, strategy, pool, int(size)) for size in sizes.flat]
    useful, computed = (
        np.reshape([getattr(one, name) for one in found], sizes.shape)[()] for name in ("useful", "computed")
    )
    return Rows(1.0, useful, computed, length)


@lru_cache(maxsize=1024)
def _rows(lengths: Lengths, length: int, strategy: str, pool: int, batch: int) -> Rows:
    """Return what rows hold on average, by the strategies of `Packing`.

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
    batch, every = min(batch, drawn), np.maximum(np.rint(every), 1)
    count = batch * ceil(min(pool, drawn) / batch)
    places = np.random.default_rng(0).permutation(ceil(drawn / count) * count) + 0.5
    pools = every[np.searchsorted(_EDGES, places / len(places)) - 1].reshape(-1, count)
    if strategy == "sorted":
        kept = np.sort(np.minimum(pools, length)).reshape(-1, batch)
        return Rows(1.0, useful, useful * float(kept[:, -1].mean() / kept.mean()), length)
    # Full rows of long documents are counted in all of them, since a few may hold most of the tokens.
    full, rest = float(every // length @ _SHARES) * pools.size, pools % length
    rows = full + sum(_first_fit(np.sort(one), length) for one in rest)
    useful = (full * length + float(rest.sum())) / rows
    return Rows(useful / mean, useful, float(length), length)


def _first_fit(lengths: np.ndarray, length: int) -> int:
    """Count the rows that ascending lengths fill, the longest first."""
    room = np.full(len(lengths), length)
    for one in lengths[::-1]:
        room[np.argmax(room >= one)] -= one
    return int(np.count_nonzero(room < length))


@dataclass(frozen=True, repr=False)
class Packing(Part):
    """How documents of unequal length become the rows of a batch.

    A row is then what the accelerator counts as a sample, and its rate is that of rows of full length; size
    and CPU time stay those of one document.

    Parameters
    ----------
    strategy : {"padded", "sorted", "split", "first-fit"}
        Each document in a row of its own; the same, sorted by length, so that a batch is as long as its
        longest document; all of them joined, and cut into rows; or each in the first row with room for it,
        the longest first.
    length : int, optional
        Tokens of a row; as many as the model takes unless given.
    lengths : array of int, optional
        Tokens of your documents, or of some of them. Unless given, those of the data set.
    mean, sd : int, optional
        In their place: mean and standard deviation of lengths that are lognormal.
    pool : int
        How many documents are sorted or packed at a time; fewer leave more padding.
    """

    strategy: str = fields.choice(*STRATEGIES)
    length: Number | None = fields.count(None, shown="tokens of a row")
    lengths: Unchecked = None
    mean: Number | None = fields.count(None, shown="mean length")
    sd: Number | None = fields.count(None, shown="spread of lengths")
    pool: Number = fields.count(1000, shown="documents packed at a time")

    def __post_init__(self) -> None:
        ways = [self.lengths is not None, self.mean is not None, self.sd is not None]
        if ways not in ([False] * 3, [True, False, False], [False, True, True]):
            came = ", ".join(
                name for name, given in zip(("lengths", "mean", "sd"), ways, strict=True) if given
            )
            raise InputError(
                f"Lengths of documents are an array, or a mean and an sd, got {came}. Pass one or the other."
            )
        if self.lengths is not None and not isinstance(self.lengths, Lengths):
            if not np.size(found := positive_int(self.lengths, "Packing.lengths")):
                raise InputError("Packing.lengths are those of documents, got none. Pass one length or more.")
            object.__setattr__(self, "lengths", given_lengths(found))
        super().__post_init__()
        object.__setattr__(self, "named", {})

    @property
    def given_lengths(self) -> Lengths | None:
        """The distribution that is given; None where that of the data set is meant."""
        own: Lengths | None = self.lengths
        return own if self.mean is None else lognormal_lengths(self.mean, self.sd)


@dataclass(frozen=True, repr=False)
class Jitter(Part):
    """How the time of preparing scatters; simulated, and left out of account where mean rates are solved.

    Parameters
    ----------
    spread : float
        Standard deviation of a worker's time from batch to batch, as a share of it; lognormal.
    slow_share : float
        Share of the samples that take longer.
    slow_time : quantity [time]
        How much longer one of them takes: its worker sleeps, and no core works.
    """

    spread: float = fields.number(0.0, zero=True, shown="spread of the workers' time")
    slow_share: float = fields.number(0.0, zero=True, maximum=1, shown="share of slow samples")
    slow_time: Amount | None = fields.quantity("s", None, zero=True, shown="extra time of a slow sample")


@dataclass(frozen=True, repr=False)
class OnDevice(Part):
    """What input work the accelerator does itself.

    Parameters
    ----------
    time : quantity [time], optional
        What it takes for a sample in kernels, such as augmenting, or decoding where the accelerator has no
        decoder for such files.
    decoder_time : quantity [time], optional
        What the accelerator's decoder takes for a sample, while its kernels compute:
        ``Q_("1 img") / hardware.image_decode_rate`` where the catalogue knows that rate. Of several decode
        units that work side by side, such as ``hardware.video_decoders``, their time over their number.
    """

    time: Amount | None = fields.seconds(stage="device_time", shown="accelerator time of a sample")
    decoder_time: Amount | None = fields.quantity("s", None, sweepable=True, shown="decoder time of a sample")


@dataclass(frozen=True, repr=False)
class Samples(Part):
    """What is trained on, and what preparing a sample takes.

    Parameters
    ----------
    of : catalogue entry, optional
        A data set; that of the model, or what the assumptions say, unless given.
    size : quantity [data], optional
        Stored bytes of a sample; that of the data set or the assumptions unless given.
    cpu_time : quantity [time], optional
        What one worker takes for a sample, alone.
    transfer : str or quantity [data], optional
        How a decoded sample crosses the link: as numbers of a type ("uint8", "float16", "float32"), which is
        that of the assumptions unless given, or in so many bytes.
    on_device : OnDevice
        Input work that the accelerator does itself.
    packing : Packing, optional
        How documents of unequal length, which are these samples, become the rows that the model takes.
    jitter : Jitter
        How the worker's time scatters; read by `Pipeline.simulate`.
    source : object, optional
        Samples that can be opened, such as `starvelab.measure.photos`; read by `Pipeline.measure`.
    transforms : sequence, optional
        What a worker does to a sample of the source, in this order; read by `Pipeline.measure`.
    """

    of: Entry | None = fields.entry(None, group="Datasets", label="dataset", stage="dataset")
    size: Amount | None = fields.quantity("B", None, sweepable=True, shown="sample size")
    cpu_time: Amount | None = fields.quantity("s", None, sweepable=True, shown="CPU time of a sample")
    transfer: Amount | None = fields.quantity(
        "B", None, sweepable=True, choices=tuple(DTYPE_BYTES), shown="size on the link"
    )
    on_device: OnDevice = OnDevice()
    packing: Packing | None = None
    jitter: Jitter = Jitter()
    source: Unchecked = None
    transforms: Unchecked = None

    def check_model(self, model: Entry | None) -> None:
        """Reject samples that the model does not take: of another size, or of another content."""
        if self.of is None or model is None:
            return
        taken, given = model.get("input_elements"), self.of.get("decoded_elements")
        fitting, content = dataset_of(model), self.of.get("content")
        wanted = content if fitting is None else fitting.get("content")
        if None not in (taken, given):
            if taken != given:
                change = "decoded_elements=..."
                raise _not_taken(model, f"{taken} numbers a sample", self.of, f"{given}", change)
        elif content not in (None, wanted):
            raise _not_taken(model, wanted, self.of, content, f'content="{wanted}"')

    def rows(self, model: Entry | None, batch: Number) -> Rows | None:
        """What the rows hold that documents are packed into; None where samples are what the model takes."""
        packing, of = self.packing, self.of
        if packing is None:
            return None
        taken = None if model is None else model.get("input_elements")
        length = packing.length or taken
        if length is None or taken not in (None, length):
            raise InputError(
                f"Rows are as long as the model takes them, got {taken or 'no model'} and a length of "
                f"{length}. Pass Packing(..., length=...), and a model of that length or the accelerator's "
                "rate."
            )
        if of is not None and of.get("decoded_elements") is not None:
            raise InputError(
                f"Documents are packed into rows, got {of.name}, whose samples have one length. "
                "Pass documents such as Datasets.OpenWebText."
            )
        lengths = packing.given_lengths or (None if of is None else lengths_of(of, packing.strategy))
        if lengths is None:
            who = "no data set is named" if of is None else f"{of.name} lists none"
            raise MissingValueError(
                f"Packing needs the lengths of documents, and {who}. "
                "Pass Packing(..., mean=..., sd=...), or lengths=..."
            )
        return rows_of(lengths, length, packing.strategy, packing.pool, batch)


def _not_taken(model: Entry, takes: str, samples: Entry, gives: str, change: str) -> InputError:
    """Return the error for a data set that does not fit a model."""
    return InputError(
        f"model and dataset must belong together, got {model.name}, which takes {takes}, and {samples.name}, "
        f"which gives {gives}. Pass one that fits, or your own with .replace({change})."
    )
