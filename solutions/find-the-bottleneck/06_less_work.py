# %% [markdown]
# # 6. Less work, fewer bytes
#
# More workers and deeper queues spread the same work. Some levers make the work itself less, or move it beside something else.
# **What does a sample really cost, in what order, in which format, in which type, and who pays for it?**
#
# In about MINUTES minutes you will
#
# - try some levers on your own machine: the order of stages, offline preparation, file formats,
# - write the rules for the cost of an order, and for a copy in turn with the step or beside it,
# - see what mixed precision does to a job that is nearly starved, and choose levers for a case.

# %% role="setup" id="setup-work"
from io import BytesIO

import numpy as np
from PIL import Image, ImageFilter

from starvelab import PUBLISHED, Accelerator, Hardware, Link, Models, Pipeline, Q_
from starvelab import Samples
from starvelab.checks import check
from starvelab.host import has_processes
from starvelab.measure import diagnose, photos
from starvelab.show import loader_timeline, table
from starvelab.tables import percent
from starvelab.widgets import explore, predict, progress, reveal

# %% [markdown]
# ## Less work for a sample
#
# Work follows pixels. Blurring a photograph of a million pixels to keep a twentieth of it is waste, and so is decoding the same
# JPEG in every epoch. `best` gives the shortest of five runs, since other programs can only make a run longer.

# %%
import time


def best(work, repeats=5):
    def once():
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    return Q_(1e3 * min(once() for _ in range(repeats)), "ms")

# %%
photo = Image.open(BytesIO(photos("500 KB", count=1).read(0))).convert("RGB")
blur, crop = ImageFilter.GaussianBlur(4), (400, 300, 624, 524)
table(["order", "time for a sample"], [["blur, then crop",
                                        best(lambda: photo.filter(blur).crop(crop))],
                                       ["crop, then blur", best(
                                           lambda: photo.crop(crop).filter(blur))]])

# %% [markdown]
# The two results differ by a rim as wide as the blur reaches, where pixels from outside are missing. Crop with that much margin
# if it matters. A random color shift would commute without any: order is free only where you know that it is.
#
# Now decode and scale down once, store the result as an array, and let each epoch map it into memory:

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

scratch = TemporaryDirectory(ignore_cleanup_errors=True)
store, jpegs = Path(scratch.name), photos("100 KB")


def small(index):
    photo = Image.open(BytesIO(jpegs.read(index)))
    return np.asarray(photo.convert("RGB").resize((256, 256)))

# %%
np.save(store / "decoded.npy", np.stack([small(index) for index in range(len(jpegs))]))
mapped = np.load(store / "decoded.npy", mmap_mode="r")
table(["a sample in each epoch", "time", "stored"], [
    ["read, decode, scale down", best(lambda: small(7)), jpegs.mean_size.to("KB")],
    ["copy out of the memory map", best(lambda: mapped[7].copy()),
     Q_(mapped[7].nbytes / 1000, "KB")]])

