"""Documents of unequal length in rows of one length: what is padding, and what that does to a step."""

import numpy as np
import pytest

from starvelab import (
    PUBLISHED,
    Accelerator,
    Datasets,
    Drive,
    Hardware,
    InputError,
    MissingValueError,
    Models,
    Packing,
    Pipeline,
    Requests,
    Samples,
    Workers,
)
from starvelab.model.samples import STRATEGIES, given_lengths, lognormal_lengths, rows_of
from tests.rejected import message

DOCUMENTS = Samples(size="2.6 KB", cpu_time="0.6 ms", packing=Packing("padded", mean=600, sd=700))
TEXT = Pipeline(
    model=Models.GPT2_small, hardware=Accelerator(Hardware.Cloud.A100, rate="160 img/s"), batch_size=16,
    dataset=DOCUMENTS, assumptions=PUBLISHED,
)  # fmt: skip
# 1000 rows of 1024 tokens a second, and documents that are exactly half, or a quarter, of a row.
HALVES = Pipeline(
    hardware="1000 img/s",
    batch_size=10,
    workers="1e6 img/s",
    dataset=Samples(size="2 KB", packing=Packing("padded", length=1024, lengths=[512, 256])),
)


def tokens(found):
    return found.useful_tokens.m_as("tokens/s")


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
    for lengths in (lognormal_lengths(mean, sd), given_lengths(documents)):
        assert rows_of(lengths, length, strategy, pool, batch).padding == pytest.approx(laid_out, abs=0.005)


@pytest.mark.parametrize(("short", "long", "rare", "strategy", "batch", "laid_out"), [
    # A pool of 1024 has the long one with a chance of 9.7 %: one of its 16 batches is then as long.
    (10, 100_000, 10_000, "sorted", 64, 1 - 10.1 / (10 + 1014 / 16 * 0.0973)),
    (10, 1_000, 10_000, "sorted", 64, 1 - 10.1 / (10 + 990 / 16 * 0.0973)),
    (10, 100_000, 100_000, "sorted", 64, 1 - 10.01 / (10 + 1014 / 16 * 0.0102)),
    # Ten full rows for a pool, and on average as many of the long one as it fills.
    (10, 100_000, 10_000, "first-fit", 1, 1 - 20_000 / 1024 / (10 + 0.1 * 97.66)),
])  # fmt: skip
def test_one_long_document_among_thousands_is_as_rare_as_it_is(short, long, rare, strategy, batch, laid_out):
    lengths = given_lengths(np.append(np.full(rare - 1, short), long))
    assert rows_of(lengths, 1024, strategy, 1000, batch).padding == pytest.approx(laid_out, abs=0.02)


def test_a_pool_of_millions_is_followed_as_far_as_it_tells_anything():
    lengths = lognormal_lengths(600, 700)
    for strategy in ("sorted", "first-fit"):
        some, all_of_them = (rows_of(lengths, 1024, strategy, pool, 64) for pool in (100_000, 10**9))
        assert all_of_them == some
        assert 0 <= some.padding < 0.01
    assert 0 < rows_of(lengths, 1024, "sorted", 1, 10**9).padding < 1


def test_half_of_what_bert_computes_on_in_its_second_phase_is_padding():
    rows = TEXT.replace(
        dataset=Samples(Datasets.WikipediaSequences, packing=Packing("padded", length=512)),
        model=None,
        hardware="100 img/s",
    ).packed
    # Krell et al., arXiv 2107.02027, abstract.
    assert rows.padding == pytest.approx(0.50, abs=0.005)


def test_a_row_costs_what_it_holds():
    padded, split, packed = (
        HALVES.solve({"dataset.packing.strategy": name}) for name in ("padded", "split", "first-fit")
    )
    assert (padded.packed.padding, tokens(padded)) == (pytest.approx(0.625), pytest.approx(384_000))
    assert (split.packed.padding, tokens(split)) == (0, 1_024_000)
    assert tokens(packed) == pytest.approx(1_024_000, rel=0.005)
    assert split.packed.documents == pytest.approx(1024 / 384)
    # Both lengths are one batch each: the longest of a sorted batch is its length.
    ordered = HALVES.solve({"dataset.packing.strategy": "sorted", "dataset.packing.pool": 1000}, batch_size=1)
    assert ordered.packed.padding == pytest.approx(0)
    assert tokens(ordered) == pytest.approx(1_024_000)
    # What rows are made of takes as much of the others as the documents in them.
    slow = {"storage": "100 KB/s", "link": "1 GB/s", "workers": Workers(2)}
    slow |= {"dataset.cpu_time": "3 ms", "storage.requests.latency": "1 ms"}
    one, many = (HALVES.solve({**slow, "dataset.packing.strategy": name}) for name in ("padded", "split"))
    for stage in ("read", "transform"):
        assert (many.stage_times[stage] / one.stage_times[stage]).m_as("") == pytest.approx(1024 / 384)
    assert many.stage_times["copy"] == one.stage_times["copy"]
    assert many.actual_demand.m_as("KB/s") == pytest.approx(100)
    half = HALVES.solve({**slow, "dataset.packing.strategy": "sorted"}, batch_size=1)
    assert (half.stage_times["copy"] / one.stage_times["copy"]).m_as("") == pytest.approx(384 / 1024 / 10)


def test_a_request_that_brings_several_documents_brings_that_part_of_a_row():
    read = {"storage": Drive("1 GB/s", requests=Requests(samples=4)), "dataset.packing.strategy": "split"}
    assert HALVES.replace(read).numbers["samples_per_request"] == pytest.approx(4 * 384 / 1024)


