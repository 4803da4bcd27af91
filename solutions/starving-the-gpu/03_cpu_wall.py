# %% [markdown]
# # 3. The CPU wall
#
# CPU workers decode, crop and normalize the next batch while the GPU trains on this one. **What happens
# when they are too slow?** In about MINUTES minutes you see this limit, the *CPU wall*, and find what starves a GPU.
#
# Eight workers, each preparing 250 MB of JPEGs a second, make 2 GB/s. Images of 500 KB, batches of 256. A batch
# takes the GPU itself 11.74 ms.

# %% role="setup" id="setup-03"
from starvelab import Hardware, Models, Pipeline, Q_, Storage
from starvelab.checks import check
from starvelab.show import table
from starvelab.tables import cell
from starvelab.widgets import beside_lab, explore, finish, play, predict, progress
from starvelab.widgets import reveal

pipe = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256,
                workers=8)


def show_wall():
    return play(pipe, workers=range(1, 65), find="workers", until=0.5)


def show_changes():
    """Two jobs, and their rates after one change each."""
    jobs = [pipe.replace(storage=one)
            for one in (Storage.NVMe_Gen4, Storage.SATA_SSD)]
    changes = {"as it is": {}, "twice the workers": {"workers": 16},
               "data in memory": {"storage": None},
               "the same batch again and again": {"storage": None, "workers": 10_000}}
    table(["one change at a time", "job A", "job B"], [
        [name, *(job.solve(change).throughput for job in jobs)]
        for name, change in changes.items()])


def why_wall():
    """What the share means, and what plausible mistakes predict."""
    times = wall.resource_times
    alone = pipe.solve(workers=1)
    return {"meaning": f"A batch is ready every {cell(times['CPU'])} on average, and "
                       f"the GPU is done with it after {cell(times['accelerator'])}.",
            "mistakes": {
        "Perhaps you took the share in which the GPU waits.": Q_(100 * wall.stall, "%"),
        "Perhaps you took one worker: eight prepare batches at the same time.":
            Q_(100 * alone.utilization, "%")}}

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

# %%
wall = pipe.solve()
reveal("cpu-wall", Q_(100 * wall.utilization, "%"), then=show_wall, why=why_wall)

# %% [markdown]
# In PyTorch each worker prepares a **whole** batch in 512 ms, so eight workers deliver one every 64 ms on average.
#
# ## The rule
#
# **Stages on one resource add. Stages on different resources overlap.**
#
# Decoding and cropping both run on the workers, so their times add. Preparing and training run on different hardware, and
# workers run ahead (prefetching): the longer of the two times is the step, 64 ms.

# %%
explore(pipe, after="cpu-wall", advice=False, workers=(1, 64),
        batch_size=[8, 16, 32, 64, 128, 256, 512])

# %% [markdown]
# ## Exercise 3.1: time to prepare a batch (2 points)
#
# All workers prepare batches at the same time. How long is it, on average, from one prepared batch to the next?
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
check(cpu_time(90, Q_("410 KB"), 4, Q_("100 MB/s")), Q_("92.25 ms"),
      what="cpu_time of 90 images", mistakes={
    "That is one worker alone: the others prepare batches meanwhile.": Q_("369 ms"),
    "More workers make it shorter, not longer.": Q_("1476 ms"),
    "That is one image: a batch has 90.": Q_("1.025 ms"),
    "Bits and bytes are mixed up: a byte has eight bits.": Q_("738 ms"),
    "On average a worker has 22.5 of these images, and `//` makes 22 of that.":
        Q_("90.2 ms"),
}, means="So twice the workers halve this time at best.")
### BEGIN HIDDEN TESTS
check(cpu_time(7, Q_("5 MB"), 3, Q_("250 MB/s")), Q_("46.6667 ms"), what="cpu_time of 7 images of 5 MB")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("cpu-time", cpu_time, final=False)
### BEGIN ENDING
ending = 2, "batches", lambda draw: (
    draw.randint(1, 400), Q_(draw.randint(20, 5000), "KB"), draw.randint(2, 24), Q_(draw.randint(50, 400), "MB/s"))
### END ENDING

# %% [markdown]
# ## Exercise 3.2: utilization (2 points)
#
# The busy share of a step, from 0 to 1, when workers and GPU overlap.
#
# <details><summary>Hint</summary>
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
check(utilization(Q_("0.07 s"), Q_("15 ms")), 15 / 70,
      what="the utilization at 0.07 s and 15 ms", mistakes={
    "You added the times, but the workers and the GPU overlap.": 15 / 85,
    "That is the slowdown.": 70 / 15,
    "That is the share the GPU waits.": 55 / 70,
    "That is a percentage; return a share from 0 to 1.": 1500 / 70,
    "Units do not cancel by themselves: write `.to(\"\").magnitude`.": 15000 / 70,
    "Convert both times to the same unit first.": 1.0,
})
check(utilization(Q_("5 ms"), Q_("10 ms")), 1.0,
      what="the utilization when the GPU is the slower one", mistakes={
    "A GPU cannot be busy for longer than the step: the slower of the two sets the "
    "step.": 2.0,
    "The GPU is the slower one here, so it never waits.": 0.5,
}, means="So only the ratio of the two times counts.")
### BEGIN HIDDEN TESTS
check(utilization(Q_("64 ms"), Q_("11.743205 ms")), 0.183488, what="the utilization at 64 and 11.74 ms")
check(utilization(Q_("20 ms"), Q_("0.02 s")), 1.0, what="the utilization of a tie")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("utilization", utilization, final=False)
### BEGIN ENDING
ending = 2, "pairs of times", lambda draw: (Q_(draw.randint(1, 90), "ms"), Q_(draw.randint(1, 90), "ms"))
### END ENDING

