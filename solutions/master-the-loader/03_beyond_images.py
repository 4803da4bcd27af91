# %% [markdown]
# # 3. Beyond images
#
# **Where does starvation not happen, and is your loader right for your own data?**
# You need about MINUTES minutes.

# %% role="setup" id="setup-beyond"
from functools import partial
from math import ceil

from starvelab import Datasets, Handover, Pipeline, Q_, Workers
from starvelab.checks import Credit, check
from starvelab.lesson.course.packing import pack
from starvelab.measure import Transform, disturbance  # noqa: F401 (for your dataset)
from starvelab.measure.samples import given_samples
from starvelab.show import svg, table
from starvelab.tables import cell, percent
from starvelab.widgets import Drawing, beside_real, explore, finish, load_loader
from starvelab.widgets import play, predict, progress, report, reveal, scorecard
from starvelab.widgets import show_measured


def why(name):
    """What binds a case, and how much is asked of whom."""
    asked = {box: percent(share) for box, share in shares(*cases[name]).items()}
    most = asked.get(binds(name))
    return {"meaning": f"Full speed takes {most} of {binds(name)}." if most else
                       "Drive and workers have time to spare.",
            "mistakes": {f"Full speed takes {of} of {box}.": box
                         for box, of in asked.items()}
                        | {f"The GPU waits for {binds(name)}.": "the GPU"}}


def why_packed():
    """How long the slowest of the three takes, and how long the others."""
    taken = dict(zip(THREE, packed.solve().resource_times.values(), strict=True))
    return {"meaning": f"For a batch {most} takes {cell(taken[most])}.", "mistakes": {
        f"For a batch {one} takes {cell(time)}.": one
        for one, time in taken.items() if one != most}}


def why_repair():
    """What the gain means, and what plausible mistakes predict."""
    as_many = repaired.workers.count / mine.workers.count
    return {"meaning": f"The GPU now waits for {percent(after.stall)}.",
            "mistakes": {"Perhaps you let each worker bring as much as the first.":
                         Q_(100 * (as_many - 1), "%"),
                         "That is all that it waited: no repair wins all of it back.":
                         Q_(100 * before.stall / (1 - before.stall), "%")}}

# %% [markdown]
# ## Decide first
#
# Four measured training jobs, each with eight workers and a drive of 2 GB/s. What binds in each?
#
# - **tokens**: GPT-2 on an A100, 91,000 tokens a second. A sample is 1,024 of them, 2 KB, cut from a file in 0.08 ms.
# - **audio**: Jasper on eight V100, 3,840 s of audio a second. A sample is 12.3 s long, 211 KB, turned into a spectrogram in 9.9 ms.
# - **tables**: DLRM on a B200, 43,700,000 rows a second. A sample is 16,384 rows, 12.5 MB, read in 4.3 ms.
# - **video**: R3D-18 on an H100, 4,288 frames a second. A sample is 16 frames, 531 KB, decoded in 850 ms.

# %%
predict("tokens", choices=["the GPU", "the workers", "the drive"],
        question="Tokens: what binds?")

# %%
predict("audio", choices=["the GPU", "the workers", "the drive"],
        question="Audio: what binds?")

# %%
predict("tables", choices=["the GPU", "the workers", "the drive"],
        question="Tables: what binds?")

# %%
predict("video", choices=["the GPU", "the workers", "the drive"],
        question="Video: what binds?")

# %% [markdown]
# ## Exercise 3.1: where it does not happen (15 points, in parts)
#
# How many workers does a training job need so that its GPU never waits for them? Return a whole number, at least 1; or
# `None` where the drive cannot deliver, so that no number of workers helps. In a tie nobody waits.
#
# <details><summary>Hint 1</summary>
#
# How many *samples* a second are trained on?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# What does 5.000000000000001 become if you round it up?
#
# </details>

