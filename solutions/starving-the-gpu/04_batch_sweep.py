# %% [markdown]
# # 4. The batch sweep: where does starvation begin?
#
# Behind eight workers the GPU starved at a batch of 256. Is that so at every batch size? The time to *prepare* a batch
# grows with every image in it. The time to *use* a batch does too, but it starts from a fixed cost. Two lines with
# different slopes and different starts **cross somewhere**.
#
# In about MINUTES minutes you will
#
# - predict where they cross, then sweep the batch size,
# - see what a sweep must show so that you can trust it,
# - compute the crossing exactly, and find what the utilization tends to.

# %% role="setup" id="setup-04"
from math import ceil, floor  # noqa: F401 (for your answers)

from starvelab import Hardware, Models, Pipeline, Q_, SingleNodeModel
from starvelab.checks import check
from starvelab.show import over_batch, svg, table
from starvelab.widgets import Drawing, explore, predict, progress, reveal

pipe = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8)

# %% [markdown]
# ## Predict
#
# Eight workers prepare 2 GB/s together, in images of 500 KB. The GPU takes 11.74 ms for a batch of 256, and 5.015 ms of
# these are overhead, which each step has, however small its batch.

# %%
predict("crossover", between=(1, None), whole=True,
        question="What is the smallest batch size at which the GPU has to wait for the "
                 "workers?")

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# A batch of 1 is prepared in 0.25 ms, and the GPU is busy with it for more than 5 ms. Who waits? And at a batch of 256?
#
# </details>
# <details><summary>Hint 2</summary>
#
# Write both times as lines in the batch size. For which batch size are they equal?
#
# </details>
#
# ## Sweep
#
# This is the sweep of [the walkthrough](https://github.com/harvard-edge/cs249r_book/blob/ea6dae3053823dfeee97d93d0f370501b514e001/mlsysim/docs/tutorials/04_starving_the_gpu.qmd).
# It promises a crossover, and starts at a batch of 32:

# %%
found = pipe.crossover()


def show_walkthrough():
    return pipe.sweep(batch_size=[32, 64, 128, 256, 512, 1024])


reveal("crossover", found.starves_from, then=show_walkthrough)

# %% [markdown]
# Every row is CPU-bound: the crossing lies to the *left* of the table. That is the trap of sweeping only the values you
# care about. A sweep that shows one regime cannot show where it ends. So start at 1:

# %%
reveal("crossover", then=lambda: over_batch(pipe))

# %% [markdown]
# Left of the crossing no data are missing. But look at *what* fills the step: at a batch of 22 about 90 % of it is overhead,
# in which the CPU launches one kernel after the other, and the GPU delivers about 5 % of its peak. The walkthrough counts
# this time as busy. In truth the GPU waits for launches then, instead of data, and no loader can help.

# %%
for_batch = {b: SingleNodeModel().solve(model=Models.ResNet50,
                                        hardware=Hardware.Cloud.A100, batch_size=b)
             for b in (8, 22, 64, 191, 256, 1024)}
headers = ["batch", "step", "overhead", "share of the step", "largest part",
           "share of peak used"]
rows = [[b, s.latency, s.overhead_time,
         f"{100 * (s.overhead_time / s.latency).to('').magnitude:.0f} %", s.cause,
         f"{100 * s.mfu:.1f} %"] for b, s in for_batch.items()]
reveal("crossover", then=lambda: table(headers, rows))

# %% [markdown]
# Both times as lines over the batch size. Move the workers: where do the lines cross for 2, 8 and 32 of them? Then keep
# eight workers and move the batch far to the right: what happens to the busy share?

# %%
def draw_lines(workers=8, batch_size=64):
    """Draw the time of each resource, and where they cross."""
    here = pipe.replace(workers=workers, batch_size=batch_size)
    return Drawing(svg.lines_over_batch(here), str(here.crossover()))


explore(draw_lines, after="crossover", workers=[1, 2, 4, 8, 16, 32, 64],
        batch_size=(1, 160))

# %% [markdown]
# ## Exercise 4.1: the first starved batch (5 points)
#
# The workers need `cpu_per_image` for each image. The GPU needs `gpu_per_image` for each image and `gpu_overhead` for each
# step. Which is the smallest whole batch size at which preparing takes *longer* than using? Take it that
# `cpu_per_image` is the larger of the two, so that there is one. When both take equally long, nobody waits.
#
# <details><summary>Hint 1</summary>
#
# Preparing: `cpu_per_image * b`. Using: `gpu_per_image * b + gpu_overhead`. For which b are they equal?
#
# </details>
# <details><summary>Hint 2</summary>
#
# They are equal at `gpu_overhead / (cpu_per_image - gpu_per_image)`, which is rarely a whole number. The first whole
# number strictly above it is one more than its floor. (A loop over b is fine too.)
#
# </details>

