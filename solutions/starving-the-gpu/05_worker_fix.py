# %% [markdown]
# # 5. The worker fix, and the wall behind it
#
# The CPU binds, so give it more hands: `num_workers=16`, then 32. Everybody does this first. **How many workers are enough,
# and what stops you then?**
#
# In about MINUTES minutes you will
#
# - predict, then derive how many workers remove the stall,
# - meet the walls behind the CPU wall: the drive, and the cores of the host,
# - count how many GPUs one host feeds,
# - see that real workers do not scale in a straight line,
# - see which assumption moves which answer.

# %% role="setup" id="setup-05"
from math import ceil, floor

from starvelab import PUBLISHED, TUTORIAL, Hardware, Models, Pipeline, Q_, Workers
from starvelab.checks import Credit, check
from starvelab.show import over_workers, say, table
from starvelab.widgets import explore, play, predict, progress, reveal

pipe = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256)

# %% [markdown]
# ## Predict
#
# Images of 500 KB, batches of 256, and 250 MB/s for each worker. The GPU needs 11.74 ms for a batch.

# %%
predict("worker-fix", between=(1, None), whole=True,
        question="How many workers does it take until the GPU never waits "
                 "at a batch of 256?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# One worker would need half a second for such a batch. How many of them bring that down to the GPU's time?
#
# </details>
#
# ## Double them
#
# [The walkthrough](https://github.com/harvard-edge/cs249r_book/blob/ea6dae3053823dfeee97d93d0f370501b514e001/mlsysim/docs/tutorials/04_starving_the_gpu.qmd)
# doubles the workers twice, at a batch of 512, and stops there: 14.4, 28.9, 57.7 %. It never says how many
# would be *enough*, although "predict how many workers remove the stall" is among its goals.

# %%
enough = pipe.workers_needed()


def show_doubling():
    return pipe.sweep(batch_size=[512], workers=[8, 16, 32])


reveal("worker-fix", enough.workers, then=show_doubling)

# %% [markdown]
# ## Derive the number
#
# The GPU never waits when preparing a batch takes no longer than using it. With $b$ images of size $S$, $n$ workers of rate
# $w$ each, and the GPU's own step $g(b)$:
#
# $$\frac{b\,S}{n\,w} \le g(b) \qquad\Longleftrightarrow\qquad n \ge \frac{b\,S}{w\,g(b)}$$
#
# Workers come in whole numbers, so round **up**. And round only once, at the end: with a step time that was
# rounded beforehand, a count that is close to a whole number comes out wrong.

# %%
def show_enough():
    rows = [[b, w.workers, float(w.exact)] for b in (32, 64, 128, 256, 512, 1024)
            if (w := pipe.workers_needed(batch_size=b))]
    table(["batch", "workers", "before rounding up"], rows)
    print("At any batch size:", pipe.workers_needed(batch_size="any").workers)


reveal("worker-fix", then=show_enough)

# %% [markdown]
# Larger batches need *more* workers, since the overhead that gave the CPU time is spread thinner. Towards very
# large batches the number settles.
#
# ## Exercise 5.1: workers needed (3 points, in parts)
#
# Write the formula above as a function. A tie is enough.
#
# <details><summary>Hint 1</summary>
#
# How many seconds of one worker's time does a batch take? How many workers bring that down to one GPU step?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The formula above, with `ceil` at the very end; `.to("").magnitude` makes a plain number of a ratio.
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
easy = Q_("400 KB"), Q_("100 MB/s"), Q_("30 ms")
credit.part(1.5, "an easy case", lambda: check(how_many_workers(100, *easy), 14,
    what="The number of workers", mistakes={
    "With that many the GPU still waits a little: round up.": 13,
    "That is enough for one image: is the whole batch above the fraction bar?": 1,
    "That is less than one worker: check what is above and what is below the fraction "
    "bar.": 0,
    "Bits and bytes are mixed up: a byte has eight bits.": 107,
}))
### BEGIN HIDDEN TESTS
same = Q_("250 MB/s"), Q_(41 / 1560 * 256 + 5.015, "ms")
credit.part(1, "500 KB at a batch of 256", lambda: check(
    how_many_workers(256, Q_("500 KB"), *same), 44, what="The number of workers"))
credit.part(0.5, "5 MB at a batch of 256", lambda: check(
    how_many_workers(256, Q_("5 MB"), *same), 436, what="The number of workers", mistakes={
    "Somewhere a rounded step time was used: round once, at the end.": 437,
}))
### END HIDDEN TESTS
credit.total()

# %% [markdown]
# ## The wall behind the wall
#
# The walkthrough checks the drive once, at the start, and forgets it. But a faster CPU asks more of the drive. With
# one 7 GB/s NVMe drive in the model, the same sweep looks different:

# %%
with_drive = pipe.replace(batch_size=512, storage=Hardware.Cloud.A100)
reveal("worker-fix", then=lambda: over_workers(
    {"drive not modeled": pipe.replace(batch_size=512), "one NVMe drive": with_drive},
    workers=[1, 8, 16, 24, 28, 32, 48, 56, 64]))

# %% [markdown]
# 28 workers prepare exactly what the drive can read. From there on **no** number of workers helps: at a batch of 512 the GPU
# is busy 50.5 % of the time, and the walkthrough's 57.7 % cannot happen on that host. Fixing one constraint
# uncovers the next; the question is always "what binds *now*?". The answer changes with the number of workers:

# %%
reveal("worker-fix", then=lambda: play(with_drive.replace(workers=32),
                                       workers=range(1, 65)))

# %%
say("With 16 workers and one NVMe drive, what each change alone would bring:")
with_drive.replace(workers=16).sensitivity()

# %%
explore(with_drive.replace(batch_size=256, storage=Q_("7 GB/s"),
                           link=Hardware.Cloud.A100), after="worker-fix",
                           workers=(1, 80),
        batch_size=[32, 64, 128, 256, 512], storage=(Q_("1 GB/s"), Q_("20 GB/s")))

# %% [markdown]
# ## Exercise 5.2: three resources (2 points)
#
# Utilization when the drive is modeled as well. Reading, preparing and computing run on three different resources.
#
# <details><summary>Hint</summary>
#
# It is exercise 3.2 with one more resource. Nothing adds, since no two stages share a resource.
#
# </details>

# %% role="answer" id="next-wall"
def busy_share(read_time, cpu_time, gpu_time):
    """Busy share of the GPU [a number from 0 to 1]; the arguments are the [time] each
    resource needs for a batch."""
    ### BEGIN SOLUTION
    return (gpu_time / max(read_time, cpu_time, gpu_time)).to("").magnitude
    ### END SOLUTION

# %% role="test" id="next-wall-test" points=2
check(busy_share(Q_("50 ms"), Q_("25 ms"), Q_("20 ms")), 0.4,
      what="the busy share at 50, 25 and 20 ms", mistakes={
    "The drive was forgotten: it is the slowest here.": 0.8,
    "Reading and preparing run on different resources: they overlap.": 20 / 75,
    "Nothing adds here: three resources, three times, the slowest counts.": 20 / 95,
    "The slowest of them sets the step, not the fastest.": 1.0,
    "That is the slowdown.": 2.5,
})
check(busy_share(Q_("5 ms"), Q_("10 ms"), Q_("20 ms")), 1.0,
      what="the busy share when the GPU is the slowest", mistakes={
    "A GPU cannot be busy for longer than the step: the slowest of all three sets it.":
        2.0,
})
check(busy_share(Q_("5 ms"), Q_("25 ms"), Q_("20 ms")), 0.8,
      what="the busy share when the CPU is the slowest", mistakes={
    "The CPU was forgotten: it is the slowest here.": 1.0,
})
### BEGIN HIDDEN TESTS
gpu = Q_(41 / 1560 * 512 + 5.015, "ms")
check(busy_share(Q_(512 * 500 / 7e6, "s"), Q_("32 ms"), gpu), 0.50508, what="the busy share with 32 workers", mistakes={
    "Convert all three times to the same unit first.": 0.577232,
})
check(busy_share(Q_("0.01 s"), Q_("40 ms"), Q_("10 ms")), 0.25, what="the busy share behind a slow CPU")
### END HIDDEN TESTS

# %% [markdown]
# ## Workers do not scale in a straight line
#
# The third wall is the host itself. A DGX A100 has 128 cores for eight GPUs, so 16 for each. Past the physical cores, more
# workers share the same hands, and each of them adds less. Even before that each adds a little less. They share memory, caches, and the one process
# that receives every batch; which of these costs how much, nobody has published.
#
# Lotus measured 145.6 img/s with one worker, 1,090 with 8 and 2,487 with 28 (a straight line would be 1,165 and 4,077).
# The measured host has 16 cores. Our law for worker processes has two constants, fitted through these three points: work takes
# 15.7 % longer when all cores are busy, and the second hardware thread of a busy core adds 36 % of a core.

# %%
table(["workers", "straight line", "measured law", "of the straight line"], [
    [n, f"{n}x", f"{PUBLISHED.speedup(n, 16):.1f}x",
     f"{100 * PUBLISHED.speedup(n, 16) / n:.0f} %"] for n in (1, 4, 8, 16, 28, 32)
])
print(f"On 16 cores they never prepare more than {PUBLISHED.speedup(1000, 16):.1f} "
      f"times what one worker does.")

# %% [markdown]
# ## Exercise 5.3: read a measured curve (3 points)
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
    "That is a position in the list, which counts from 0; one worker stands at "
    "position 0.": 3,
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
check(workers_for(4.0, list(curve)), None,
      what="the number of workers for 4.0 times the rate")
### BEGIN HIDDEN TESTS
check(workers_for(1.0, list(curve)), 1,
      what="the number of workers for the rate of one")
check(workers_for(2.0, [1.0, 2.2, 1.4, 1.8, 2.1]), 2, what="the number of workers on a curve that dips")
check(workers_for(9, []), None, what="the number of workers on an empty curve")
### END HIDDEN TESTS

# %% [markdown]
# ## One host, several GPUs
#
# One GPU does not have the cores of a host to itself: all GPUs of the host share them. How many A100 that train
# ResNet-50 do they keep busy for 90 % of each step, with two workers for each core?

# %%
host = pipe.replace(assumptions=PUBLISHED)
table(["cores", "GPUs that are 90 % busy"], [
    [cores, host.replace(workers=Workers(2 * cores, cores=cores)).accelerators_fed(0.9)]
    for cores in (16, 32, 64, 128)
])

# %% [markdown]
# A DGX A100 has 128 cores for eight such GPUs, which is just about what these need. A GPU that is faster, or a model that is
# smaller, asks for more cores. Behind the cores stands the drive: it, too, serves all GPUs of the host.
#
# ## Exercise 5.4: how many GPUs does a host feed? (5 points, in parts)
#
# Every sample is read from the drive and prepared by a core. How many GPUs does the host keep at full speed, and which of the
# two is it that keeps it from feeding more: `"cores"` or `"drive"`? Return both, the number first: `return 3, "cores"`.
#
# <details><summary>Hint 1</summary>
#
# How many samples a second do all cores prepare together? How many of them can the host deliver, if the drive reads fewer?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Reading and preparing overlap, so the slower of them decides. How often does one GPU's rate fit into that? Round down.
#
# </details>

# %% role="setup" id="setup-05-host"
rates = Q_("120 img/s"), Q_("5600 img/s"), Q_("1000 img/s")


def one_of_two(answer, which):
    if not (isinstance(answer, tuple | list) and len(answer) == 2):
        raise AssertionError(f'Return two values, the number first: return 3, "cores". '
                             f'Got {answer!r:.60}.')
    return answer[which]

# %% role="answer" id="gpus-per-host"
def gpus_per_host(cores, core_rate, drive_rate, gpu_rate):
    """The largest number of GPUs [int] at full speed, and what binds ["cores" or
    "drive"].

    The rates are [sample/time]: what one core prepares while all are busy, what the
    drive reads, what one GPU takes.
    """
    ### BEGIN SOLUTION
    prepared = cores * core_rate
    fed = floor(round((min(prepared, drive_rate) / gpu_rate).to("").magnitude, 9))
    return fed, "cores" if prepared < drive_rate else "drive"
    ### END SOLUTION

# %% role="test" id="gpus-per-host-test" points=5
credit = Credit(5)
credit.part(2, "32 cores", lambda: check(one_of_two(gpus_per_host(32, *rates), 0), 3,
                                         what="The number of GPUs", mistakes={
    "The last of these would have to wait: round down.": 4,
    "That is what the drive alone would feed: each sample also passes a core.": 5,
    "Cores and drive do not add: each sample needs both.": 9,
    "That is what one core feeds, or the fraction is upside down.": 0,
    "These are samples a second: how many of them does one GPU take?": 3840,
}))
credit.part(1, "what binds at 32 cores", lambda: check(
    one_of_two(gpus_per_host(32, *rates), 1), "cores", what="What binds",
    among=("cores", "drive"), mistakes={
        "The drive would feed more GPUs than these cores: which of the two is slower?":
            "drive"}))
credit.part(1, "64 cores", lambda: (
    check(one_of_two(gpus_per_host(64, *rates), 0), 5,
          what="The number of GPUs behind 64 cores", mistakes={
        "The drive reads for all GPUs, too, and it is slower here.": 7}),
    check(one_of_two(gpus_per_host(64, *rates), 1), "drive",
          what="What binds behind 64 cores")))
### BEGIN HIDDEN TESTS
credit.part(1, "other units", lambda: (
    check(one_of_two(gpus_per_host(16, Q_("9000 img/min"), Q_("9e6 img/h"), Q_("0.5 img/ms")), 0), 4,
          what="The number of GPUs in other units"),
    check(one_of_two(gpus_per_host(16, Q_("9000 img/min"), Q_("2e6 img/h"), Q_("0.5 img/ms")), 1), "drive", what="What binds in other units")))
### END HIDDEN TESTS
credit.total()

# %% [markdown]
# ## Which assumption moves which answer?
#
# If you ran the walkthrough on another version of its package you got 7.24 ms and 71 workers, or 13.97 ms and 37, where this
# lab says 11.74 and 44. Nobody told you why. It is not a matter of taste: the first has one constant changed, the second
# one more.

# %%
quick = TUTORIAL.replace(overhead_per_layer="0.01 ms")
rows = [
    [label, p.solve().resource_times["accelerator"], p.workers_needed().workers]
    for label, p in {
        "the walkthrough's": pipe,
        "0.01 ms of overhead a layer": pipe.replace(assumptions=quick),
        "... and a MAC counted as two FLOPs":
            pipe.replace(assumptions=quick.replace(flop_per_mac=2)),
        "a training step": pipe.replace(phase="training"),
        "published measurements": pipe.replace(assumptions=PUBLISHED),
    }.items()
]

# %%
reveal("worker-fix", then=lambda: table(["assumptions", "GPU step", "workers at 256"],
                                        rows))

# %% [markdown]
# ## In your own words
#
# Your group wants to set `num_workers=64`. What do you ask before agreeing? Two or three sentences. Nobody marks this; writing it is how you notice what you have not understood yet.

# %% [markdown]
# *Double-click here and write.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Workers needed: $n \ge b S / (w\, g(b))$. Round up, once, at the end.
# - Behind each wall stands the next: drive, cores, link. Ask again what binds after every fix.
# - Measured workers scale less than linearly: from 16 to 28, three quarters more workers bring 22 % more.
# - The cores and the drive of a host serve all its GPUs: count them for the whole host.
# - Always give an answer together with its assumptions.
#
# **Next:** everything together, on your own. [Notebook 6](06_your_turn.ipynb).