# %% role="answer" id="workers-needed"
def workers_needed(units_per_second, units_per_sample, stored, cpu_time, bandwidth):
    """Workers, or None; units (tokens, frames, ...) per second [1/time], `stored`
    [data] and `cpu_time` [time] of a sample."""
    ### BEGIN SOLUTION
    samples_per_second = units_per_second / units_per_sample
    if samples_per_second * stored > bandwidth:
        return None
    return max(1, ceil(round((samples_per_second * cpu_time).m_as(""), 9)))
    ### END SOLUTION

# %% role="test" id="workers-needed-test" points=15
credit, drive = Credit(15), Q_("2 GB/s")
credit.part(2, "tokens", lambda: check(workers_needed(Q_("91000 /s"), 1024, Q_("2 KB"),
    Q_("0.08 ms"), drive), 1, what="the number of workers for tokens", mistakes={
    "A little work is work all the same: somebody has to do it.": 0,
    "The GPU takes tokens, and a worker prepares samples of many tokens.": 8}))
credit.part(4, "audio", lambda: check(workers_needed(Q_("3840 /s"), 12.3, Q_("211 KB"),
    Q_("9.9 ms"), drive), 4, what="the number of workers for audio", mistakes={
    "Three workers and a bit: the GPUs wait for the bit.": 3,
    "A sample is 12.3 s long: how many of them does the model take in a second?": 39,
    "You multiplied by the units of a sample; it holds that many.": 468}))
credit.part(3, "samples of 12.5 MB", lambda: (
    check(workers_needed(Q_("4.37e7 /s"), 16384, Q_("12.5 MB"), Q_("4.3 ms"),
        drive) is None, True,
        what="whether no number of workers helps with samples of 12.5 MB", mistakes={
    "Ask the drive first, and return None where it cannot deliver.": False}),
    check(workers_needed(Q_("91000 /s"), 1024, Q_("2 KB"), Q_("0.08 ms"),
        drive) is None, False,
        what="whether no number of workers helps with samples of 2 KB", mistakes={
    "The drive delivers small samples fast enough: return a number.": True})))
credit.part(2, "video", lambda: check(workers_needed(Q_("4288 /s"), 16, Q_("531 KB"),
    Q_("850 ms"), drive), 228, what="the number of workers for video", mistakes={
    "Some workers and a bit: the GPU waits for the bit.": 227}))
credit.part(2, "workers that are exactly enough", lambda: (
    check(workers_needed(Q_("1100 /s"), 10, Q_("1 KB"), Q_("10 ms"), drive), 2,
          what="the number of workers for 110 samples of 10 ms"),
    check(workers_needed(Q_("200 /s"), 3, Q_("1 KB"), Q_("60 ms"), drive), 4,
          what="the number of workers where some are exactly enough", mistakes={
    "One fewer is exactly enough: a product of decimal fractions is a little above.":
        5})))
### BEGIN HIDDEN TESTS
credit.part(2, "a drive that is exactly enough", lambda: (
    check(workers_needed(Q_("100 /s"), 1, Q_("20 MB"), Q_("25 ms"), drive) is None, False, what="whether a drive that delivers exactly what is asked for starves anybody", mistakes={
        "A tie starves nobody.": True}),
    check(workers_needed(Q_("150 /s"), 1, Q_("20 MB"), Q_("25 ms"), Q_("3 GB/s")), 4, what="the number of workers in front of a faster drive"),
    check(workers_needed(Q_("0.2 /ms"), 2, Q_("20000 KB"), Q_("0.025 s"), Q_("2000 MB/s")), 3, what="the number of workers, in other units")))
### END HIDDEN TESTS
credit.total("So one formula holds for tokens, audio, tables and video.")

# %% [markdown]
# ## Beside what you decided

# %% tags=["folded"]
cases = {"tokens": (91e3 / 1024, 2e-6, 0.08e-3), "audio": (3840 / 12.3, 211e-6, 9.9e-3),
         "tables": (43.7e6 / 16384, 0.0125, 4.3e-3), "video": (4288 / 16, 531e-6, 0.85)}


def shares(samples_per_second, gigabytes, seconds):
    return {"the drive": samples_per_second * gigabytes / 2,
            "the workers": samples_per_second * seconds / 8}