def test_a_given_time_of_a_step_is_that_of_full_rows():
    padded, by_length = (
        HALVES.solve({"dataset.packing.strategy": name}, hardware="10 ms", batch_size=1)
        for name in ("padded", "sorted")
    )
    assert (by_length.step_time / padded.step_time).m_as("") == pytest.approx(384 / 1024)


def test_an_epoch_is_counted_in_documents():
    padded, split = (
        HALVES.epochs(samples=1_024_000).samples,
        HALVES.replace({"dataset.packing.strategy": "split"}).epochs(samples=1_024_000).samples,
    )
    assert (padded, split) == (1_024_000, pytest.approx(384_000))


def test_batches_may_be_swept_and_a_sorted_batch_is_the_longer_the_larger_it_is():
    swept = TEXT.solve({"dataset.packing.strategy": "sorted"}, batch_size=[8, 64, 512])
    assert np.all(np.diff(swept.packed.padding) > 0)
    assert swept.useful_tokens.magnitude.shape == (3,)
    one = TEXT.solve({"dataset.packing.strategy": "sorted"}, batch_size=64)
    assert swept.packed.padding[1] == one.packed.padding
    assert "are useful" in swept.note


def test_of_sorted_documents_no_batch_size_is_found_by_a_cost_that_holds_for_one():
    by_length = TEXT.replace({"dataset.packing.strategy": "sorted"})
    rule = (
        "follows one cost through all batch sizes, got documents sorted by length, whose rows are longer "
        "in a larger batch. Sweep batch_size."
    )
    assert message(InputError, by_length.crossover) == f"crossover {rule}"
    asked = message(InputError, by_length.workers_needed, batch_size="any")
    assert asked == f'workers_needed(batch_size="any") {rule}'
    assert by_length.workers_needed(batch_size=64).workers >= 1
    assert "From batch" not in by_length.replace(batch_size=4).explain()


def test_padding_is_named_where_it_is_lost_with_what_was_tried():
    said = TEXT.explain()
    assert said.endswith(
        "Padding is 53.1 % of the tokens, which leaves 76760 useful tokens/s. Sorted by length they would be "
        "161400, packed first-fit 163500, joined and cut 163800."
    )
    for strategy, rate in (("sorted", 161_400), ("first-fit", 163_500), ("split", 163_800)):
        assert tokens(TEXT.solve({"dataset.packing.strategy": strategy})) == pytest.approx(rate, rel=1e-3)
    for change in (
        {"dataset.packing.strategy": "first-fit"},
        {"dataset.cpu_time": "1 s"},  # the workers bind, whatever the rows look like
        {"dataset.packing": None},
    ):
        assert "adding" not in TEXT.replace(change).explain()
    assert TEXT.solve().note.startswith("53.1 % of the tokens are padding: 76760 tokens/s are useful.")
    assert TEXT.replace({"dataset.packing": None}).solve().useful_tokens is None


def test_of_a_data_set_as_much_must_be_known_as_a_strategy_needs():
    web = TEXT.replace(dataset=Samples(Datasets.OpenWebText, packing=Packing("split")))
    assert web.packed.documents == pytest.approx(1024 / Datasets.OpenWebText.tokens)
    assert message(MissingValueError, web.replace, {"dataset.packing.strategy": "padded"}) == (
        "Packing needs the lengths of documents, and OpenWebText lists none. "
        "Pass Packing(..., mean=..., sd=...), or lengths=..."
    )
    own = Datasets.OpenWebText.replace(tokens_sd=1900)
    assert 0 < TEXT.replace(dataset=Samples(own, packing=Packing("padded"))).packed.padding < 1


def test_what_cannot_be_packed_says_so():
    assert message(MissingValueError, TEXT.replace, dataset=Samples(packing=Packing("split"))) == (
        "Packing needs the lengths of documents, and no data set is named. "
        "Pass Packing(..., mean=..., sd=...), or lengths=..."
    )
    assert message(InputError, TEXT.replace, {"dataset.packing.length": 512}) == (
        "Rows are as long as the model takes them, got 1024 and a length of 512. "
        "Pass Packing(..., length=...), and a model of that length or the accelerator's rate."
    )
    assert message(InputError, HALVES.replace, {"dataset.packing.length": None}) == (
        "Rows are as long as the model takes them, got no model and a length of None. "
        "Pass Packing(..., length=...), and a model of that length or the accelerator's rate."
    )
    assert message(InputError, TEXT.replace, {"dataset.of": Datasets.TokenizedText}) == (
        "Documents are packed into rows, got tokenized text, 1024 tokens, whose samples have one length. "
        "Pass documents such as Datasets.OpenWebText."
    )
    assert message(InputError, Packing, "padded", mean=600) == (
        "Lengths of documents are an array, or a mean and an sd, got mean. Pass one or the other."
    )
    assert message(InputError, Packing, "padded", lengths=[1.5]) == (
        "Packing.lengths must be a whole number, got 1.5. Round it to the one you mean."
    )
    assert message(InputError, Packing, "padded", lengths=[]) == (
        "Packing.lengths are those of documents, got none. Pass one length or more."
    )
    assert message(InputError, Packing, "best-fit") == (
        f"Packing.strategy must be one of {', '.join(STRATEGIES)}, got 'best-fit'. Pass one of these."
    )


def test_lengths_are_kept_as_a_distribution_that_is_shown_in_a_word():
    packing = Packing("split", length=8, lengths=np.arange(1, 8))
    assert repr(packing) == "Packing('split', length=8, lengths=<lengths of 4 tokens on average>)"
    assert packing.replace(pool=5).lengths is packing.lengths
    assert packing == Packing("split", length=8, lengths=[7, 6, 5, 4, 3, 2, 1])
    assert Packing("split", lengths=[[1, 2], [3, 4]]) == Packing("split", lengths=[4, 3, 2, 1])
    assert Packing("split", lengths=5) == Packing("split", lengths=[5])
