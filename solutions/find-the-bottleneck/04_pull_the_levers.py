# %% [markdown]
# # 4. Pull the levers
#
# The ladder of the last notebook names the part that starves the accelerator. That does not say what to do: there are
# some twenty things to change, and most of them do nothing for *your* pipeline. **Which lever do you pull, how do you know that it is the
# one, and what does it uncover?**
#
# In about MINUTES minutes you will
#
# - see why a loader can starve an accelerator although it is fast enough on average,
# - switch most levers on and off on one simulated training job, and watch its timeline,
# - try the others on your own machine: order of stages, offline preparation, file formats,
# - write four of the rules behind them, and choose levers for a case.

# %% role="setup" id="setup-03"
import pickle
import tarfile
import time
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from IPython.display import HTML, display
from loky import get_reusable_executor
from PIL import Image, ImageFilter

# %% role="setup" id="setup-03-tools"
from starvelab import PUBLISHED, Hardware, Models, Pipeline, Q_
from starvelab.checks import check
from starvelab.model.levers import levers_for
from starvelab.measure import PARTS, InputPipeline, Transform, VirtualAccelerator, diagnose, photo_transforms, photos, run
from starvelab.show import loader_timeline, svg, table
from starvelab.simulate import Loader, simulate
from starvelab.tables import percent, to_html
from starvelab.widgets import Drawing, explore, predict, reveal

# %% [markdown]
# ## Predict
#
# One sample in a hundred takes 0.4 s longer than the others: a slow disk, a huge image, a retry over the network. Two workers
# prepare batches of 8, each with two batches ordered ahead; the accelerator computes for 20 ms on each. The workers' average
# is nearly enough: by average times the accelerator would be busy 88.4 % of the time.

