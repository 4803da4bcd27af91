# %% [markdown]
# # 3. The CPU wall
#
# A GPU does not eat JPEGs. Somebody has to decode each image, crop it, flip it, shift its colors and normalize it. That
# somebody is the CPU: a handful of worker processes that prepare the next batches while the GPU trains on this one.
# **What happens when they cannot keep up?**
#
# In about MINUTES minutes you will
#
# - predict how busy the GPU is behind eight workers,
# - learn the one rule of this lab: *stages on one resource add, stages on different resources overlap*,
# - write utilization and slowdown yourself, and explain the wall in your own words.

# %% role="setup" id="setup-03"
from starvelab import Hardware, Models, Pipeline, Q_, SingleNodeModel
from starvelab import TransformationModel
from starvelab.model.assumptions import PUBLISHED, TUTORIAL
from starvelab.checks import check
from starvelab.show import info, table, timeline
from starvelab.widgets import explore, play, predict, progress, reveal

baseline = SingleNodeModel().solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100,
                                   batch_size=256)

# %% [markdown]
# ## Predict
#
# Eight workers, each preparing 250 MB of JPEGs a second, make 2 GB/s. Images of 500 KB, batches of 256. Alone, the GPU
# would need 11.74 ms for a batch.

# %%
predict("cpu-wall", unit="%", question="How much of the time is the GPU busy behind "
                                       "these eight workers, in percent?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# How long do the workers take for 256 images of 500 KB at 2 GB/s? Compare that with 11.74 ms. While the workers prepare
# the next batch, the GPU works on this one.
#
# </details>
#
# ## Run into it
#
# `TransformationModel` sets the time to *prepare* a batch beside the time to *use* it.

# %%
wall = TransformationModel().solve(
    batch_size=256, sample_size_bytes=Q_("500 KB"), cpu_throughput=Q_("2 GB/s"),
    accelerator_step_time=baseline.latency,
)

# %%
def show_wall():
    info("The CPU wall, batch 256", cpu_time=wall.transform_time,
         gpu_time=wall.accelerator_step_time, cpu_binds=wall.is_bottleneck,
         gpu_utilization=f"{100 * wall.accelerator_utilization:.1f} %",
         slowdown=f"{wall.slowdown_factor:.2f}x")


reveal("cpu-wall", Q_(100 * wall.accelerator_utilization, "%"), then=show_wall)

# %% [markdown]
# Look at why. Each lane below is one resource, each box one batch. On average
# a batch is ready every 64 ms. The hatched gaps *are* the starvation.

# %%
pipe = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256,
                workers=8)
reveal("cpu-wall", then=lambda: timeline(pipe.solve(), batches=4))

# %% [markdown]
# That is the average. In PyTorch each worker prepares a **whole** batch, so here is the same pipeline batch by batch: eight
# batches come at once, the GPU trains on them one after the other, and then it waits for the next eight. In the long run
# the mean is the same, and the wait is longer than any gap of the first picture. That holds where every batch takes equally
# long. Where some take longer, the workers drift apart, and the GPU waits more often.

# %%
reveal("cpu-wall", then=lambda: play(pipe, workers=range(1, 65)))

# %% [markdown]
# ## The rule
#
# [The walkthrough](https://github.com/harvard-edge/cs249r_book/blob/ea6dae3053823dfeee97d93d0f370501b514e001/mlsysim/docs/tutorials/04_starving_the_gpu.qmd)
# calls these stages "sequential" and then divides by the slowest of them. Those two do not go together,
# and the difference matters:
#
# - If nothing overlapped, each batch would wait for the one before it, and the times would **add**: 64 + 11.74 ms.
# - With workers that run ahead (prefetching), CPU and GPU work at the same time, and the **slowest sets the pace**: 64 ms.
#
# **Stages on one resource add. Stages on different resources overlap.**
#
# Decoding and cropping both run on the CPU workers, so their times add. Preparing and training run on different hardware,
# so the longer one counts.
#
# One worker alone reads an image and only then decodes it. Reading and decoding overlap because there are several workers:
# one of them reads while another decodes.

# %%
apart = pipe.replace(overlap=False).solve()
together = pipe.solve()
rows = [["one after the other (no prefetching)", apart.step_time,
         f"{100 * apart.utilization:.1f} %"],
        ["overlapped (workers run ahead)", together.step_time,
         f"{100 * together.utilization:.1f} %"]]
reveal("cpu-wall", then=lambda: table(["stages", "step", "GPU busy"], rows))