def binds(name):
    share, slowest = max((share, box) for box, share in shares(*cases[name]).items())
    return slowest if share > 1 else "the GPU"


def show(name):
    """A function that shows what is asked for one kind of data."""
    return partial(table, ["data", "asked of the drive", "asked of eight workers",
                           "binds"],
                   [[name, *map(percent, shares(*cases[name]).values()), binds(name)]])

# %%
reveal("tokens", binds("tokens"), then=show("tokens"), why=why("tokens"))

# %%
reveal("audio", binds("audio"), then=show("audio"), why=why("audio"))

# %%
reveal("tables", binds("tables"), then=show("tables"), why=why("tables"))

# %%
reveal("video", binds("video"), then=show("video"), why=why("video"))

# %% tags=["learning-alone"]
finish("workers-needed", workers_needed, final=False)
### BEGIN ENDING
def some_data(draw):
    # Some workers and half a worker are needed, so no rounding decides. The drive delivers what is asked for,
    # twice as much, or too little.
    workers, cpu_time = draw.randint(2, 40), draw.choice((4, 5, 10, 20, 25, 50))
    rate, units, stored = (2 * workers + 1) * 500 // cpu_time, draw.randint(1, 900), draw.randint(1, 30)
    return (Q_(rate * units, "1/s"), units, Q_(stored, "MB"), Q_(cpu_time, "ms"),
            Q_(rate * stored * draw.choice((1, 2, 0.9)), "MB/s"))


ending = 2, "kinds of data", some_data, "exact"
### END ENDING

# %% [markdown]
# Starvation does not happen where a sample is a lot of work for the GPU, and little for the other
# resources: 91,000 tokens a second are less than one megabyte. Make up a kind of data yourself:
# where is the border?

# %% tags=["folded"]
def draw(samples_per_second=100, stored_kilobytes=200, worker_ms=40):
    load = shares(samples_per_second, stored_kilobytes / 1e6, worker_ms / 1e3)
    rows = [[name, percent(share)] for name, share in load.items()]
    asked = ", ".join(f"{name} {share}" for name, share in rows)
    border = "✓ At the border. " if 0.9 < max(load.values()) <= 1 else ""
    said = f"{border}Asked of what they can do: {asked}."
    picture = svg.share_bars(load, title="What is asked of eight workers and a drive")
    return Drawing(picture, said, ["asked of", "share"], rows)

# %%
explore(draw, after="video", samples_per_second=(10, 1000, 10),
        stored_kilobytes=(1, 10_000), worker_ms=(1, 1000))

# %% [markdown]
# ## Tokens
#
# Each row of a batch holds 512 tokens. One worker tokenizes a document of Wikipedia in 0.3 ms. A GPU takes 32 rows in 12.8 ms,
# and half of what it computes is padding, since each document has a row of its own.
#
# Now a *packer*, the training loop's own thread, fills rows with documents. The packer takes 16 ms
# for a batch.

# %%
predict("packed", choices=["the tokenizer", "the packer", "the GPU"],
        question="What binds now?")

# %% tags=["folded"]
THREE = ["the tokenizer", "the packer", "the GPU"]
TEXTS = Datasets.WikipediaSequences
padded, full = (pack(TEXTS, way, 512) for way in ("padded", "first-fit"))
one_each, several = (rows.samples(cpu_time=TEXTS.preparation_time)
                     for rows in (padded, full))
own_rows = Pipeline(dataset=one_each, batch_size=32, workers=1, hardware="12.8 ms")
packed = own_rows.replace({"workers.handover": Handover(loop="16 ms")}, dataset=several)
BOXES = dict(zip(["CPU", "loop", "accelerator"], THREE, strict=True))
most = BOXES[packed.solve().bottleneck]


def show_packed():
    return play(packed, workers=range(1, 9), find="workers")