# %% [markdown]
# ## Your model

# %%
beside_lab(after="cpu-wall")

# %% [markdown]
# ## Who starves it?
#
# `nvidia-smi` does not tell you: it counts the time in which *some* kernel runs, however small, so a high value shows nothing. But
# you can change one thing at a time. If you train on the same batch again and again, nothing has to be read or prepared.

# %%
reveal("cpu-wall", then=show_changes)

# %% [markdown]
# The change that helps shows what binds: the workers starve job A, the drive starves job B.
#
# ## Exercise 3.3: your verdict (5 points)
#
# Measured rates are a few percent wrong, so only a gain of more than 5 % counts. Return
# `"workers"`, `"drive"`, `"GPU"` if the GPU never waits, or `"something else"` if it waits and
# neither change helps.
#
# <details><summary>Hint 1</summary>
#
# First: does the GPU wait at all? Compare the job as it is with the same batch again and again.
#
# </details>
# <details><summary>Hint 2</summary>
#
# If the GPU waits and neither change helps, two resources may be equally slow, or a third one
# binds.
#
# </details>

# %% role="answer" id="who-starves-it"
def who_starves_it(as_it_is, twice_the_workers, data_in_memory, same_batch):
    """What binds ["workers", "drive", "GPU" or "something else"]; the arguments are
    rates, plain numbers of img/s."""
    ### BEGIN SOLUTION
    gain = 1.05 * as_it_is
    if same_batch <= gain:
        return "GPU"
    if twice_the_workers > gain:
        return "workers"
    return "drive" if data_in_memory > gain else "something else"
    ### END SOLUTION

# %% role="test" id="who-starves-it-test" points=5
words = "workers", "drive", "GPU", "something else"
check(who_starves_it(1000, 1030, 1420, 2500), "drive", among=words,
      what="the verdict on the first job", mistakes={
    "Twice the workers bring 3 %: a measurement may be off by that much.": "workers",
    "With the same batch the GPU is far faster, so it does wait.": "GPU",
    "One change alone brings more than 5 %: that one binds.": "something else",
})
check(who_starves_it(2400, 2450, 2420, 2470), "GPU", among=words,
      what="the verdict on the second job", mistakes={
    "Even with the same batch this GPU is no faster: does it wait?":
        "something else",
    "A gain of 2 % may be noise.": "workers",
    "A gain of 1 % may be noise.": "drive",
})
check(who_starves_it(1000, 1020, 990, 2500), "something else", among=words,
      what="the verdict on the third job", mistakes={
    "No single change helps, but with the same batch the GPU is faster.": "GPU",
    "Twice the workers bring 2 %, which may be noise.": "workers",
    "With the data in memory this job is no faster.": "drive",
})
check(who_starves_it(900, 1500, 910, 1520), "workers", among=words,
      what="the verdict on the fourth job",
      means="So four rates tell workers, drive and GPU apart.")
### BEGIN HIDDEN TESTS
for rates, verdict in {(60, 62, 61, 64): "something else", (60, 63.5, 61, 300): "workers",
                       (8000, 8100, 9000, 9100): "drive", (500, 490, 505, 520): "GPU"}.items():
    check(who_starves_it(*rates), verdict, what=f"the verdict on {rates[0]} img/s")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("who-starves-it", who_starves_it, final=False)
### BEGIN ENDING
def four_rates(draw):
    rate, more = draw.randint(50, 9000), draw.randint(112, 180) / 100
    gains = draw.choice(((1, 1, 1), (more, 1, 2), (1, more, 2), (1, 1, 2)))
    return rate, *(rate * gain * draw.randint(96, 104) / 100 for gain in gains)


ending = 5, "jobs", four_rates
### END ENDING

# %% [markdown]
# ## Exercise 3.4: explain it (6 points, read by a person)
#
# A colleague sees the GPU at 18 % and the CPU at 100 %, and asks for a faster GPU. In three to five sentences: why would
# that not help, what would happen to the utilization, and what would you do instead?

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
# - Change one thing at a time: the change that helps shows what binds.
#
# **Next:** the wall is not always there. [Notebook 4](04_batch_sweep.ipynb): from which batch size on?