# %%
predict("slow-samples", unit="%", question="How much of the time is the accelerator busy, in percent?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Batches arrive in the order in which they were asked for. What happens to the finished batches behind a late one? How many
# steps of 20 ms can the accelerator do meanwhile?
#
# </details>
#
# ## See it

# %%
slow = Loader(step_time="20 ms", prepare_time="13.25 ms", batch_size=8, workers=2, prefetch=2,
              straggler_share=0.01, straggler_time="400 ms")
TWO = {"as it is": {}, "deeper queue (8 each)": {"prefetch": 8}, "no fixed order": {"in_order": False},
       "both": {"prefetch": 8, "in_order": False}}
busy = Q_(100 * simulate(slow, batches=400, replicas=200).utilization, "%")
reveal("slow-samples", busy, then=lambda: loader_timeline(simulate(slow), batches=40))

# %% [markdown]
# (The picture is one run of 40 batches; the answer is the average of 200 runs.)
#
# The cross-hatched blue in the middle lane is the reason: batches that are *finished*, and held back, because an earlier one
# is missing. While it is missing the other worker fills its queue and then stops, too. Nobody computes, nobody prepares.
#
# Two levers, and neither makes anything faster. A **deeper queue** (`prefetch_factor`) covers a delay as long as
# itself. **No fixed order** (`in_order=False`) lets the other worker's batches pass.

# %%
def show_levers():
    sims = {name: simulate(slow.replace(**changes), batches=400, replicas=200) for name, changes in TWO.items()}
    table(["lever", "busy", "throughput"], [[name, percent(s.utilization), s.throughput] for name, s in sims.items()])
    return loader_timeline(simulate(slow.replace(**TWO["both"])), batches=40)


reveal("slow-samples", then=show_levers)

# %% [markdown]
# Does the simulation match a real run? Here is one: two threads that decode real images, and at every hundredth sample fall
# asleep for 0.4 s. It takes about ten seconds. Your threads do not take the simulation's 13.25 ms, and their slow samples come in
# even steps instead of by chance, so look at the order of the two rather than at their digits.

# %%
samples_seen = count()


def nap(array):
    time.sleep(0.4 if next(samples_seen) % 100 == 99 else 0)
    return array

# %%
def show_measured():
    pipe = InputPipeline(samples=photos("100 KB"), batch_size=8, accelerator=VirtualAccelerator(step_time="20 ms"),
                         transforms=(*photo_transforms(send="uint8"), Transform("nap", nap)))
    records = {name: run(pipe.replace(**TWO[name]), seconds="4 s", progress=False) for name in ("as it is", "both")}
    table(["measured here", "busy", "throughput"], [[n, percent(r.utilization), r.throughput] for n, r in records.items()])


reveal("slow-samples", then=show_measured)

# %% [markdown]
# ## Exercise 4.1: how many batches are late? (4 points)
#
# A batch is late as soon as *one* of its samples is slow. What share of the batches is that?
#
# <details><summary>Hint 1</summary>
#
# It is easier to say what share of the batches has no slow sample.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A sample is fast with probability `1 - share`, and the samples of a batch do not know of each other.
#
# </details>

# %% role="answer" id="late-batches"
def late_batches(batch_size, share):
    """The share [a plain number from 0 to 1] of batches with a slow sample; `share` is that of slow samples."""
    ### BEGIN SOLUTION
    return 1 - (1 - share) ** batch_size
    ### END SOLUTION

# %% role="test" id="late-batches-test" points=4
check(late_batches(20, 0.02), 1 - 0.98**20, what="the share of late batches", mistakes={
    "Shares do not add up: some batches have two slow samples, and with 100 samples it would be more than all.": 0.4,
    "That is the share of samples; one of them makes its whole batch late.": 0.02,
    "That is the share of batches that are on time.": 0.98**20,
    "Then every sample of the batch would be slow; one is enough.": 0.02**20,
    "That is a percentage; return a share from 0 to 1.": 100 - 100 * 0.98**20,
})
### BEGIN HIDDEN TESTS
check(late_batches(8, 0.01), 0.0772553, what="the share of late batches of 8")
check(late_batches(256, 0.01), 0.923691, what="the share of late batches of 256")
check(late_batches(1, 0.3), 0.3, what="the share of late batches of a single sample")
check(late_batches(64, 0.0), 0.0, what="the share of late batches without slow samples")
### END HIDDEN TESTS

# %% [markdown]
# In a large batch nearly always one sample is slow. Being late is then no exception that a queue could cover, but
# the average, and only more workers (or curing the slow samples) help.
#
# ## All the levers
#
# One list for each part of the pipeline, as the ladder names them; `diagnose(...)` picks its advice from here. Each says how to
# tell that this is the one, what to change, and why it works. Open a few; you need not learn them by heart.

# %%
def folded(part):
    rows = [[lever.name, lever.diagnose, lever.change, lever.why] for lever in levers_for(part)]
    body = to_html(["lever", "how to tell", "what to change", "why it works"], rows)
    return f"<details><summary><b>{part}</b> ({len(rows)} levers)</summary>{body}</details>"


HTML("".join(map(folded, PARTS)))

# %% [markdown]
# ## Most of them on one board
#
# A made-up training job with every fault at once, on a host with 8 cores. The numbers below are its costs: images as small
# files on network storage, decoded and blurred whole, float32 to the accelerator from pageable memory, and `loss.item()` in
# every step. One sample in a thousand is slow.

# %%
def job(workers=4, prefetch=2, batch_size=64, in_order=True, packed_in_shards=False, decoded_offline=False,
        crop_before_blur=False, send_uint8=False, pinned_copies=False, loss_item_each_step=True, mixed_precision=False):
    cpu = 1 + (0.2 if decoded_offline else 4) + (0.5 if crop_before_blur else 4)  # ms of a worker, for a sample
    sent = batch_size * 3 * 224 * 224 * (1 if send_uint8 else 4) / 1e6  # MB; a worker hands over 1 MB in a ms
    step = 4 + batch_size * (0.3 if mixed_precision else 0.8)  # ms; 4 of them whatever the batch
    times = {"prepare_time": batch_size * cpu + sent, "read_wait": batch_size * (0.05 if packed_in_shards else 2),
             "copy_time": sent / (12 if pinned_copies else 3), "step_time": step, "fetch_time": 6, "straggler_time": 400}
    return Loader(workers=workers, prefetch=prefetch, batch_size=batch_size, in_order=in_order, cores=8,
                  copy_overlaps=pinned_copies, in_flight=1 if loss_item_each_step else 2, straggler_share=0.001,
                  **{name: Q_(ms, "ms") for name, ms in times.items()})

# %% [markdown]
# The picture always shows 600 ms: more boxes in the lowest lane are more batches trained on, and
# where it is hatched the accelerator waits. The sentence beneath tells of 80
# batches.

# %%
def draw(workers=4, prefetch=2, batch_size=64, **switches):
    loader = job(workers, prefetch, batch_size, **switches)
    trace = simulate(loader, batches=100).trace().after(20)
    own = loader.stretch * loader.prepare_time + loader.read_wait + loader.mean_delay
    rows = [["a worker's batch", own], ["... shared by all workers", own / loader.workers], ["copy", loader.copy_time],
            ["step", loader.step_time], ["the loop itself", loader.fetch_time]]
    said = f"{trace.throughput.m_as('img/s'):,.0f} img/s; the accelerator is busy {percent(trace.utilization)} of the time."
    return Drawing(svg.loader_lanes(trace), said, headers=["for a batch", "time"], rows=rows)

# %%
explore(draw, after="slow-samples", workers=[1, 2, 4, 8, 12], prefetch=[1, 2, 4], batch_size=[32, 64, 128, 256],
        in_order=True, packed_in_shards=False, decoded_offline=False, crop_before_blur=False, send_uint8=False,
        pinned_copies=False, loss_item_each_step=True, mixed_precision=False)

# %% [markdown]
# Try to get from the start to more than 2,000 img/s with as few changes as you can. After each change ask what binds
# *now*: workers without a gap between their boxes, a copy between any two steps, or the loop, which leaves a gap after every
# step. Twelve workers on 8 cores are worth a try, too.
#
# ## Alone, or last
#
# What each lever gains when it is the only one, and what it gains when all others are pulled already. (These are averages
# of four runs of 180 batches. The board shows 80 batches of one run, so its rate at the start is not exactly the same.)

# %%
GOOD = {"workers": 8, "prefetch": 4, "in_order": False, "packed_in_shards": True, "decoded_offline": True,
        "crop_before_blur": True, "send_uint8": True, "pinned_copies": True, "loss_item_each_step": False,
        "mixed_precision": True}


def rate(**switches):
    return simulate(job(**switches), batches=200, replicas=4, warm_up=20).throughput.m_as("img/s")

# %%
def show_alone_and_last():
    start, end, rows = rate(), rate(**GOOD), []
    for names in [*([name] for name in GOOD), ["prefetch", "in_order"]]:
        others = {name: GOOD[name] for name in GOOD if name not in names}
        alone, last = rate(**{name: GOOD[name] for name in names}) / start, end / rate(**others)
        value = "both" if len(names) > 1 else GOOD[names[0]]
        rows.append([" and ".join(names).replace("_", " "), value, f"{alone:.2f}x", f"{last:.2f}x"])
    table(["lever", "set to", "alone", "last"], rows)
    print(f"From {start:,.0f} to {end:,.0f} img/s with all of them.")


reveal("slow-samples", then=show_alone_and_last)

# %% [markdown]
# "I tried that, it did nothing" is a statement about the pipeline, not about the lever. A lever that does not touch what
# binds gains nothing, and the same lever may be worth more than any other once the rest is done. Nor do gains multiply: twice
# the workers bring 2.00 times the rate alone and 1.59 times at the end, mixed precision nothing alone and 2.38 times at the
# end. Now look at the last row: `prefetch` and `in order` cure the same fault, slow samples. At the start these are not what
# binds, so both levers gain next to nothing. At the end they would be, and still each of the two adds little, since the other
# is there already. Only with neither is the rate lower, by a factor of 1.27.
#
# ## On your own machine: less work for a sample
#
# Work follows pixels. Blurring a photograph of a million pixels to keep a twentieth of it is waste, and so is decoding the same
# JPEG in every epoch. `best` gives the shortest of five runs, since other programs can only make a run longer.

# %%
def best(work, repeats=5):
    def once():
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    return Q_(1e3 * min(once() for _ in range(repeats)), "ms")

# %%
photo = Image.open(photos("500 KB", count=1).path(0)).convert("RGB")
blur, crop = ImageFilter.GaussianBlur(4), (400, 300, 624, 524)
table(["order", "time for a sample"], [["blur, then crop", best(lambda: photo.filter(blur).crop(crop))],
                                       ["crop, then blur", best(lambda: photo.crop(crop).filter(blur))]])

# %% [markdown]
# The two results differ by a rim as wide as the blur reaches, where pixels from outside are missing. Crop with that much margin
# if it matters. A random color shift would commute without any: order is free only where you know that it is.
#
# Now decode and scale down once, store the result as an array, and let each epoch map it into memory:

# %%
scratch = TemporaryDirectory(ignore_cleanup_errors=True)
store, jpegs = Path(scratch.name), photos("100 KB")


def small(index):
    return np.asarray(Image.open(jpegs.path(index)).convert("RGB").resize((256, 256)))

# %%
np.save(store / "decoded.npy", np.stack([small(index) for index in range(len(jpegs))]))
mapped = np.load(store / "decoded.npy", mmap_mode="r")
table(["a sample in each epoch", "time", "stored"], [
    ["read, decode, scale down", best(lambda: small(7)), jpegs.mean_size.to("KB")],
    ["copy out of the memory map", best(lambda: mapped[7].copy()), Q_(mapped[7].nbytes / 1000, "KB")]])

# %% [markdown]
# Look at both columns: the CPU's work is all but gone, and the bytes went *up*. On a storage that was nearly busy
# this lever moves the wall there. What is random (crop, flip, colors) must stay in the epoch: prepare or cache only what comes
# before it.
#
# ## Exercise 4.2: what an order costs (5 points)
#
# Each stage takes a time that follows the pixels it is given, and passes a share of them on.
#
# <details><summary>Hint</summary>
#
# Go through the stages with the share of pixels that is left. Charge a stage for what *reaches* it, then reduce the share.
#
# </details>

# %% role="answer" id="order-cost"
def time_in_order(stages):
    """Time [time] of all stages for one sample.

    Each stage is a pair: its time on the whole image [time], and the share of the pixels it gets that it passes on.
    """
    ### BEGIN SOLUTION
    total, left = Q_("0 ms"), 1.0
    for whole, kept in stages:
        total, left = total + left * whole, left * kept
    return total
    ### END SOLUTION

# %% role="test" id="order-cost-test" points=5
blur_, crop_, gray_ = (Q_("40 ms"), 1.0), (Q_("4 ms"), 0.25), (Q_("20 ms"), 1.0)
check(time_in_order([blur_, crop_]), Q_("44 ms"), what="blur, then crop", mistakes={
    "A stage works on what it is given, not on what it passes on.": Q_("41 ms"),
})
check(time_in_order([crop_, blur_, gray_]), Q_("19 ms"), what="crop, then blur, then gray", mistakes={
    "The crop comes first here: all that follows it works on fewer pixels.": Q_("64 ms"),
    "Only the stage right behind the crop got cheaper: the pixels do not come back after it.": Q_("34 ms"),
})
### BEGIN HIDDEN TESTS
half = (Q_("8 ms"), 0.5)
check(time_in_order([half, half, half]), Q_("14 ms"), what="three stages that each halve the pixels", mistakes={
    "Shares multiply: half of a half is a quarter.": Q_("16 ms"),
})
check(time_in_order([(Q_("0.01 s"), 0.1), (Q_("30 ms"), 0.5), crop_]), Q_("13.2 ms"), what="three stages in mixed units")
### END HIDDEN TESTS

# %% [markdown]
# ## On your own machine: formats
#
# The same 400 samples of 12 KB as 400 files, as one tar archive (a *shard*), and as one memory-mapped array.

# %%
for index in range(400):
    (store / f"{index}.bin").write_bytes(bytes(12_000))
with tarfile.open(store / "shard.tar", "w") as shard:
    for index in range(400):
        shard.add(store / f"{index}.bin", arcname=f"{index}.bin")
np.save(store / "shard.npy", np.zeros((400, 12_000), np.uint8))

# %%
def from_tar():
    with tarfile.open(store / "shard.tar") as shard:
        return [shard.extractfile(member).read() for member in shard]


ways = {"400 files": lambda: [(store / f"{index}.bin").read_bytes() for index in range(400)],
        "one tar": from_tar,
        "one array, memory-mapped": lambda: [row.copy() for row in np.load(store / "shard.npy", mmap_mode="r")]}
table(["stored as", "time for a sample"], [[name, best(way) / 400] for name, way in ways.items()])

# %% [markdown]
# Surprised by the tar? These files were written a moment ago and still lie in memory, where opening one costs next to nothing,
# and Python's `tarfile` has headers to read. Shards pay where an *open* is dear: over a network each costs a round trip. On the
# board above that is `packed in shards`, and it was worth something. Measure where your data lie.
#
# Text is another format that costs. `np.loadtxt` parses numbers one after the other; the usual advice is to parse chunks in
# parallel. But lines have no fixed length: a process that shall begin at line 15,000 has to read the lines before it as well.

# %%
rows_, parts = 20_000, 4
values = np.random.default_rng(0).random((rows_, 16))
np.savetxt(store / "table.txt", values, fmt="%.6f")
np.save(store / "table.npy", values)
each = rows_ // parts
lines = sum(part * each + each for part in range(parts))
print(f"{parts} chunks read {lines:,} lines of a file that has {rows_:,}: {lines / rows_:g} times the file.")

# %%
pool = get_reusable_executor(max_workers=2)


def in_chunks():
    chunks = [pool.submit(np.loadtxt, store / "table.txt", skiprows=n * each, max_rows=each) for n in range(parts)]
    return np.concatenate([chunk.result() for chunk in chunks])

# %%
ways = {"starting two processes, then chunks": (in_chunks, 1), "chunks, processes running": (in_chunks, 3),
        "np.loadtxt": (lambda: np.loadtxt(store / "table.txt"), 3),
        "np.load (.npy)": (lambda: np.load(store / "table.npy"), 3)}
table(["way", "time"], [[name, best(work, repeats)] for name, (work, repeats) in ways.items()])
pool.shutdown()

# %% [markdown]
# Whatever your first three rows say, the last one is in another class: not parsing beats parsing in parallel. Two running
# processes may win a little; starting them costs many times that, and the lines they skip and the numbers they send back
# cost something too.
#
# ## Fewer bytes, and copies beside the computation
#
# A batch of float32 is four times as large as the same pixels in uint8, wherever it goes: from a worker to the loop, and over the
# link. Handing it over by pickling, as a plain queue between processes does, here and now:

# %%
pixels = np.ones((32, 3, 224, 224), np.uint8)
rows = []
for batch in (pixels, pixels.astype(np.float32)):
    handed_over = best(lambda: pickle.loads(pickle.dumps(batch)))  # noqa: B023
    rows.append([str(batch.dtype), Q_(batch.nbytes / 1e6, "MB"), handed_over, Q_(batch.nbytes / 12e6, "ms")])
table(["a batch of 32", "size", "handed over (pickled)", "at 12 GB/s over the link"], rows)

# %% [markdown]
# Pinned memory lets the accelerator fetch a batch by itself, while it computes on the one before. From pageable memory the
# copy takes its turn between two steps. Compare the gaps in the accelerator's lane, copies in turn first:

# %%
fast = Loader(step_time="15 ms", prepare_time="20 ms", workers=2, copy_time="8 ms", copy_overlaps=False)
display(loader_timeline(simulate(fast, batches=30, warm_up=10), batches=8))
loader_timeline(simulate(fast.replace(copy_overlaps=True), batches=30, warm_up=10), batches=8)

# %% [markdown]
# ## Exercise 4.3: in turn, or beside (6 points)
#
# The workers are fast enough here. How long is it from one batch to the next?
#
# <details><summary>Hint 1</summary>
#
# First the copy: how many bytes has the whole batch, and how long does the link take for them?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# In turn, copy and step use the accelerator one after the other. Beside each other, the link and the accelerator are two resources.
#
# </details>

# %% role="answer" id="copy-period"
def period(batch_size, values, bytes_each, bandwidth, step_time, overlapped):
    """Time [time] from batch to batch; a sample has `values` numbers of `bytes_each` bytes.

    `bandwidth` is [data/time], `step_time` [time], `overlapped` True or False.
    """
    ### BEGIN SOLUTION
    copy = batch_size * values * bytes_each * Q_("1 B") / bandwidth
    return (max(copy, step_time) if overlapped else copy + step_time).to("ms")
    ### END SOLUTION

# %% role="test" id="copy-period-test" points=6
link = Q_("3 GB/s")
check(period(100, 150_000, 4, link, Q_("30 ms"), False), Q_("50 ms"), what="the period with copies in turn", mistakes={
    "That is the slower of the two, but in turn neither works while the other does.": Q_("30 ms"),
    "That copies one sample; the batch has 100.": Q_("30.2 ms"),
    "The bytes of a value were forgotten: float32 has four.": Q_("35 ms"),
    "Bits and bytes are mixed up: the bandwidth is in bytes already.": Q_("190 ms"),
})
check(period(100, 150_000, 4, link, Q_("15 ms"), True), Q_("20 ms"), what="the period with copies beside", mistakes={
    "Link and accelerator are two resources here: they overlap.": Q_("35 ms"),
    "The slower of the two sets the pace, not the faster.": Q_("15 ms"),
})
### BEGIN HIDDEN TESTS
check(period(256, 3 * 224 * 224, 1, Q_("12 GB/s"), Q_("10 ms"), False), Q_("13.2112640 ms"), what="the period of uint8 in turn")
check(period(256, 3 * 224 * 224, 4, Q_("12000 MB/s"), Q_("0.01 s"), True), Q_("12.845056 ms"), what="the period of float32 beside")
check(period(256, 3 * 224 * 224, 1, Q_("12 GB/s"), Q_("10 ms"), True), Q_("10 ms"), what="the period of uint8 beside")
### END HIDDEN TESTS

# %% [markdown]
# One more way to lose this: a loop that asks for `loss.item()` every step waits for the step to end, and only then fetches, copies
# and orders the next. Everything is in turn again, pinned or not:

# %%
rows = []
for beside in (False, True):
    for asks in (True, False):
        s = simulate(fast.replace(copy_overlaps=beside, in_flight=1 if asks else 2), batches=220, warm_up=20)
        copies = "beside the step" if beside else "in turn"
        rows.append([copies, asks, fast.step_time / s.utilization, percent(s.utilization)])
table(["copies", "loss.item() each step", "from batch to batch", "busy"], rows)

# %% [markdown]
# ## Mixed precision
#
# NVIDIA measured ResNet-50 training on one A100 (DeepLearningExamples, PyTorch): 938 img/s in TF32, 2,470 img/s with mixed
# precision. That is 2.6 times as fast, for a few lines of code. Your job runs in TF32, and the GPU is busy all the time, behind eight
# ordinary workers: together they prepare 1,090 img/s (measured by Lotus, as in the first assignment).

# %%
predict("mixed-precision", question="How many times as fast does this job train with mixed precision?")

# %%
def trained(workers, precision):
    return Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=workers,
                    precision=precision, assumptions=PUBLISHED).solve()


