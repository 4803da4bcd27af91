# %% [markdown]
# # 5. The worker fix, and the wall behind it
#
# The workers bind, so add workers: in PyTorch `num_workers=16`, then 32. **How many are enough, and what stops you
# then?** In about MINUTES minutes you know.

# %% role="setup" id="setup-05"
from math import ceil

from starvelab import PUBLISHED, Hardware, Models, Pipeline, Q_, Storage
from starvelab.checks import Credit, check
from starvelab.show import over_workers, table
from starvelab.widgets import beside_lab, explore, finish, play, predict, progress
from starvelab.widgets import reveal

pipe = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256)


def show_enough():
    rows = [[b, w.workers, float(w.exact)] for b in (32, 64, 128, 256, 512, 1024)
            if (w := pipe.workers_needed(batch_size=b))]
    table(["batch", "workers", "before rounding up"], rows)


def show_walls():
    return over_workers({"drive not modeled": pipe.replace(batch_size=512),
                         "one NVMe drive": with_drive},
                        workers=[1, 8, 16, 24, 28, 32, 48, 56, 64])


def show_scaling():
    table(["workers", "straight line", "measured law", "of the straight line"], [
        [n, f"{n}x", f"{PUBLISHED.speedup(n, 16):.1f}x",
         f"{100 * PUBLISHED.speedup(n, 16) / n:.0f} %"] for n in (1, 4, 8, 16, 28, 32)])


def why_workers():
    """What the number means, and what plausible mistakes predict."""
    enough = pipe.workers_needed().workers
    cores = Hardware.Cloud.A100.host_cores
    return {"meaning": f"So {enough} workers, and a host has {cores} cores for a GPU.",
            "mistakes": {
        "That is enough at any batch: here the fixed cost of a step leaves more time.":
            pipe.workers_needed(batch_size="any").workers,
        "Perhaps you counted groups of eight workers: multiply by eight.": enough / 8}}

# %% [markdown]
# Images of 500 KB, batches of 256, and 250 MB/s for each worker. The GPU needs 11.74 ms for a batch.