# %% [markdown]
# Move the workers and the batch. Watch three things: which bar is the longest, how the dashed line (the step) follows it,
# and what that does to the busy share.

# %%
explore(pipe, after="cpu-wall", advice=False, workers=(1, 64),
        batch_size=[8, 16, 32, 64, 128, 256, 512])

# %% [markdown]
# ## Exercise 3.1: time to prepare a batch (2 points)
#
# Each worker prepares batches of its own, and all work at the same time. How long is it, on average, from one prepared batch
# to the next?
#
# <details><summary>Hint</summary>
#
# How many bytes are in the batch? How many bytes a second do all workers prepare together?
#
# </details>

# %% role="answer" id="cpu-time"
def cpu_time(batch_size, sample_size, workers, worker_rate):
    """Time [time] from one prepared batch to the next, on average, with all workers
    busy; `worker_rate` [data/time] is that of one worker."""
    ### BEGIN SOLUTION
    return (batch_size * sample_size / (workers * worker_rate)).to("ms")
    ### END SOLUTION

# %% role="test" id="cpu-time-test" points=2
check(cpu_time(100, Q_("400 KB"), 4, Q_("100 MB/s")), Q_("100 ms"),
      what="cpu_time of 100 images", mistakes={
    "That is one worker alone: the others prepare batches meanwhile.": Q_("400 ms"),
    "More workers make it shorter, not longer.": Q_("1600 ms"),
    "That is one image: a batch has 100.": Q_("1 ms"),
    "Bits and bytes are mixed up: a byte has eight bits.": Q_("800 ms"),
})
### BEGIN HIDDEN TESTS
check(cpu_time(256, Q_("500 KB"), 8, Q_("250 MB/s")), Q_("64 ms"), what="cpu_time of the walkthrough's batch")
check(cpu_time(7, Q_("5 MB"), 3, Q_("250 MB/s")), Q_("46.6667 ms"), what="cpu_time of 7 images of 5 MB")
### END HIDDEN TESTS

# %% [markdown]
# ## Exercise 3.2: utilization (2 points)
#
# The busy share of a step, from 0 to 1, when CPU and GPU overlap.
#
# <details><summary>Hint 1</summary>
#
# First the step: which of the two times sets it?
#
# </details>
# <details><summary>Hint 2</summary>
#
# In every step the GPU works for exactly its own time. Divide that by the length of the step. Can the result exceed 1?
#
# </details>

# %% role="answer" id="utilization"
def utilization(cpu_time, gpu_time):
    """Busy share [a plain number from 0 to 1] of the GPU; both arguments are [time]."""
    ### BEGIN SOLUTION
    return (gpu_time / max(cpu_time, gpu_time)).to("").magnitude
    ### END SOLUTION

# %% role="test" id="utilization-test" points=2
check(utilization(Q_("40 ms"), Q_("10 ms")), 0.25,
      what="the utilization at 40 and 10 ms", mistakes={
    "You added the times, but the CPU and the GPU overlap.": 0.2,
    "That is the slowdown.": 4.0,
    "That is the share the GPU waits.": 0.75,
    "That is a percentage; return a share from 0 to 1.": 25.0,
})
check(utilization(Q_("5 ms"), Q_("10 ms")), 1.0,
      what="the utilization when the GPU is the slower one", mistakes={
    "A GPU cannot be busy for longer than the step: the slower of the two sets the "
    "step.": 2.0,
    "The GPU is the slower one here, so it never waits.": 0.5,
})
### BEGIN HIDDEN TESTS
check(utilization(Q_("64 ms"), Q_("11.743205 ms")), 0.183488, what="the walkthrough's utilization")
check(utilization(Q_("0.04 s"), Q_("10 ms")), 0.25, what="the utilization at 0.04 s and 10 ms", mistakes={
    "Convert both times to the same unit first.": 1.0,
})
check(utilization(Q_("20 ms"), Q_("0.02 s")), 1.0, what="the utilization of a tie")
check(utilization(Q_("35 ms"), Q_("20 ms")), 20 / 35, what="the utilization at 35 and 20 ms")
### END HIDDEN TESTS

# %% [markdown]
# ## Exercise 3.3: slowdown (1.5 points)
#
# How many times longer does a step take than the GPU alone would need? A GPU that never waits has a slowdown of 1.
#
# <details><summary>Hint</summary>
#
# Which of the two times is the step? Compare that with what the GPU would need alone.
#
# </details>