def show_precision():
    rows = [[w, name, step.throughput, percent(step.utilization), step.bottleneck] for w in (8, 16, 38)
            for name, p in (("TF32", "tf32"), ("mixed", "fp16")) for step in [trained(w, p)]]
    table(["workers", "precision", "throughput", "GPU busy", "binds"], rows)

# %%
faster = (trained(8, "fp16").throughput / trained(8, "tf32").throughput).m_as("")
reveal("mixed-precision", faster, then=show_precision)

# %% [markdown]
# The faster the GPU, the sooner it starves. A *lower* utilization is here the sign of progress; what counts is
# throughput. The same holds for the batch size: a larger one spreads the fixed cost of a step, and the workers are wanted sooner.
#
# ## The same levers, other names
#
# TensorFlow's `tf.data` writes a pipeline as a chain of methods. Each link is a lever you know:
#
# | `tf.data` | here |
# |---|---|
# | `interleave(..., num_parallel_calls=n)` over TFRecord files | more requests at once, many samples in one file |
# | `map(f, num_parallel_calls=n)` | `workers` |
# | `cache()` | a cache in memory; stands *before* `shuffle` and whatever is random |
# | `shuffle(buffer)`, `batch(b)` | the sampler, `batch_size` |
# | `prefetch(n)` | `prefetch`: the loop and the preparation overlap |
# | `deterministic=False` in the options | `in_order=False` |
# | `AUTOTUNE` in the place of a number | raise what helps until it stops helping |
#
# Link by link, for 10 ms of work a sample, of which decoding takes 6 ms, batches of 32, a step of 30 ms and 8 cores:

# %%
def autotune(loader, cores=8, worth=1.05):
    while loader.workers < cores:
        more = loader.replace(workers=loader.workers + 1)
        if simulate(more).throughput < worth * simulate(loader).throughput:
            break
        loader = more
    return loader

# %%
chain = Loader(step_time="30 ms", prepare_time="320 ms", workers=0, in_flight=1, cores=8)
tuned = autotune(chain.replace(prepare_time="128 ms", workers=1))
links = [["map, batch", 1, chain], ["... with 8 parallel calls", 8, chain.replace(prepare_time="40 ms")],
         ["... and cache after decoding", 8, chain.replace(prepare_time="16 ms")],
         ["... and prefetch", 8, chain.replace(prepare_time="128 ms", workers=8)],
         ["... calls left to AUTOTUNE", tuned.workers, tuned]]
table(["chain", "parallel calls", "busy", "throughput"],
      [[name, calls, percent(s.utilization), s.throughput] for name, calls, loader in links for s in [simulate(loader)]])

# %% [markdown]
# ## Exercise 4.4: the best lever (7 points)
#
# Do what you did by hand: pull each lever alone, and keep the one that gains most. `levers` names the changes, such as
# `{"a deeper queue": {"prefetch": 8}}`; `loader.replace(**changes)` applies one.
#
# <details><summary>Hint 1</summary>
#
# `simulate(loader).throughput` is what you want more of. Is a busier accelerator the same?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `max(levers, key=...)` finds a name; the key is a function of a name that simulates. Then compare with the loader as it was.
#
# </details>