def show_tokens():
    in_workers = {"workers.handover": Handover(worker="16 ms")}
    ways = {"a row for each document": (padded, own_rows), "packed": (full, packed),
            "packed, two workers": (full, packed.replace(workers=2)),
            "packed by four workers": (full, packed.replace(in_workers, workers=4))}
    table(["", "padding", "useful tokens a second", "binds"], [
        [name, percent(rows.padding), f"{rows.useful_tokens(step).magnitude:,.0f}",
         BOXES[step.bottleneck]]
        for name, (rows, way) in ways.items() for step in [way.solve()]])

# %%
reveal("packed", most, then=show_packed, why=why_packed)

# %% [markdown]
# A full row holds about two documents, so each batch is twice the work for the tokenizer. The packer stays one thread.

# %%
reveal("packed", then=show_tokens)

# %%
explore(packed, {"workers.handover.loop": (Q_("0 ms"), Q_("30 ms"))}, after="packed",
        dataset={"packed": several, "a row for each document": one_each},
        workers=[1, 2, 4])

# %% [markdown]
# ## Exercise 3.2: useful tokens (10 points, in parts)
#
# How many tokens of documents are trained on in a second? `lengths` are those of typical documents. Either each document has a row
# of its own, which holds `row` tokens of it at most; or rows are `full`: documents are joined, and cut into rows.
#
# <details><summary>Hint 1</summary>
#
# How many useful tokens does a row hold, and how many documents does it need?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Tokenizer, packer and GPU work at the same time, each on another batch.
#
# </details>

# %% role="answer" id="useful-tokens"
def useful_tokens(lengths, row, full, rows, tokenize, pack, gpu):
    """Useful tokens a second [1/time]. A batch has so many `rows`; all workers together
    `tokenize` a document in that time; the packer needs `pack`, and the GPU `gpu`, for
    a batch [time]."""
    ### BEGIN SOLUTION
    useful = row if full else sum(min(length, row) for length in lengths) / len(lengths)
    documents = row * len(lengths) / sum(lengths) if full else 1
    return (rows * useful / max(rows * documents * tokenize, pack, gpu)).to("1/s")
    ### END SOLUTION

# %% role="test" id="useful-tokens-test" points=10
TEXT = [100, 300, 500]
credit, packing, step = Credit(10), Q_("2 ms"), Q_("20 ms")
credit.part(3, "a row for each document", lambda: check(
    useful_tokens(TEXT, 400, False, 15, Q_("1.2 ms"), packing, step), Q_("200000 /s"),
    what="the number of useful tokens of rows that are padded", mistakes={
    "The GPU computes on that many, and some of them are padding.": Q_("300000 /s"),
    "What is longer than a row is cut off.": Q_("225000 /s"),
    "A row of its own holds one document.": Q_(4e6 / 24, "1/s"),
    "Tokenizer and GPU work at the same time.": Q_(4e6 / 40, "1/s")}))
credit.part(3, "full rows", lambda: check(
    useful_tokens(TEXT, 400, True, 15, Q_("1.5 ms"), packing, step), Q_("200000 /s"),
    what="the number of useful tokens of full rows", mistakes={
    "A full row takes more than one document, and all of them are tokenized.":
        Q_(6e6 / 22.5, "1/s"),
    "Full rows have no padding: which of the three is the slowest?": Q_("300000 /s")}))
credit.part(2, "a slow packer", lambda: check(
    useful_tokens(TEXT, 400, True, 15, Q_("1 ms"), Q_("40 ms"), step), Q_("150000 /s"),
    what="the number of useful tokens behind a slow packer", mistakes={
    "The packer works beside the others, and may be the slowest.": Q_("300000 /s")}))
### BEGIN HIDDEN TESTS
def solved(lengths, row, full, rows, tokenize, packer, gpu):
    filled = pack(lengths, "split" if full else "padded", row)
    workers = Workers(1, handover=Handover(loop=packer))
    text = Pipeline(dataset=filled.samples(cpu_time=tokenize), batch_size=rows, workers=workers, hardware=gpu)
    return filled.useful_tokens(text.solve())


def compare(*text):
    right = Q_(solved(*text).magnitude, "1/s")
    check(useful_tokens(*text), right, what="the number of useful tokens of another text")


