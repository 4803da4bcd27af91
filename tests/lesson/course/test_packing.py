"""Documents of unequal length in rows of one length: what is padding, and what that does to a step."""

import numpy as np
import pytest

from starvelab import Datasets, InputError, MissingValueError, Pipeline
from starvelab.lesson.course.packing import STRATEGIES, array_lengths, lognormal_lengths, pack
from tests.rejected import message


def drawn(mean, sd, count=200_000):
    spread = np.log1p((sd / mean) ** 2)
    lengths = np.random.default_rng(28).lognormal(np.log(mean) - spread / 2, np.sqrt(spread), count)
    return np.maximum(1, np.rint(lengths)).astype(int)


def padding_of(documents, length, strategy, pool, batch):
    """Lay out every document, pool after pool, and count."""
    pools = documents[: len(documents) // pool * pool].reshape(-1, pool)
    if strategy == "sorted":
        batches = np.minimum(np.sort(pools), length).reshape(-1, batch)
        return 1 - batches.mean() / batches.max(axis=1).mean()
    if strategy == "padded":
        return 1 - np.minimum(pools, length).mean() / length
    rows = 0
    for one in pools:
        room = []
        for rest in sorted(one % length, reverse=True):
            row = next((row for row, left in enumerate(room) if left >= rest), len(room))
            room[row:] = [length - rest] if row == len(room) else [room[row] - rest, *room[row + 1 :]]
        rows += sum(one // length) + sum(left < length for left in room)
    return 1 - pools.sum() / (rows * length)


@pytest.mark.parametrize(("mean", "sd", "length", "strategy", "pool", "batch"), [
    (600, 700, 1024, "padded", 1000, 1),
    (1100, 1900, 2048, "sorted", 1000, 100),
    (14, 6, 128, "sorted", 64, 32),
    (400, 100, 512, "first-fit", 100, 1),
])  # fmt: skip
def test_padding_is_that_of_two_hundred_thousand_documents_to_half_a_point(
    mean, sd, length, strategy, pool, batch
):
    documents = drawn(mean, sd)
    laid_out = padding_of(documents, length, strategy, pool, batch)
    for lengths in (lognormal_lengths(mean, sd), array_lengths(documents)):
        assert pack(lengths, strategy, length, pool=pool, batch_size=batch).padding == pytest.approx(
            laid_out, abs=0.005
        )


@pytest.mark.parametrize(("short", "long", "rare", "strategy", "batch", "laid_out"), [
    # A pool of 1024 has the long one with a chance of 9.7 %: one of its 16 batches is then as long.
    (10, 100_000, 10_000, "sorted", 64, 1 - 10.1 / (10 + 1014 / 16 * 0.0973)),
    (10, 1_000, 10_000, "sorted", 64, 1 - 10.1 / (10 + 990 / 16 * 0.0973)),
    (10, 100_000, 100_000, "sorted", 64, 1 - 10.01 / (10 + 1014 / 16 * 0.0102)),
    # Ten full rows for a pool, and on average as many of the long one as it fills.
    (10, 100_000, 10_000, "first-fit", 1, 1 - 20_000 / 1024 / (10 + 0.1 * 97.66)),
])  # fmt: skip
def test_one_long_document_among_thousands_is_as_rare_as_it_is(short, long, rare, strategy, batch, laid_out):
    lengths = array_lengths(np.append(np.full(rare - 1, short), long))
    assert pack(lengths, strategy, 1024, pool=1000, batch_size=batch).padding == pytest.approx(
        laid_out, abs=0.02
    )


def test_a_pool_of_millions_is_followed_as_far_as_it_tells_anything():
    lengths = lognormal_lengths(600, 700)
    for strategy in ("sorted", "first-fit"):
        some, all_of_them = (
            pack(lengths, strategy, 1024, pool=pool, batch_size=64) for pool in (100_000, 10**9)
        )
        assert all_of_them == some
        assert 0 <= some.padding < 0.01
    assert 0 < pack(lengths, "sorted", 1024, pool=1, batch_size=10**9).padding < 1


def test_half_of_what_bert_computes_on_in_its_second_phase_is_padding():
    rows = pack(Datasets.WikipediaSequences, "padded", 512)
    # Krell et al., arXiv 2107.02027, abstract.
    assert rows.padding == pytest.approx(0.50, abs=0.005)


# Rows of 1024 tokens, and documents that are exactly half, or a quarter, of a row.
HALVES = [512, 256]


def test_a_row_holds_the_documents_that_fill_it():
    padded, split, packed = (pack(HALVES, strategy, 1024) for strategy in ("padded", "split", "first-fit"))
    assert (padded.documents, padded.padding, padded.share) == (1, pytest.approx(0.625), 1)
    assert (split.documents, split.padding, split.share) == (pytest.approx(1024 / 384), 0, 1)
    assert packed.padding == pytest.approx(0, abs=0.005)
    # Both lengths are one batch each: the longest of a sorted batch is its length.
    by_length = pack(HALVES, "sorted", 1024)
    assert (by_length.padding, by_length.share) == (pytest.approx(0), pytest.approx(384 / 1024))


def test_rows_take_the_size_and_time_of_the_documents_in_them():
    rows = pack(HALVES, "split", 1024)
    samples = rows.samples(size="2 KB", cpu_time="0.3 ms")
    assert samples.size.m_as("KB") == pytest.approx(2 * 1024 / 384)
    assert samples.cpu_time.m_as("ms") == pytest.approx(0.3 * 1024 / 384)
    assert (rows.samples().size, rows.samples().cpu_time) == (None, None)
    step = Pipeline(hardware="1000 img/s", batch_size=10, workers=8, dataset=samples).solve()
    assert rows.useful_tokens(step).m_as("tokens/s") == pytest.approx(1_024_000)
    padded = pack(HALVES, "padded", 1024)
    assert padded.useful_tokens(step).m_as("tokens/s") == pytest.approx(384_000)


def test_a_sorted_batch_is_the_longer_the_larger_it_is():
    lengths = lognormal_lengths(600, 700)
    padding = [pack(lengths, "sorted", 1024, batch_size=size).padding for size in (8, 64, 512)]
    assert padding == sorted(set(padding))


def test_of_a_data_set_as_much_must_be_known_as_a_strategy_needs():
    web = Datasets.OpenWebText
    assert pack(web, "split", 1024).documents == pytest.approx(1024 / web.tokens)
    assert message(MissingValueError, pack, web, "padded", 1024) == (
        "Packing needs the lengths of documents, and OpenWebText lists none. "
        "Pass an array of lengths, or lognormal_lengths(mean, sd)."
    )
    assert 0 < pack(web.replace(tokens_sd=1900), "padded", 1024).padding < 1


@pytest.mark.parametrize(("documents", "strategy", "length", "said"), [
    (Datasets.TokenizedText, "split", 1024,
     "Documents are packed into rows, got tokenized text, 1024 tokens, whose samples have one length. "
     "Pass documents such as Datasets.OpenWebText."),
    ([1.5], "split", 8, "documents must be a whole number, got 1.5. Round it to the one you mean."),
    ([], "split", 8, "Documents have lengths, got none. Pass one length or more."),
    ([5], "split", 1.5, "length must be a whole number, got 1.5. Round it to the one you mean."),
    ([5], "best-fit", 8,
     f"The strategy must be one of {', '.join(STRATEGIES)}, got 'best-fit'. Pass one of these."),
])  # fmt: skip
def test_documents_that_cannot_be_packed_are_rejected(documents, strategy, length, said):
    assert message(InputError, pack, documents, strategy, length) == said


def test_lengths_may_stand_in_any_order_and_shape():
    assert pack([[1, 2], [3, 4]], "split", 8) == pack([4, 3, 2, 1], "split", 8)
    assert pack(5, "split", 8) == pack([5], "split", 8)