# %% role="setup" id="setup-03-cases"
starved = Loader(step_time="20 ms", prepare_time="80 ms", workers=2)
to_try = {"one worker": {"workers": 1}, "full precision": {"step_time": "70 ms"}, "twice the workers": {"workers": 4},
          "a faster accelerator": {"step_time": "5 ms"}}
late = Loader(step_time="20 ms", prepare_time="13 ms", batch_size=8, straggler_share=0.01, straggler_time="400 ms")
against_late = {"faster decoding": {"prepare_time": "5 ms"},
                "no fixed order, deep queue": {"in_order": False, "prefetch": 16}}
little = {"a deeper queue": {"prefetch": 4}}

# %% role="answer" id="best-lever"
def best_lever(loader, levers):
    """The name [str] of the lever that raises the throughput most; None if none raises it by 5 % or more."""
    ### BEGIN SOLUTION
    rates = {name: simulate(loader.replace(**changes)).throughput for name, changes in levers.items()}
    best = max(rates, key=rates.get)
    return best if rates[best] >= 1.05 * simulate(loader).throughput else None
    ### END SOLUTION

# %% role="test" id="best-lever-test" points=7
check(best_lever(starved, to_try), "twice the workers", what="the best lever behind slow workers", mistakes={
    "It keeps the accelerator busiest, and trains more slowly: compare throughputs.": "full precision",
    "That one is the worst: is the comparison the right way round?": "one worker",
    "The accelerator waits already; making it faster gains nothing.": "a faster accelerator",
})
check(best_lever(late, against_late), "no fixed order, deep queue", what="the best lever against slow samples", mistakes={
    "By average times, yes. But the order of events matters here: simulate it.": "faster decoding",
})
check(best_lever(starved, little), None, what="the best lever where none gains")
### BEGIN HIDDEN TESTS
copies = Loader(step_time="20 ms", prepare_time="30 ms", workers=4, copy_time="18 ms", copy_overlaps=False)
choice = {"twice the workers": {"workers": 8}, "pinned copies": {"copy_overlaps": True}, "a deeper queue": {"prefetch": 8}}
check(best_lever(copies, choice), "pinned copies", what="the best lever where copies take turns")
check(best_lever(copies, {"full precision": {"step_time": "60 ms"}, "one worker": {"workers": 1}}), None,
      what="the best lever where all make it worse")
