# %% [markdown]
# # 1. Write the loader
#
# Until now you computed with means: the slowest resource sets the pace of all, that is, it **binds**. **Can you write the loader
# from which this rule follows?** Here you write it and compare it with a real one. You need about MINUTES minutes.

# %% role="setup" id="setup-loader"
import random  # for the checks

import numpy as np  # noqa: F401 (for your answers)

from starvelab import Accelerator, Pipeline, Q_, Samples, Workers
from starvelab.checks import Credit, check
from starvelab.lesson.course.decisions import log_score, most_likely, record, total
from starvelab.measure.samples import given_samples
from starvelab.show import svg, table
from starvelab.tables import percent
from starvelab.widgets import Drawing, beside_real, explore, finish, play, predict
from starvelab.widgets import progress, reveal, save_loader


def show_bursts():
    return play(bursts, prepare_times=Q_(times, "ms"), workers=range(1, 9),
                find="workers")


def why_bursts():
    """What the share means, and what plausible mistakes predict."""
    deep = bursts.replace(workers=Workers(2, prefetch=16)).simulate(
        prepare_times=Q_(times, "ms"), warm_up=0)
    return {"meaning": f"With a prefetch of 16 it is {percent(deep.stall)}.",
            "mistakes": {"By the mean, yes; but the queue is shorter than a burst.":
                         Q_(100 * bursts.solve().stall, "%"),
                         "Perhaps you took one batch in eleven.": Q_(100 / 11, "%")}}

# %% [markdown]
# ## Predict
#
# Two workers prepare a batch in 20 ms each. Every eleventh batch holds a huge image and takes 180 ms. That is about 35 ms on average,
# or less than 18 ms with two workers, and a step takes 20 ms: **on average** they are fast enough. Each worker may have two finished
# batches waiting, and batches arrive in order.

# %%
predict("bursts", unit="%", question="How much of the time does the GPU wait "
                                     "here, in percent?")

# %% tags=["folded"]
times = [180 if number % 11 == 7 else 20 for number in range(440)]
bursts = Pipeline(dataset=Samples(cpu_time=Q_(34.545, "ms")), batch_size=1, workers=2,
                  hardware=Accelerator(rate="20 ms", in_flight=1))
found = bursts.simulate(prepare_times=Q_(times, "ms"), warm_up=0)

# %%
reveal("bursts", Q_(100 * found.stall, "%"), why=why_bursts,
       then=show_bursts)

# %% [markdown]
# By the mean the GPU binds, and yet it waits: the queue has no room for all that the workers finish
# ahead. A longer queue has room.
#
# Now the unlucky worker. PyTorch gives batch j to worker j mod W. Make every *tenth* batch huge: what is a longer queue worth then?

# %% tags=["folded"]
def draw(workers=2, huge_takes_ms=180, one_huge_in=11):
    times = Q_([huge_takes_ms if number % one_huge_in == 7 else 20
                for number in range(440)], "ms")
    queues = {n: bursts.replace(workers=Workers(workers, prefetch=n))
                       .simulate(prepare_times=times, warm_up=0).stall
              for n in (1, 2, 4, 8, 16)}
    rows = [[f"prefetch {n}", percent(stall)] for n, stall in queues.items()]
    helps = "" if queues[16] < 0.05 else "✓ No queue is long enough. "
    said = (f"{helps}The GPU waits {rows[0][1]} of the time with the shortest queue, "
            f"and {rows[-1][1]} with the longest.")
    picture = svg.share_bars({f"prefetch {n}": stall for n, stall in queues.items()},
                             title="The GPU's waiting")
    return Drawing(picture, said, ["queue", "the GPU waits"], rows)

# %%
explore(draw, after="bursts", workers=(1, 4), huge_takes_ms=(20, 400, 20),
        one_huge_in=[8, 9, 10, 11, 12])