# %% role="answer" id="slowdown"
def slowdown(cpu_time, gpu_time):
    """Step time over the GPU's own time [a plain number of at least 1]; both arguments
    are [time]."""
    ### BEGIN SOLUTION
    return (max(cpu_time, gpu_time) / gpu_time).to("").magnitude
    ### END SOLUTION

# %% role="test" id="slowdown-test" points=1.5
check(slowdown(Q_("30 ms"), Q_("12 ms")), 2.5, what="the slowdown at 30 and 12 ms",
      mistakes={
    "That is the utilization.": 0.4,
    "You added the times, but the CPU and the GPU overlap.": 3.5,
    "That is the extra time only; the whole step counts.": 1.5,
})
check(slowdown(Q_("6 ms"), Q_("12 ms")), 1.0,
      what="the slowdown when the GPU is the slower one", mistakes={
    "A fast CPU does not make the GPU faster than it is.": 0.5,
    "Divide by the GPU's own time, also where that is the longer one.": 2.0,
})
### BEGIN HIDDEN TESTS
check(slowdown(Q_("64 ms"), Q_("11.743205 ms")), 5.44996, what="the walkthrough's slowdown")
check(slowdown(Q_("0.03 s"), Q_("12 ms")), 2.5, what="the slowdown at 0.03 s and 12 ms", mistakes={
    "Convert both times to the same unit first.": 1.0,
})
check(slowdown(Q_("1000 ms"), Q_("1 s")), 1.0, what="the slowdown of a tie")
### END HIDDEN TESTS

# %% [markdown]
# ## What `nvidia-smi` would say
#
# Utilization in this lab is the share of a step in which the GPU works on your model. `nvidia-smi` reports something
# weaker: the share of a sampling period in which *some* kernel was running, however small. A GPU that runs one tiny kernel
# after another shows 100 %. So a low figure there shows that the GPU waits for something, and a high one shows nothing.
#
# ## How fast is a worker, really?
#
# 250 MB/s a worker is generous. Lotus (Bachkaniwala et al., IISWC 2024, Table II) measured a PyTorch worker on ImageNet:
# loading 4.76 ms, random resized crop 1.11 ms, flip 0.06 ms, conversion 0.34 ms and normalization 0.21 ms an image, which
# with collation comes to 145.6 images a second. In bytes:

# %%
published = (PUBLISHED.worker_rate * PUBLISHED.sample_size / Q_("1 img")).to("MB/s")
table(["one worker", "rate", "images per second"], [
    ["walkthrough", TUTORIAL.worker_rate, (TUTORIAL.worker_rate / TUTORIAL.sample_size
                                           * Q_("1 img")).to("img/s")],
    ["measured (Lotus)", published, PUBLISHED.worker_rate],
])

# %% [markdown]
# Fifteen times fewer bytes, but only three and a half times fewer images. That is the catch in a rate of bytes: **decoding
# takes time for each pixel, and for each byte.** Which of the two is more depends on how strongly the images are
# compressed, so a rate in bytes holds for images like those that were measured. Measure your workers in images per second,
# on your own images.
#
# ## Exercise 3.4: explain it (6 points, read by a person)
#
# A colleague sees the GPU at 18 % and the CPU at 100 %, and asks for a faster GPU. In three to five sentences: why would
# that not help, what would happen to the utilization, and what would you do instead? Use the rule.

# %% [markdown] role="essay" id="explain-wall" points=6
# The workers take 64 ms for a batch and the GPU 11.74 ms. They are different resources, so they overlap and the slower one,
# the CPU, sets the step. A faster GPU shortens a time that does not set the step: throughput stays where it is, and the
# utilization goes *down*, because the GPU waits for a larger share of the same 64 ms. I would shorten the CPU's time
# instead: more workers as far as there are cores, less work per image (crop before the other transforms, cheaper decoding,
# preparing offline), or moving some of it to the GPU. Then I would look for the next constraint.
#
# ### BEGIN MARK SCHEME
# - 2 points: says that the CPU sets the step because CPU and GPU overlap (not: because times add).
# - 2 points: throughput does not change, and utilization falls.
# - 2 points: proposes something that shortens CPU time per batch, and why it works. One point if without a reason.
# ### END MARK SCHEME

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Workers and GPU overlap: the slower one sets the step, and the GPU's busy share is its own time over the step.
# - Adding the times is right only when nothing overlaps.
# - Where both take equally long, the CPU does not bind: it binds only if it takes longer.
# - Utilization here is not what `nvidia-smi` calls by that name.
#
# **Next:** the wall is not always there. [Notebook 4](04_batch_sweep.ipynb): from which batch size on?
