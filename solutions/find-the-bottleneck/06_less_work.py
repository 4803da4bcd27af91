# %% [markdown]
# # 6. Less work, fewer bytes
#
# **What does a sample really cost, and who pays for it?** In about MINUTES minutes you choose levers for a case.

# %% role="setup" id="setup-work"
import time
from io import BytesIO

import numpy as np  # noqa: F401 (for your answers)
from IPython.display import display
from PIL import Image, ImageFilter

from starvelab import PUBLISHED, Accelerator, Datasets, Hardware, Link, Models
from starvelab import Pipeline, Q_, Samples
from starvelab.checks import check
from starvelab.measure import diagnose, photos
from starvelab.show import loader_timeline, svg, table
from starvelab.tables import cell, percent
from starvelab.widgets import Drawing, explore, finish, predict, progress, reveal


def show_epochs():
    return warm


def why_warm():
    """What the share means, and what plausible mistakes predict."""
    again = percent(1 - warm.cached_fraction)
    return {"meaning": f"So {again} of {cell(whole.to('GB'))} are read again.",
            "mistakes": {"That much fits; but samples leave before their next turn.":
                         Q_(100 * (warm.held or 0), "%"),
                         "Perhaps that is what is read from storage.":
                         Q_(100 - 100 * warm.cached_fraction, "%")}}


def why_precision():
    """What the factor means, and what plausible mistakes predict."""
    gpu = [job.solve({"hardware.precision": one}, workers="1e9 img/s").throughput
           for one in ("fp16", "tf32")]
    return {"meaning": "Then the GPU is busy for "
                       f"{percent(trained(8, 'fp16').utilization)} of the time.",
            "mistakes": {
        "That is the GPU alone: the workers do not keep up.":
            (gpu[0] / gpu[1]).m_as(""),
        "Perhaps the workers seemed to bind already: TF32 leaves them idle.": 1}}

# %% [markdown]
# ## The order of stages
#
# Work follows pixels. Blurring a photograph of a million pixels to keep a twentieth of it is waste:

# %% tags=["folded"]
def best(work, repeats=5):
    def once():
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    return Q_(1e3 * min(once() for _ in range(repeats)), "ms")


photo = Image.open(BytesIO(photos("500 KB", count=1).read(0))).convert("RGB")
blur, crop = ImageFilter.GaussianBlur(4), (400, 300, 624, 524)
table(["order", "time for a sample"], [
    ["blur, then crop", best(lambda: photo.filter(blur).crop(crop))],
    ["crop, then blur", best(lambda: photo.crop(crop).filter(blur))]])

# %% [markdown]
# ## Exercise 6.1: what an order costs (3 points)
#
# The time of a stage is proportional to the pixels that it gets. It passes a share of them on.
#
# <details><summary>Hint</summary>
#
# Charge a stage for what *reaches* it, then reduce the share of pixels that is left.
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
half = (Q_("9 ms"), 0.5)
check(time_in_order([half, half, half]), Q_("15.75 ms"),
      what="three stages that each halve the pixels", mistakes={
    "Shares multiply: half of a half is a quarter.": Q_("18 ms"),
}, means="So a crop belongs to the front, where it makes all that follows cheaper.")
### BEGIN HIDDEN TESTS
check(time_in_order([(Q_("0.01 s"), 0.1), (Q_("30 ms"), 0.5), crop_]), Q_("13.2 ms"), what="three stages in mixed units")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("order-cost", time_in_order, final=False)
### BEGIN ENDING
ending = 3, "orders", lambda draw: (
    [(Q_(draw.randint(1, 60) * 1000, "us"), draw.choice((0.1, 0.25, 0.5, 1))) for _ in range(4)],)
### END ENDING

# %% [markdown]
# ## The first epoch, and each later one
#
# A host reads ImageNet from a drive of 100 MB/s, and half of the data fits into memory. The first epoch
# finds nothing there.

# %%
predict("warm-epochs", unit="%", question="Which share of its reads does a later epoch "
                                          "find in memory, in percent?")

# %%
cold = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256,
                workers=8, dataset=Datasets.ImageNet, storage="100 MB/s",
                assumptions=PUBLISHED)
whole = Datasets.ImageNet.samples * Datasets.ImageNet.sample_size
warm = cold.epochs(memory=whole / 2)
reveal("warm-epochs", Q_(100 * warm.cached_fraction, "%"), then=show_epochs,
       why=why_warm)

# %% tags=["folded"]
def draw_memory(fits=0.5, evicts=True):
    found = cold.epochs(memory=max(fits, 0.01) * whole, evicts=evicts)
    shares = {"from memory": found.cached_fraction,
              "from the drive": 1 - found.cached_fraction}
    return Drawing(svg.share_bars(shares, title=found.summary), found.summary,
                   found.headers, found.rows)

# %%
explore(draw_memory, after="warm-epochs", fits=(0.1, 1.0, 0.1), evicts=True)

# %% [markdown]
# If half of the data or more fits, the workers set the pace.
#
# ## Copies beside the step
#
# A copy runs *beside* the computing if the batch lies in [pinned
# memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html), the copy is asked for with
# `non_blocking=True`, and it has a stream of its own. Without one of these, copying and computing take
# turns. First in turn, then beside:

# %% tags=["folded"]
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
# <details><summary>Hint</summary>
#
# How many bytes has the whole batch, and how long does the link take for them? In turn, copy and step use the
# GPU one after the other. Beside each other, they are two resources.
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
check(period(100, 150_000, 4, link, Q_("30.4 ms"), False), Q_("50.4 ms"),
      what="the period with copies in turn", mistakes={
    "That is the slower of the two, but in turn neither works while the other does.":
        Q_("30.4 ms"),
    "That copies one sample; the batch has 100.": Q_("30.6 ms"),
    "The bytes of a value were forgotten: float32 has four.": Q_("35.4 ms"),
    "Bits and bytes are mixed up: the bandwidth is in bytes already.": Q_("190.4 ms"),
})
check(period(100, 150_000, 4, link, Q_("15 ms"), True), Q_("20 ms"),
      what="the period with copies beside", mistakes={
    "Link and GPU are two resources here: they overlap.": Q_("35 ms"),
    "The slower of the two sets the pace, not the faster.": Q_("15 ms"),
})
check(period(100, 150_000, 1, link, Q_("15 ms"), True), Q_("15 ms"),
      what="the period with small copies beside", mistakes={
    "The step is the slower of the two here.": Q_("5 ms"),
}, means="So a copy beside the step costs nothing until it takes longer than the step.")
### BEGIN HIDDEN TESTS
check(period(256, 3 * 224 * 224, 1, Q_("12 GB/s"), Q_("10 ms"), False), Q_("13.2112640 ms"), what="the period of uint8 in turn")
check(period(256, 3 * 224 * 224, 4, Q_("12000 MB/s"), Q_("0.01 s"), True), Q_("12.845056 ms"), what="the period of float32 beside")
check(period(256, 3 * 224 * 224, 1, Q_("12 GB/s"), Q_("10 ms"), True), Q_("10 ms"), what="the period of uint8 beside")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("copy-period", period, final=False)
### BEGIN ENDING
ending = 4, "copies", lambda draw: (
    draw.randint(1, 300), draw.randint(1000, 200_000), draw.choice((1, 2, 4, 8)),
    Q_(draw.randint(500, 12_000), "MB/s"), Q_(draw.randint(1, 60), "ms"), draw.choice((True, False)))
### END ENDING

# %% [markdown]
# ## Mixed precision
#
# One A100 trains ResNet-50 at 938 img/s in TF32, 2,470 img/s with mixed precision. Your job runs in TF32, and the
# GPU is busy all the time, behind eight ordinary workers. One of them alone prepares 145.6 img/s.
#
# <details><summary>Sources</summary>
#
# NVIDIA/DeepLearningExamples, PyTorch; for the worker, Lotus.
#
# </details>

# %%
predict("mixed-precision", unchanged=1,
        question="How many times as fast does this job train with mixed precision?")

# %% tags=["folded"]
job = Pipeline(model=Models.ResNet50, batch_size=256, workers=8,
               hardware=Accelerator(Hardware.Cloud.A100, precision="tf32"),
               assumptions=PUBLISHED)


def trained(workers, precision):
    return job.solve({"hardware.precision": precision}, workers=workers)


def show_precision():
    rows = [[w, name, step.throughput, percent(step.utilization),
             step.labels[step.bottleneck]]
            for w in (8, 16, 38)
            for name, p in (("TF32", "tf32"), ("mixed", "fp16"))
            for step in [trained(w, p)]]
    table(["workers", "precision", "throughput", "GPU busy", "binds"], rows)


faster = (trained(8, "fp16").throughput / trained(8, "tf32").throughput).m_as("")

# %%
reveal("mixed-precision", faster, then=show_precision, why=why_precision)

# %% [markdown]
# The faster the GPU, the sooner it starves. From how many workers on does mixed precision keep its full gain?

# %%
explore(job, {"hardware.precision": ["tf32", "fp16"]}, after="mixed-precision",
        advice=False, workers=[4, 8, 16, 24, 32, 38],
        batch_size=[32, 64, 128, 256, 512])

# %% [markdown]
# ## Exercise 6.3: choose the levers (6 points, read by a person)
#
# A group trains on microscope images: JPEGs of 2048 x 2048 pixels on a local NVMe drive; the model sees 256
# x 256 of them. Four workers on a host with 16 cores decode, blur the whole image, crop at random,
# normalize, and send float32 in batches of 32. All four compute all the time. This is their ladder:

# %% tags=["folded"]
case = diagnose({"nothing": "640 ms", "raw sample": "620 ms",
                 "decoded sample": "400 ms", "processed sample": "90 ms",
                 "host batch": "84 ms", "device batch": "60 ms"})
table(case.headers, case.rows)

# %% [markdown]
# One colleague wants a faster drive, another one mixed precision. In five to eight sentences: what binds, and
# how does the ladder show it? Which two or three levers do you pull first, and why does each work *here*?
# What do you say to the two colleagues, and what do you expect to bind afterwards?

# %% [markdown] role="essay" id="choose-levers" points=6
# The workers bind. The ladder falls by 310 ms when the transforms are cached and by 220 ms when decoding is, so nearly all of the 640
# ms are the workers' work; reading adds 20 ms, and the GPU alone needs 60 ms. First I would crop before the blur (with a
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
# - Do less, do it once, do it beside something else.
#
# **Next:** the first assignment's answers, held [against measurements](07_reality_check.ipynb).