# %% [markdown]
# Now, of two workers, the same one always gets them, and no queue is long enough.
#
# ## Exercise 1.1: write the loader (20 points, in parts)
#
# For each batch you need three times, in ms:
#
# 1. **ready**: worker `j % workers` prepares batch j. It begins when it is free and the batch has been ordered, and takes
#    `prepare[j]`. Before its first batch each worker needs `start_up`.
# 2. **taken**: the training loop takes the batches in order: batch j when it is ready and the step before is done.
# 3. **end**: the step on batch j takes `step` from then on.
#
# The queue is bounded. At time 0 `workers * prefetch` batches are ordered; from then on, one more whenever the loop takes one.
#
# PACKAGES
#
# <details><summary>Hint 1</summary>
#
# Keep three lists, `ready`, `taken` and `ends`. Which earlier entries does batch j have to wait for?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The worker of batch j prepared batch `j - workers` before. Which batch must be taken before batch
# j is ordered?
#
# </details>

# %% role="answer" id="step-ends"
def step_ends(prepare, step, workers, prefetch, start_up):
    """A list: when the step on each batch ends [ms]; `prepare` has the time of a worker
    for each batch [ms]."""
    ### BEGIN SOLUTION
    ready, taken, ends = [], [], []
    for j, work in enumerate(prepare):
        free = ready[j - workers] if j >= workers else start_up
        ordered = taken[j - workers * prefetch] if j >= workers * prefetch else 0
        ready.append(max(free, ordered) + work)
        taken.append(max(ready[j], ends[-1] if ends else 0))
        ends.append(taken[j] + step)
    return ends
    ### END SOLUTION

# %% role="test" id="step-ends-test" points=20
def ends_of(prepare, *others):
    ends = step_ends(prepare, *others)
    if hasattr(ends, "__iter__") and not hasattr(ends, "units"):
        ends = list(ends)
    if not isinstance(ends, list) or len(ends) != len(prepare):
        raise AssertionError(f"Return a list with one end for each batch, "
                             f"{len(prepare)} here, got {ends!r:.60}.")
    return ends


credit = Credit(20)
credit.part(3, "one worker", lambda: check(ends_of([30] * 6, 10, 1, 2, 0)[-1],
                                           190, what="the end of the last step",
                                           mistakes={
    "While the GPU computes, the worker prepares the next batch: the two do "
    "not add.": 240, "That is when the last batch is ready: its step comes after that.":
        180}))
credit.part(3, "start-up", lambda: check(ends_of([30] * 6, 10, 1, 2, 100)[-1],
                                         290, what="the end with a start-up", mistakes={
    "Before its first batch, each worker needs its start-up.": 190,
    "A worker starts up once, and not before each batch.": 790}))
credit.part(3, "several workers", lambda: (
    check(ends_of([30] * 9, 12, 3, 2, 0)[-1], 138, what="the end with three workers",
          mistakes={
        "One worker did it all: batch j belongs to worker j % workers.": 282,
        "The GPU computes one step at a time.": 102}),
    check(ends_of([100, 10] * 5, 20, 2, 4, 0)[-1], 540,
          what="the end with an unlucky worker", mistakes={
        "You gave a batch to the worker that is free first: batch j belongs to worker "
        "j % workers.": 360})))
credit.part(4, "a bounded queue", lambda: check(
    ends_of([5] * 12 + [90, 90] + [5] * 6, 10, 2, 2, 0)[-1], 255,
    what="the end after two huge batches", mistakes={
    "The workers ran ahead without a bound: batch j has to be ordered first.": 205,
    "The `prefetch` counts for each worker.": 275,
    "More batches are under way than may be: count those that are being prepared.": 235,
    "The next batch is ordered when one is taken, and not when its step ends.": 265}))
credit.part(3, "the order", lambda: check(
    ends_of([60, 10, 10, 10, 10, 10, 60, 10, 10, 10], 20, 2, 2, 30)[-1], 290,
    what="the end of batches in order",
    mistakes={"Batches are taken in the order in which they were ordered, also where a "
              "later one is ready first.": 250}))