# %%
predict("worker-fix", between=(1, None), whole=True,
        question="What is the smallest number of workers with which the GPU never "
                 "waits at a batch of 256?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# One worker would need half a second for such a batch. How many of them bring that down to the GPU's time?
#
# </details>

# %%
reveal("worker-fix", pipe.workers_needed().workers, then=show_enough, why=why_workers)

# %% [markdown]
# The GPU never waits when preparing a batch takes no longer than using it. With $b$ images of size $S$, $n$ workers of rate
# $w$, and the GPU's own step $g(b)$:
#
# $$\frac{b\,S}{n\,w} \le g(b) \qquad\Longleftrightarrow\qquad n \ge \frac{b\,S}{w\,g(b)}$$
#
# Larger batches need *more* workers, since the overhead does not grow with them.
#
# ## Exercise 5.1: workers needed (3 points, in parts)
#
# Write the formula as a function. A tie is enough. Round **up**, and only once, at the end: an earlier rounding can change the
# result.
#
# <details><summary>Hint</summary>
#
# The formula, with `ceil` (it is imported) at the very end; `.to("").magnitude` makes a ratio a plain number.
#
# </details>

# %% role="answer" id="workers-needed"
def how_many_workers(batch_size, sample_size, worker_rate, gpu_step):
    """The smallest number of workers [int] with which the GPU never waits.

    `sample_size` is [data], `worker_rate` [data/time] is that of one worker, `gpu_step`
    is [time].
    """
    ### BEGIN SOLUTION
    return ceil(round((batch_size * sample_size / (worker_rate * gpu_step)).to("").magnitude, 9))
    ### END SOLUTION

# %% role="test" id="workers-needed-test" points=3
credit = Credit(3)
easy = Q_("400 KB"), Q_("100 MB/s"), Q_("0.03 s")
credit.part(1.5, "an easy case and a tie", lambda: (check(how_many_workers(100, *easy),
    14, what="The number of workers", mistakes={
    "With that many the GPU still waits a little: round up.": 13,
    "That is enough for one image: is the whole batch above the fraction bar?": 1,
    "That is less than one worker: check what is above and what is below the fraction "
    "bar.": 0,
    "Bits and bytes are mixed up: a byte has eight bits.": 107,
    "Units do not cancel by themselves: write `.to(\"\").magnitude`.": 13334,
}), check(how_many_workers(100, Q_("0.4 MB"), easy[1], Q_("40 ms")), 10, mistakes={
    "In a tie nobody waits: one less is enough.": 11}, what="The number in a tie")))
### BEGIN HIDDEN TESTS
same = Q_("250 MB/s"), Q_(41 / 1560 * 256 + 5.015, "ms")
credit.part(1, "500 KB at a batch of 256", lambda: check(
    how_many_workers(256, Q_("500 KB"), *same), 44, what="The number of workers"))
credit.part(0.5, "5 MB at a batch of 256", lambda: check(
    how_many_workers(256, Q_("5 MB"), *same), 436, what="The number of workers", mistakes={
    "Somewhere a rounded step time was used: round once, at the end.": 437,
}))
### END HIDDEN TESTS
credit.total("So a faster GPU needs more workers for the same batch.")

# %% tags=["learning-alone"]
finish("workers-needed", how_many_workers, final=False)
### BEGIN ENDING
def a_batch(draw):
    batch, size, rate = draw.randint(2, 500), draw.randint(20, 5000), draw.randint(50, 400)
    step = batch * size / rate / (draw.randint(1, 400) - 0.3)
    return batch, Q_(size, "KB"), Q_(rate, "MB/s"), Q_(step, "ms")


ending = 1.5, "batches", a_batch
### END ENDING

# %% [markdown]
# ## The wall behind the wall
#
# A faster CPU reads more from the drive. Put one NVMe drive of 7 GB/s into the same pipeline, at a batch of 512:

# %%
with_drive = pipe.replace(batch_size=512, workers=32, storage=Hardware.Cloud.A100)
reveal("worker-fix", then=show_walls)

# %%
play(with_drive, workers=range(1, 65), find="workers", after="worker-fix")

# %% [markdown]
# 28 workers prepare exactly what the drive can read. From there on **no** number of workers helps: the GPU is busy 50.5 % of the
# time.

# %%
explore(with_drive.replace(batch_size=256, storage=Q_("7 GB/s"),
                           link=Hardware.Cloud.A100),
        after="worker-fix", workers=(1, 80), batch_size=[32, 64, 128, 256, 512],
        storage=(Q_("1 GB/s"), Q_("20 GB/s")))

# %% [markdown]
# ## Your model

# %%
beside_lab(batch_size=512, workers=32, storage=Storage.NVMe_Gen4, after="worker-fix")

# %% [markdown]
# ## Workers do not scale in a straight line
#
# The third wall is the host: a DGX A100 has 128 cores for eight GPUs, so 16 for each. By the round numbers 32 workers on 16 cores
# bring 8,000 img/s, and 64 workers bring no more. The same batch every time brings 21,800: here the cores bind. In notebook 3 that
# was *something else*.
#
# <details><summary>The source of the law</summary>
#
# On a host of 16 cores Lotus (Bachkaniwala et al., IISWC 2024) measured 145.6 img/s with one worker, 1,090 with 8 and 2,487 with 28.
# The law below goes through these three points.
#
# </details>

# %%
show_scaling()

# %% [markdown]
# ## Exercise 5.2: read a measured curve (3 points)
#
# You measured how many times faster the loader gets: `speedups[0]` with one worker, `speedups[1]` with two, and so on.
# Which is the smallest number of workers that reaches a target? If none does, say so with `None`.
#
# <details><summary>Hint</summary>
#
# Go through the list with `enumerate(speedups, start=1)` and return at the first value that is large enough.
#
# </details>

# %% role="answer" id="measured-workers"
def workers_for(target, speedups):
    """The smallest number of workers [int] whose speed-up is at least `target`, or
    None."""
    ### BEGIN SOLUTION
    for workers, speedup in enumerate(speedups, start=1):
        if speedup >= target:
            return workers
    return None
    ### END SOLUTION

# %% role="test" id="measured-workers-test" points=3
curve = [1.0, 1.9, 2.7, 3.3, 3.7, 3.9, 3.9]
check(workers_for(3.2, list(curve)), 4,
      what="the number of workers for 3.2 times the rate",
      mistakes={
    "Three reach 2.7 times only. Is that a position in the list, which counts from 0?":
        3,
    "Look for the first that reaches the target, not the last.": 7,
})
check(workers_for(2.8, list(curve)), 4,
      what="the number of workers for 2.8 times the rate",
      mistakes={
    "That is the nearest one, and it does not reach the target.": 3,
})
check(workers_for(1.9, list(curve)), 2,
      what="the number of workers for 1.9 times the rate",
      mistakes={
    "Reaching the target exactly is enough.": 3,
})
check(workers_for(3.0, [1.0, 3.1, 2.4, 2.8, 3.2]), 2,
      what="the number of workers on a curve that dips", mistakes={
    "A measured curve may dip: go through it from the first worker on.": 5,
})
check(workers_for(4.0, list(curve)), None,
      what="the number of workers for 4.0 times the rate",
      means="So a straight line from one worker promises too much.")
### BEGIN HIDDEN TESTS
check(workers_for(1.0, list(curve)), 1,
      what="the number of workers for the rate of one")
check(workers_for(9, []), None, what="the number of workers on an empty curve")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("measured-workers", workers_for, final=False)
### BEGIN ENDING
ending = 3, "curves", lambda draw: (
    draw.randint(1, 5), [draw.randint(1, 5) for _ in range(draw.randint(0, 6))])
### END ENDING

# %% [markdown]
# ## In your own words
#
# Your group wants to set `num_workers=64`. What do you ask? Not graded.

# %% [markdown]
# *Write here.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Behind each wall stands the next: drive, cores, link.
#
# **Next:** everything together, on your own. [Notebook 6](06_your_turn.ipynb).