credit.part(2, "other texts", lambda: (
    compare([40, 900, 60, 200], 256, False, 8, Q_("3 ms"), Q_("0.5 ms"), Q_("0.02 s")),
    compare([40, 900, 60, 200], 256, True, 8, Q_("3 ms"), Q_("0.5 ms"), Q_("0.02 s")),
    compare([640, 1920], 512, True, 64, Q_("0.2 ms"), Q_("9 ms"), Q_("11 ms"))))
### END HIDDEN TESTS
credit.total("So a step is worth the tokens of documents in it, and its padding is "
             "worth nothing.")

# %% tags=["learning-alone"]
finish("useful-tokens", useful_tokens, final=False)
### BEGIN ENDING
def a_text(draw):
    lengths = [round(20 * 75 ** draw.random()) for _ in range(draw.choice((4, 5, 8)))]
    return (lengths, draw.choice((128, 256, 512, 1024)), draw.choice((True, False)), draw.randint(2, 64),
            Q_(draw.randint(1, 50) / 10, "ms"), Q_(draw.randint(1, 60), "ms"), Q_(draw.randint(1, 60), "ms"))


ending = 2, "texts", a_text
### END ENDING

# %% [markdown]
# ## Your own dataset
#
# Take a given dataset, `"recordings"`, `"tables"` or `"volumes"`, or bring one, as `Samples(source=..., transforms=[...])`: an
# object with a `name` and a method `read(index)` that returns stored bytes, and `Transform`s that decode and transform one item to
# an array. First **diagnose** it.

# %%
mine = Pipeline(dataset=given_samples("recordings"), batch_size=16, workers=1,
                hardware="4 ms")
finding = mine.diagnose(budget="4 s", progress=False)
show_measured("my-ladder", finding, disturbed=disturbance(finding))

# %% [markdown]
# Choose a repair: more workers, a cheaper transform, a smaller batch. **Predict** what it brings. If you change the repair, do it
# before you lock.

# %%
repaired = mine.replace(workers=2)
predict("my-repair", unit="%", between=(-100, None), unchanged=0,
        question="By how many percent does your repair raise the throughput?")

# %% tags=["folded"]
before, after = (one.measure(seconds="1 s", repeat=True, progress=False)
                 for one in (mine, repaired))
gain = 100 * (after.throughput / before.throughput - 1).m_as("")


def show_repair():
    rows = [[name, one.throughput, percent(one.stall)]
            for name, one in (("before", before), ("after", after))]
    table(["", "throughput", "GPU waits"], rows)

# %%
reveal("my-repair", Q_(gain, "%"), disturbed=disturbance(before, after),
       then=show_repair, why=why_repair)

# %% [markdown]
# Is your repaired loader right for these data, too?

# %%
runs = [mine.replace(workers=n).measure(seconds="1 s", repeat=True, progress=False)
        for n in (1, 2, 4)]
beside_real(load_loader(), runs, quiet="my-data")

# %% [markdown]
# ## Exercise 3.3: predict a repair (9 points, in parts)
#
# For one batch, each part takes a worker some milliseconds; a repair makes *one* part `factor` times as fast. By which factor does
# the throughput rise? Workers share `cores`, and the GPU takes `step` ms for a batch.
#
# <details><summary>Hint</summary>
#
# How long does it take from batch to batch before, and how long after?
#
# </details>

# %% role="answer" id="repair-gain"
def repair_gain(parts, repaired, factor, workers, cores, step):
    """The new throughput over the old one; `parts` has the ms of one batch by name,
    `repaired` is one of the names."""
    ### BEGIN SOLUTION
    def period(times):
        return max(sum(times.values()) / min(workers, cores), step)

    return period(parts) / period(parts | {repaired: parts[repaired] / factor})
    ### END SOLUTION

# %% role="test" id="repair-gain-test" points=9
def gain_of(part, *others):
    # A fresh dict for each call: an answer may change the one that it is given.
    return repair_gain({"read": 10, "decode": 60, "transform": 30}, part, *others)