### BEGIN HIDDEN TESTS
def compare(seed):
    draw = random.Random(seed)
    workers, prefetch, count = draw.randint(1, 5), draw.randint(1, 4), 40
    prepare = [round(draw.uniform(1, 20) * draw.choice([1, 1, 1, 9]), 3) for _ in range(count)]
    step, start_up = draw.randint(1, 30), draw.choice([0, 0, 55])
    loader = Pipeline(batch_size=1, workers=Workers(workers, prefetch=prefetch, start_up=Q_(start_up, "ms")),
                      hardware=Accelerator(rate=Q_(step, "ms"), in_flight=1))
    right = loader.simulate(prepare_times=Q_(prepare, "ms"), warm_up=0).trace().step_end
    ends = ends_of(prepare, step, workers, prefetch, start_up)
    check(len(ends), count, what="the number of ends")
    for j in range(count):
        check(ends[j], float(right[j]), what=f"the end of step {j} of a random pipeline")

credit.part(4, "random pipelines", lambda: [compare(seed) for seed in range(12)])
### END HIDDEN TESTS
credit.total("So where batches take unequal times, an order and a bounded queue can "
             "lose what a mean promises.")

# %% tags=["learning-alone"]
finish("step-ends", step_ends, final=False)
### BEGIN ENDING
ending = 4, "pipelines", lambda draw: (
    [round(draw.uniform(1, 25) * draw.choice((1, 1, 1, 8)), 3) for _ in range(40)],
    draw.randint(1, 35), draw.randint(1, 6), draw.randint(1, 5), draw.choice((0, 0, 70)))
### END ENDING

# %% [markdown]
# Here your loader meets the rule:

# %%
rows = []
for workers in (1, 2, 3, 4, 5):
    ends = step_ends([60] * 60, 17, workers, 2, 200)
    rows.append([workers, Q_((ends[-1] - ends[29]) / 30, "ms"),
                 Q_(max(60 / workers, 17), "ms")])
table(["workers", "your loader", "the slower of 60 ms / workers and 17 ms"], rows)

# %% [markdown]
# ## Your loader beside a real one
#
# Real workers unpack recordings and compute spectrograms on this machine. Your loader is told how long a worker takes when it is
# alone. How far off is it with two workers, and with four?

# %%
real = Pipeline(dataset=given_samples("recordings"), batch_size=16, hardware="4 ms")
runs = [real.replace(workers=n).measure(seconds="1 s", repeat=True, progress=False)
        for n in (1, 2, 4)]
beside_real(step_ends, runs, quiet="recordings")
save_loader(step_ends)

# %% [markdown]
# Your loader does not know what workers share: you repair that in notebook 2.

# %% [markdown]
# ## Three black boxes
#
# Three pipelines ran, each with four workers, and only these records are left, in ms. Nobody recorded how long a read or a copy
# itself took. Any resource may bind in any box.

# %% tags=["folded"]
columns = ["worker", "prepare_start", "prepared", "received", "copied", "step_start",
           "step_end"]


def first_batches(box, batches=10):
    found = record(box)
    table([f"box {box}", *columns], [[j, *(found[name][j] for name in columns)]
                                     for j in range(batches)])


for box in "ABC":
    first_batches(box)

# %% [markdown]
# ## Exercise 1.2: three black boxes (15 points, in parts)
#
# What binds? Give each of `"storage"`, `"CPU"`, `"link"` and `"accelerator"` a probability. The points follow the
# **log score**: 0.25 on the true resource earns nothing, and 0.9 earns all. In between it pays to give your true
# belief. `record("A")` has all 40 batches of box A as a dict of lists.
#
# <details><summary>Hint 1</summary>
#
# In these boxes the resource that binds is never idle. For which of the four can you see a gap?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Workers that wait for a shared drive look busy as well. At the start all four begin at once: what would each take if nothing
# were shared?
#
# </details>