# %% role="answer" id="starved-from"
def starved_from(cpu_per_image, gpu_per_image, gpu_overhead):
    """The smallest batch size [int] at which the GPU waits; all arguments are
    [time]."""
    ### BEGIN SOLUTION
    crossing = gpu_overhead / (cpu_per_image - gpu_per_image)
    return floor(round(crossing.to("").magnitude, 9)) + 1
    ### END SOLUTION

# %% role="test" id="starved-from-test" points=5
check(starved_from(Q_("0.25 ms"), Q_("0.05 ms"), Q_("5.1 ms")), 26,
      what="the first starved batch", mistakes={
    "At that batch the GPU does not wait yet: they cross a little later.": 25,
    "The GPU's time grows with the batch as well.": 21,
    "You looked at powers of two only: batches in between count.": 32,
    "Times of an image do not add here: look at their difference.": 18,
})
check(starved_from(Q_("1 ms"), Q_("0.5 ms"), Q_("5 ms")), 11,
      what="the first starved batch with a tie at 10", mistakes={
    "In a tie nobody waits: the next batch is the first.": 10,
})
check(starved_from(Q_("200 us"), Q_("0.15 ms"), Q_("5.01 ms")), 101,
      what="the first starved batch of fast workers", mistakes={
    "Convert the three times to the same unit first.": 1,
})
### BEGIN HIDDEN TESTS
gpu = Q_(41 / 1560, "ms")
check(starved_from(Q_("0.25 ms"), gpu, Q_("5.015 ms")), 23, what="the first starved batch of 500 KB images")
check(starved_from(Q_("2.5 ms"), gpu, Q_("5.015 ms")), 3, what="the first starved batch of 5 MB images")
check(starved_from(Q_("2 ms"), gpu, Q_("5015 us")), 3, what="the first starved batch behind one worker")
check(starved_from(Q_("0.125 ms"), gpu, Q_("5.015 ms")), 51, what="the first starved batch behind 16 workers")
### END HIDDEN TESTS

# %% [markdown]
# ## Exercise 4.2: where does it end? (2 points)
#
# To the right the curve flattens. What does the utilization tend to when the batch grows without end, for *any* two
# times per image?
#
# <details><summary>Hint</summary>
#
# A fixed cost spread over ever more images vanishes. What is left of each step? And if the CPU is the faster one?
#
# </details>

# %% role="answer" id="utilization-limit"
def utilization_limit(cpu_per_image, gpu_per_image):
    """Busy share of the GPU [a number from 0 to 1] for a batch without end; both
    arguments are [time]."""
    ### BEGIN SOLUTION
    return min(1.0, (gpu_per_image / cpu_per_image).to("").magnitude)
    ### END SOLUTION

# %% role="test" id="utilization-limit-test" points=2
check(utilization_limit(Q_("0.4 ms"), Q_("0.1 ms")), 0.25,
      what="the limit at 0.4 and 0.1 ms an image", mistakes={
    "It does not fall to nothing: the GPU does work for every image.": 0.0,
    "That is the share it waits.": 0.75,
    "That is the slowdown.": 4.0,
    "The times per image overlap; they do not add.": 0.2,
})
check(utilization_limit(Q_("0.1 ms"), Q_("0.2 ms")), 1.0,
      what="the limit when the CPU is faster", mistakes={
    "The busy share of a step is at most 1.": 2.0,
    "The GPU is the slower one here, so it never waits.": 0.5,
})
### BEGIN HIDDEN TESTS
check(utilization_limit(Q_("0.25 ms"), Q_(41 / 1560, "ms")), 41 / 390, what="the limit behind eight workers")
check(utilization_limit(Q_("300 us"), Q_("0.3 ms")), 1.0, what="the limit of a tie")
### END HIDDEN TESTS

# %% [markdown]
# ## In your own words
#
# Why does a larger batch help the GPU and not the CPU wall? Two or three sentences. Nobody marks this; writing it is how you notice what you have not understood yet.

# %% [markdown]
# *Double-click here and write.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Preparing grows in proportion to the batch; using has a fixed start. Below the crossing the GPU binds, above it the CPU.
# - The batch size moves the binding constraint. "Use a larger batch" helps the GPU and does nothing for a CPU wall.
# - With eight workers the utilization tends to 10.5 %, not to zero.
# - Start a sweep early enough to see *both* regimes.
#
# **Next:** you cannot shrink the batch for ever. [Notebook 5](05_worker_fix.ipynb): add workers. How many, and what
# comes after?