# %% [markdown]
# Look at both columns: the CPU's work is all but gone, and the bytes went *up*. On a storage that was nearly busy
# this lever moves the wall there. What is random (crop, flip, colors) must stay in the epoch: prepare or cache only what comes
# before it.
#
# ## Exercise 6.1: what an order costs (3 points)
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

    Each stage is a pair: its time on the whole image [time], and the share of the
    pixels it gets that it passes on.
    """
    ### BEGIN SOLUTION
    total, left = Q_("0 ms"), 1.0
    for whole, kept in stages:
        total, left = total + left * whole, left * kept
    return total
    ### END SOLUTION

# %% role="test" id="order-cost-test" points=3
blur_, crop_, gray_ = (Q_("40 ms"), 1.0), (Q_("4 ms"), 0.25), (Q_("20 ms"), 1.0)
check(time_in_order([blur_, crop_]), Q_("44 ms"), what="blur, then crop", mistakes={
    "A stage works on what it is given, not on what it passes on.": Q_("41 ms"),
})
check(time_in_order([crop_, blur_, gray_]), Q_("19 ms"),
      what="crop, then blur, then gray", mistakes={
    "The crop comes first here: all that follows it works on fewer pixels.":
        Q_("64 ms"),
    "Only the stage right behind the crop got cheaper: the pixels do not come back "
    "after it.": Q_("34 ms"),
})
half = (Q_("8 ms"), 0.5)
check(time_in_order([half, half, half]), Q_("14 ms"),
      what="three stages that each halve the pixels", mistakes={
    "Shares multiply: half of a half is a quarter.": Q_("16 ms"),
})
### BEGIN HIDDEN TESTS
check(time_in_order([(Q_("0.01 s"), 0.1), (Q_("30 ms"), 0.5), crop_]), Q_("13.2 ms"), what="three stages in mixed units")
### END HIDDEN TESTS

# %% [markdown]
# ## Formats
#
# The same 400 samples of 12 KB as 400 files, as one tar archive (a *shard*), and as one memory-mapped array.

# %%
import tarfile

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


ways = {"400 files": lambda: [(store / f"{index}.bin").read_bytes()
                              for index in range(400)],
        "one tar": from_tar,
        "one array, memory-mapped": lambda: [row.copy()
            for row in np.load(store / "shard.npy", mmap_mode="r")]}
table(["stored as", "time for a sample"],
      [[name, best(way) / 400] for name, way in ways.items()])

# %% [markdown]
# Surprised by the tar? These files were written a moment ago and still lie in memory, where opening one costs next to nothing,
# and Python's `tarfile` has headers to read. Shards pay where an *open* is dear: over a network each costs a round trip. On the
# board of the last notebook that is `packed in shards`, and it was worth something. Measure where your data lie.
#
# Text is another format that costs. `np.loadtxt` parses numbers one after the other; the usual advice is to parse chunks in
# parallel. But a process that shall begin at line 15,000 does so by `skiprows`, which reads the lines before it, one by one.

# %%
rows_, parts = 20_000, 4
values = np.random.default_rng(0).random((rows_, 16))
np.savetxt(store / "table.txt", values, fmt="%.6f")
np.save(store / "table.npy", values)
each = rows_ // parts
lines = sum(part * each + each for part in range(parts))
print(f"{parts} chunks read {lines:,} lines of a file that has {rows_:,}: "
      f"{lines / rows_:g} times the file.")

# %%
if has_processes():
    from loky import get_reusable_executor
    pool = get_reusable_executor(max_workers=2)
else:
    print("A browser starts no processes, so the table below has two rows. For the "
          "others, run this notebook on your own machine (make lab) or on Binder.")


def in_chunks():
    chunks = [pool.submit(np.loadtxt, store / "table.txt", skiprows=n * each,
                          max_rows=each) for n in range(parts)]
    return np.concatenate([chunk.result() for chunk in chunks])

# %%
ways = {"np.loadtxt": (lambda: np.loadtxt(store / "table.txt"), 3),
        "np.load (.npy)": (lambda: np.load(store / "table.npy"), 3)}
if has_processes():
    ways = {"starting two processes, then chunks": (in_chunks, 1),
            "chunks, processes running": (in_chunks, 3), **ways}
table(["way", "time"], [[name, best(work, repeats)]
                        for name, (work, repeats) in ways.items()])
if has_processes():
    pool.shutdown()

# %% [markdown]
# Whatever the other rows say, the last one is in another class: not parsing beats parsing in parallel. Two running
# processes may win a little; starting them costs many times that, and the lines they skip and the numbers they send back
# cost something too.
#
# ## Fewer bytes, and copies beside the computation
#
# A batch of float32 is four times as large as the same pixels in uint8, wherever it goes: from a worker to the loop, and over the
# link. Handing it over by pickling, as a plain queue between processes does, here and now:

# %%
import pickle

pixels = np.ones((32, 3, 224, 224), np.uint8)
rows = []
for batch in (pixels, pixels.astype(np.float32)):
    handed_over = best(lambda: pickle.loads(pickle.dumps(batch)))  # noqa: B023
    rows.append([str(batch.dtype), Q_(batch.nbytes / 1e6, "MB"), handed_over,
                 Q_(batch.nbytes / 12e6, "ms")])
table(["a batch of 32", "size", "handed over (pickled)", "at 12 GB/s over the link"],
      rows)

# %% [markdown]
# A copy runs *beside* the computing if the batch lies in pinned memory, the copy is asked for with `non_blocking=True`, and it has
# a stream of its own. Without one of these it takes its turn between two steps. Compare the gaps in the accelerator's lane,
# copies in turn first:

# %%
from IPython.display import display

# 16 MB of pixels at 2 GB/s are 8 ms
fast = Pipeline(dataset=Samples(cpu_time="0.625 ms", transfer="500 KB"), batch_size=32,
                workers=2, link=Link("2 GB/s", overlaps=False), hardware="15 ms")
short = {"batches": 30, "replicas": 1, "warm_up": 10}
display(loader_timeline(fast.simulate(**short), batches=8))
loader_timeline(fast.replace({"link.overlaps": True}).simulate(**short), batches=8)

# %% [markdown]
# ## Exercise 6.2: in turn, or beside (4 points)
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
    """Time [time] from batch to batch; a sample has `values` numbers of `bytes_each`
    bytes.

    `bandwidth` is [data/time], `step_time` [time], `overlapped` True or False.
    """
    ### BEGIN SOLUTION
    copy = batch_size * values * bytes_each * Q_("1 B") / bandwidth
    return (max(copy, step_time) if overlapped else copy + step_time).to("ms")
    ### END SOLUTION

# %% role="test" id="copy-period-test" points=4
link = Q_("3 GB/s")
check(period(100, 150_000, 4, link, Q_("30 ms"), False), Q_("50 ms"),
      what="the period with copies in turn", mistakes={
    "That is the slower of the two, but in turn neither works while the other does.":
        Q_("30 ms"),
    "That copies one sample; the batch has 100.": Q_("30.2 ms"),
    "The bytes of a value were forgotten: float32 has four.": Q_("35 ms"),
    "Bits and bytes are mixed up: the bandwidth is in bytes already.": Q_("190 ms"),
})
check(period(100, 150_000, 4, link, Q_("15 ms"), True), Q_("20 ms"),
      what="the period with copies beside", mistakes={
    "Link and accelerator are two resources here: they overlap.": Q_("35 ms"),
    "The slower of the two sets the pace, not the faster.": Q_("15 ms"),
})
check(period(100, 150_000, 1, link, Q_("15 ms"), True), Q_("15 ms"),
      what="the period with small copies beside", mistakes={
    "The step is the slower of the two here.": Q_("5 ms"),
})
### BEGIN HIDDEN TESTS
check(period(256, 3 * 224 * 224, 1, Q_("12 GB/s"), Q_("10 ms"), False), Q_("13.2112640 ms"), what="the period of uint8 in turn")
check(period(256, 3 * 224 * 224, 4, Q_("12000 MB/s"), Q_("0.01 s"), True), Q_("12.845056 ms"), what="the period of float32 beside")
check(period(256, 3 * 224 * 224, 1, Q_("12 GB/s"), Q_("10 ms"), True), Q_("10 ms"), what="the period of uint8 beside")
### END HIDDEN TESTS

# %% [markdown]
# One more way to lose this: a loop that asks for `loss.item()` every step waits for the step to end. If it only then orders the
# next copy, as this loop does, everything is in turn again. (A prefetcher that has ordered the copy before keeps it beside.)

# %%
rows = []
for beside in (False, True):
    for asks in (True, False):
        changes = {"link.overlaps": beside, "hardware.in_flight": 1 if asks else 2}
        s = fast.replace(changes).simulate(batches=220, replicas=1, warm_up=20)
        copies = "beside the step" if beside else "in turn"
        rows.append([copies, asks, Q_(s.periods[0], "ms"), percent(s.utilization)])
table(["copies", "loss.item() each step", "from batch to batch", "busy"], rows)

# %% [markdown]
# ## Mixed precision
#
# NVIDIA measured ResNet-50 training on one A100 (DeepLearningExamples, PyTorch): 938 img/s in TF32, 2,470 img/s with mixed
# precision. That is 2.6 times as fast, for a few lines of code. Your job runs in TF32, and the GPU is busy all the time, behind eight
# ordinary workers. One of them alone prepares 145.6 img/s (measured by Lotus, as in the first assignment).

# %%
predict("mixed-precision", unchanged=1,
        question="How many times as fast does this job train with mixed precision?")

# %%
def trained(workers, precision):
    a100 = Accelerator(Hardware.Cloud.A100, precision=precision)
    return Pipeline(model=Models.ResNet50, hardware=a100, batch_size=256,
                    workers=workers, assumptions=PUBLISHED).solve()


def show_precision():
    rows = [[w, name, step.throughput, percent(step.utilization), step.bottleneck]
            for w in (8, 16, 38)
            for name, p in (("TF32", "tf32"), ("mixed", "fp16"))
            for step in [trained(w, p)]]
    table(["workers", "precision", "throughput", "GPU busy", "binds"], rows)

# %%
faster = (trained(8, "fp16").throughput / trained(8, "tf32").throughput).m_as("")
reveal("mixed-precision", faster, then=show_precision)

# %% [markdown]
# Together the eight prepare 1,090 img/s and no more (measured by Lotus). The faster the GPU, the sooner it starves. A *lower* utilization is here the sign of progress; what counts is
# throughput. The same holds for the batch size: a larger one spreads the fixed cost of a step, and the workers are wanted sooner.
#
# Move the workers, the batch size and the precision. From how many workers on does mixed precision keep its full gain?

# %%
explore(Pipeline(model=Models.ResNet50, batch_size=256, workers=8,
                 hardware=Accelerator(Hardware.Cloud.A100, precision="tf32"),
                 assumptions=PUBLISHED),
        {"hardware.precision": ["tf32", "fp16"]}, after="mixed-precision", advice=False,
        workers=[4, 8, 16, 24, 32, 38], batch_size=[32, 64, 128, 256, 512])

# %% [markdown]
# ## Exercise 6.3: choose the levers (6 points, read by a person)
#
# A group trains on microscope images: JPEGs of 2048 x 2048 pixels on a local NVMe drive, of which the model sees 256 x 256. Four
# workers on a host with 16 cores decode, blur the whole image, crop at random, normalize, and send float32 in batches of 32. All
# four compute all the time. This is their ladder:

# %%
case = diagnose({"nothing": "640 ms", "raw sample": "620 ms",
                 "decoded sample": "400 ms", "processed sample": "90 ms",
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

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Work follows pixels, copies follow bytes, opening follows files. Do less, do it once, do it beside something else.
# - Decoding offline takes the CPU's work away, and adds bytes: the wall may move to the drive.
# - A copy in turn adds to the step; a copy beside it only has to be shorter.
# - The faster the accelerator, the sooner it starves.
#
# **Next:** the walkthrough itself, held against measurements. [Notebook 7](07_reality_check.ipynb).