check(best_lever(starved.replace(workers=16), to_try), "a faster accelerator", what="the best lever in front of a slow accelerator")
### END HIDDEN TESTS

# %% [markdown]
# ## Exercise 4.5: choose the levers (6 points, read by a person)
#
# A group trains on microscope images: JPEGs of 2048 x 2048 pixels on a local NVMe drive, of which the model sees 256 x 256. Four
# workers on a host with 16 cores decode, blur the whole image, crop at random, normalize, and send float32 in batches of 32. All
# four compute all the time. This is their ladder:

# %%
case = diagnose({"nothing": "640 ms", "raw sample": "620 ms", "decoded sample": "400 ms", "processed sample": "90 ms",
                 "host batch": "84 ms", "device batch": "60 ms"})
table(case.headers, case.rows)

# %% [markdown]
# One colleague wants a faster drive, another one mixed precision. In five to eight sentences: what binds, and how does the
# ladder show it? Which two or three levers do you pull first, and why does each work *here*? What do you say to the two
# colleagues, and what do you expect to bind afterwards?

# %% [markdown] role="essay" id="choose-levers" points=6
# The CPU binds. The ladder falls by 310 ms when the transforms are cached and by 220 ms when decoding is, so nearly all of the 640
# ms are the workers' work; reading adds 20 ms, and the accelerator alone needs 60 ms. First I would crop before the blur (with a
# margin as wide as the blur reaches): the model sees a sixty-fourth of the pixels, and work follows pixels, so the blur nearly
# vanishes. Then I would raise the workers from four towards the 16 cores: they compute all the time, samples are independent, and
# there are cores left. Against decoding I would store the images decoded and tiled, or decode only what is needed; that costs more
# bytes, so I would watch the drive. A faster drive shortens 20 of 640 ms, so not now. Mixed precision shortens a step that is
# not what binds: throughput would stay and utilization fall. It may pay at the end, since after these levers the step and the
# copy (24 ms, sent as uint8 it would be a quarter) are next. After each lever I would climb the ladder again.
#
# ### BEGIN MARK SCHEME
# - 2 points: the CPU (transform, then decode) binds, read off as differences between rungs. One point without the evidence.
# - 2 points: two levers that fit (crop before blur, more workers up to the cores, decode less or offline, cheaper stages), each
#   with a reason from this case. One point if the reasons are general, or one lever only.
# - 1 point: turns down the drive and mixed precision for now, because neither touches what binds.
# - 1 point: says what comes next (the step of 60 ms, the copy, or the drive after storing decoded images), or measures again.
# ### END MARK SCHEME

# %% [markdown]
# ## Take away
#
# - Fast enough on average is not fast enough: a late batch holds up the ones behind it. A deeper queue, and no fixed order.
# - Work follows pixels, copies follow bytes, opening follows files. Do less, do it once, do it beside something else.
# - A lever gains only if it touches what binds. Pull one, measure, ask again.
# - Compare throughput. Utilization also rises when the accelerator gets slower.
#
# **Next:** the walkthrough itself, held against measurements. [Notebook 5](05_reality_check.ipynb).