# %% role="answer" id="verdicts"
def verdicts():
    """For each of "A", "B" and "C" a dict with a probability for "storage", "CPU",
    "link" and "accelerator"."""
    ### BEGIN SOLUTION
    # A: the first four batches take 62, 90, 117 and 137 ms: their reads queue. Then one is ready every 25 ms.
    # B: no worker waits between two batches, and now and then the GPU does; but it is close.
    # C: batches are copied every 26 ms, though they were received long before, and the steps have gaps.
    return {"A": {"storage": 0.91, "CPU": 0.05, "link": 0.02, "accelerator": 0.02},
            "B": {"storage": 0.02, "CPU": 0.9, "link": 0.02, "accelerator": 0.06},
            "C": {"storage": 0.01, "CPU": 0.02, "link": 0.95, "accelerator": 0.02}}
    ### END SOLUTION

# %% role="test" id="verdicts-test" points=15
credit = Credit(15)


def check_one(given, box):
    check(total(given), 1.0, what=f"the sum of the probabilities for box {box}",
          mistakes={
        "These are percentages. Write 0.7 for 70 %.": 100.0,
        "You were certain of everything: of the four resources one binds.": 4.0})
    log_score(given, "CPU")


def check_boxes(given):
    if not isinstance(given, dict) or set(given) != set("ABC"):
        raise AssertionError('Return a dict with the keys "A", "B" and "C". '
                             f"Got {given!r:.60}.")
    for box in "ABC":
        check_one(given[box], box)


credit.part(3, "probabilities for three boxes", lambda: check_boxes(verdicts()))
### BEGIN HIDDEN TESTS
credit.part(1, "what binds in box A", lambda: check(most_likely(verdicts()["A"]), "storage", mistakes={
    "At the start each worker takes longer than the one before: they queue for something that they share.": "CPU",
    "The steps have gaps, so the GPU waits.": "accelerator",
    "A batch is copied at the moment in which it is received.": "link"}))
credit.share(3, "how sure of box A", lambda: log_score(verdicts()["A"], "storage"))
credit.part(1, "what binds in box B", lambda: check(most_likely(verdicts()["B"]), "CPU", mistakes={
    "It is nearly always busy, and yet its steps have gaps, while no worker ever waits.": "accelerator",
    "At the start the four workers take about the same time: nothing that they share holds them up.": "storage"}))
credit.share(3, "how sure of box B", lambda: log_score(verdicts()["B"], "CPU"))
credit.part(1, "what binds in box C", lambda: check(most_likely(verdicts()["C"]), "link", mistakes={
    "Received batches lie waiting, so the workers are fast enough: look at what happens to them next.": "CPU",
    "The GPU has gaps although received batches lie waiting.": "accelerator"}))
credit.share(3, "how sure of box C", lambda: log_score(verdicts()["C"], "link"))
### END HIDDEN TESTS
credit.total()

# %% tags=["learning-alone"]
finish("verdicts", verdicts, final=False)
### BEGIN ENDING
def what_the_boxes_are(credit, answer, draw):
    from starvelab.lesson.course.decisions import inside, log_score, most_likely

    for box in "ABC":
        binds, _ = inside(box)
        credit.part(1, f"what binds in box {box}", lambda box=box, binds=binds: check(
            most_likely(answer()[box]), binds))
        credit.share(3, f"how sure of box {box}", lambda box=box, binds=binds: log_score(
            answer()[box], binds))
    return [inside(box)[1] for box in "ABC"]


ending = 12, what_the_boxes_are
### END ENDING

# %% [markdown]
# ## In your own words
#
# In which box were you least sure, and what would have decided it? Not graded.

# %% [markdown]
# *Write here.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - A loader that is fast enough on average starves the GPU if the queue is shorter than the bursts.
#
# **Next:** [Notebook 2](02_design_and_repair.ipynb): repair your loader, and a script; buy a host.