credit = Credit(9)
credit.part(3, "decoding three times as fast",
            lambda: check(gain_of("decode", 3, 3, 4, 5), 100 / 60,
                          what="the gain of faster decoding", mistakes={
    "Only decoding becomes faster: the other parts take as long as before.": 3.0,
    "You made it slower: a part that is twice as fast takes half of the time.": 100
    / 220, "That is the share that is left of the time; how much faster is that?":
        0.6}))
credit.part(2, "a slow GPU", lambda: (
    check(gain_of("decode", 3, 2, 4, 40), 1.25, what="the gain before a slow GPU",
          mistakes={
        "The GPU does not get faster: it sets the pace from some point on.": 100 / 60}),
    check(gain_of("decode", 3, 2, 4, 60), 1.0, what="the gain before a slower GPU",
          mistakes={
        "This GPU sets the pace before the repair as well as after it.": 50 / 60})))
credit.part(2, "more workers than cores",
            lambda: check(gain_of("transform", 4, 8, 2, 24), 100 / 77.5,
                          what="the gain with more workers than cores", mistakes={
    "Workers past the cores bring nothing, before the repair nor after it.": 1.0,
    "The largest part was repaired, and another one was named.": 100 / 55}))
### BEGIN HIDDEN TESTS
credit.part(2, "a repair that brings nothing", lambda: (
    check(gain_of("read", 100, 4, 4, 30), 1.0, what="the gain where the GPU binds already"),
    check(repair_gain({"decode": 8.0, "augment": 2.0}, "augment", 4, 1, 8, 1.5), 10 / 8.5, what="the gain of another part")))
### END HIDDEN TESTS
credit.total("So a repair brings no more than the next resource allows.")

# %% tags=["learning-alone"]
finish("repair-gain", repair_gain, final=False)
### BEGIN ENDING
def a_repair(draw):
    parts = {name: draw.randint(2, 80) for name in draw.sample(("read", "decode", "crop", "blur"), 3)}
    return (parts, draw.choice([*parts]), draw.randint(2, 9), draw.randint(1, 9), draw.randint(1, 9),
            draw.randint(1, 60))


ending = 2, "repairs", a_repair
### END ENDING

# %% [markdown]
# ## Exercise 3.4: explain the rest (6 points, read by a person)
#
# In six to ten sentences: which dataset, what did the diagnosis say, what did you predict for which repair and why, what did you
# measure, **what explains the difference** (or could have made one), and which measurement would tell your explanation from
# another one?

# %% [markdown] role="essay" id="explain-the-rest" points=6
# I took the recordings. The diagnosis said that the part that costs most is decoding, which unpacks them, with 7.3 ms of a batch. The
# transform, which computes the spectrogram, is close behind with 7.1 ms, and the GPU waits for 70 % of the time. A second worker
# should double the rate of preparing, so I predicted a gain of 100 %, which the GPU's own 4 ms allow. I measured 37 %. NumPy computes Fourier transforms without the lock of
# Python, but slicing windows and joining the batch hold it. In these parts two threads may wait for one another, and then the two
# workers are not two full ones. The other explanation would be the machine: two workers share the caches and the clock of the
# processor, and I have two cores only. With `kind="processes"` there is no shared lock. If the gain rises towards 100 %, it was
# the lock; if it stays, it was the processor.
#
# ### BEGIN MARK SCHEME
# - 1 point: says which dataset and what the diagnosis found, with its figures.
# - 2 points: a prediction with its reason, made before measuring. One point without a reason.
# - 2 points: compares what was measured with it, and names a cause of the difference that fits the pipeline (lock, cores, start-up,
#   the GPU's cap, noise). One point if the cause would not change the figure in that direction.
# - 1 point: a measurement that would tell this cause from another, and which outcome would mean what.
# ### END MARK SCHEME

# %% [markdown]
# ## Score card and report

# %%
scorecard()

# %%
report()

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Ask the drive before the workers.
#
# **What comes next** is your own training job: predict before you change it.
