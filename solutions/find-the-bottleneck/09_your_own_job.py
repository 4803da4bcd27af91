# %% [markdown]
# # 9. Your own job
#
# **Does a training script that somebody else wrote wait for its data, and what will workers bring?**
# In about MINUTES minutes you check what `starvelab-doctor` says, and watch a loop of your own.

# %% role="setup" id="setup-own-job"
import time

from starvelab import Pipeline, Q_, Samples, Workers
from starvelab.checks import Credit, check, one_of
from starvelab.errors import install_hint, requiring
from starvelab.measure import photo_transforms, photos
from starvelab.show import say, svg, table, trace_timeline
from starvelab.tables import percent
from starvelab.widgets import (Drawing, explore, finish, predict, progress, report,
                               reveal, scorecard)

with requiring("This notebook", install_hint("doctor")):
    from starvelab_doctor import advise, read_trace, watch
    from starvelab_doctor.example import example_trace, job_script, recorded_job


def why_waits():
    """What the share means, and what plausible mistakes predict."""
    waits = ran.finding.waits.host_wait
    most = 1 / (1 - waits)
    return {"meaning": f"Without waits it would be {most:.1f} times as fast.",
            "mistakes": {"Perhaps that is the share that trains.":
                         Q_(100 - 100 * waits, "%"),
                         "Perhaps you counted on workers: there are none.": Q_("0 %")}}


def show_verdict():
    say(ran.finding.summary)


def why_two():
    """What the factor means, and what plausible mistakes predict."""
    return {"meaning": "The loop still waits for "
                       f"{percent(recorded_job(2).finding.waits.host_wait)}.",
            "mistakes": {
        "Perhaps you left out that the loop prepares nothing any more.": 2,
        "That is all that it waited: two workers bring nearly that.":
            1 / (1 - ran.finding.waits.host_wait)}}


def why_cost():
    """What the cause means, and what plausible mistakes predict."""
    gpu, waits = recorded.gpu.use, recorded.waits
    return {"meaning": f"They take {percent(gpu.copying)} of the time.", "mistakes": {
        f"It waits for data for {percent(waits.host_wait)}.": "waiting for data",
        f"It waits for launches for {percent(gpu.idle_before_launch)}.": "launch gaps"}}

# %% [markdown]
# ## A script that somebody else wrote
#
# Photographs, PyTorch's `DataLoader`, and one fault. Read it:

# %%
script, ran = job_script("job.txt"), recorded_job(workers=0)
print(script[script.index("BATCH_SIZE,"):], ran.origin, sep="\n")

# %%
predict("job-waits", unit="%", question="For which share of its time does the loop of "
                                        "this job wait for data, in percent?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Who prepares a batch here, and what does the GPU do meanwhile?
#
# </details>
#
# `starvelab-doctor job.txt` says this in a terminal (here from a recorded run):

# %%
reveal("job-waits", Q_(100 * ran.finding.waits.host_wait, "%"), why=why_waits,
       then=show_verdict)

# %% [markdown]
# ## Exercise 9.1: the verdict (4 points, in parts)
#
# | waited | verdict |
# |---|---|
# | less than 5 % | not input-bound |
# | 5 % to less than 20 % | moderately input-bound |
# | 20 % or more | highly input-bound |
#
# For each batch of *one* pass, `waits` has the milliseconds that the loop waited, and `steps` those
# of the step. The first batch does not count, because workers start then. Return the share of the
# time that the loop waits, and the verdict as text.
#
# <details><summary>Hint</summary>
#
# All waits together (`sum(waits[1:])`), over all of the time that passed.
#
# </details>

# %% role="answer" id="own-verdict"
def verdict(waits, steps):
    """The share of the time that is waited [a plain number from 0 to 1], and the
    verdict [text]."""
    ### BEGIN SOLUTION
    waited, trained = sum(waits[1:]), sum(steps[1:])
    share = waited / (waited + trained)
    if share < 0.05:
        return share, "not input-bound"
    return share, "moderately input-bound" if share < 0.20 else "highly input-bound"
    ### END SOLUTION

# %% role="test" id="own-verdict-test" points=4
credit = Credit(4)
two, one_pass = "share, verdict", ([900, 10, 5, 25, 20], [100, 40, 45, 175, 80])
credit.part(2, "the share", lambda: check(one_of(verdict(*one_pass), 0, two), 0.15,
                                          what="the share that is waited", mistakes={
    "The first batch of a pass does not count: workers start then.": 960 / 1400,
    "You compared the waits with the steps; compare them with all of the time.":
        60 / 340,
    "That is the mean of each batch's share. A long batch has to count more than a "
    "short one.": 0.15625,
    "That is a percentage; return a share from 0 to 1.": 15.0,
    "That is the share in which the loop trains.": 0.85,
}))
credit.part(1, "the verdict", lambda: (
    check(one_of(verdict(*one_pass), 1, two), "moderately input-bound",
          what="the verdict", mistakes={
    "It begins where a fifth of the time is waited.": "highly input-bound",
    "More than a twentieth of the time is waited.": "not input-bound"}),
    check(verdict([9, 1, 1], [50, 40, 30])[1], "not input-bound",
          what="the verdict where 2 of 72 ms are waited"),
    check(verdict([9, 30, 30], [50, 40, 30])[1], "highly input-bound",
          what="the verdict where 60 of 130 ms are waited")))
### BEGIN HIDDEN TESTS
credit.part(1, "two other jobs", lambda: (
    check(verdict([300, 1, 1, 1], [50, 40, 30, 50])[1], "not input-bound", what="the verdict of a job that hardly waits"),
    check(verdict([0, 20, 20], [80, 80, 80])[1], "highly input-bound", what="the verdict where exactly a fifth is waited")))
### END HIDDEN TESTS
credit.total("So two columns of a log tell how long a loop waits for its data.")

# %% tags=["learning-alone"]
finish("own-verdict", verdict, final=False)
### BEGIN ENDING
def a_job(draw):
    waits, steps = ([draw.randint(1, most) for _ in range(6)] for most in (draw.choice((8, 60)), 200))
    # A third of them waits for exactly a fifth of the time, or a twentieth.
    border = draw.choice((0, 0, 0, 0, 4, 19))
    return waits, [steps[0], *(border * wait for wait in waits[1:])] if border else steps


ending = 1, "jobs", a_job
### END ENDING

# %% [markdown]
# ## What will workers bring?
#
# If the loop waits, its workers are busy all the time: with three of them on three cores, each takes three times the time between two
# batches. Without workers the loop prepares each batch while it waits.

# %%
predict("two-workers", unchanged=1,
        question="How many times as many images a second does the job train on with "
                 "two workers, on two cores?")

# %% tags=["folded"]
def show_workers():
    advice, rows = advise(ran.finding, cores=2), []
    options = {one.workers: one for one in advice.options}
    for count in (0, 1, 2, 3):
        seen, said = recorded_job(count).finding, options.get(count)
        rows.append([count, said and said.throughput, seen.waits.throughput,
                     percent(seen.waits.host_wait), seen.verdict])
    table(["workers", "advice says", "recorded", "loop waits", "verdict"], rows)


gained = recorded_job(2).finding.waits.throughput / ran.finding.waits.throughput


def draw(workers=0, prepare_ms=100, step_ms=40, cores=2):
    job = Pipeline(dataset=Samples(cpu_time=Q_(prepare_ms / 16, "ms")), batch_size=16,
                   workers=Workers(workers, cores=cores), hardware=Q_(step_ms, "ms"))
    trace = job.simulate(batches=100, replicas=1, warm_up=0).trace().after(20)
    said = (f"{trace.throughput.m_as('img/s'):,.0f} img/s; the GPU waits "
            f"{percent(trace.stall)} of the time.")
    rows = [["throughput", trace.throughput],
            ["GPU waits", percent(trace.stall)]]
    return Drawing(svg.loader_lanes(trace), said, ["what", "value"], rows)

# %%
reveal("two-workers", gained.m_as(""), then=show_workers, why=why_two)

# %% [markdown]
# A third worker finds no core that is free. How would the job behave elsewhere?

# %%
explore(draw, after="two-workers", workers=(0, 8), prepare_ms=[25, 50, 100, 200],
        step_ms=[10, 20, 40, 80], cores=[1, 2, 4, 8])

# %% [markdown]
# ## Exercise 9.2: what a number of workers brings (4 points, in parts)
#
# With `now` workers the loop waits `wait` for a batch and then trains for `step` (both in
# milliseconds, and positive). By which factor will the batches a second grow with `then` workers on
# `cores` cores? Leave out the cost of handing over.
#
# <details><summary>Hint</summary>
#
# How long does a core work on a batch: `min(now, cores) * (wait + step)`, or `wait` without
# workers? At most `cores` workers run at a time. Without workers preparing and training add up;
# with workers the longer one counts.
#
# </details>

# %% role="answer" id="workers-bring"
def workers_bring(wait, step, now, then, cores):
    """How many times as many batches a second [a plain number]; `wait` and `step` are
    milliseconds."""
    ### BEGIN SOLUTION
    prepare = min(now, cores) * (wait + step) if now else wait
    later = max(step, prepare / min(then, cores)) if then else prepare + step
    return (wait + step) / later
    ### END SOLUTION

# %% role="test" id="workers-bring-test" points=4
credit = Credit(4)
credit.part(1, "from none to two", lambda: check(
    workers_bring(80, 30, 0, 2, 4), 2.75,
    what="the gain from none to two workers", mistakes={
    "With workers the loop trains while they prepare: do not add the step.": 110 / 70,
    "The job as it is takes its step as well: compare whole batches.": 2.0,
    "Upside down: how many times *more* does it do?": 40 / 110,
    "That is what comes on top. How many times as many are there altogether?": 1.75,
}))
credit.part(1, "a step that binds", lambda: check(
    workers_bring(80, 30, 0, 4, 8), 110 / 30,
    what="the gain from none to four workers", mistakes={
    "No batch takes less than its step, however many workers there are.": 110 / 20}))
credit.part(0.5, "more workers than cores", lambda: check(
    workers_bring(80, 30, 0, 8, 2), 2.75,
    what="the gain from none to eight workers on two cores", mistakes={
    "Workers past the cores bring nothing.": 110 / 30}))
credit.part(0.5, "fewer workers than before", lambda: (
    check(workers_bring(70, 30, 4, 1, 3), 1 / 3,
          what="the gain from four workers to one", mistakes={
    "On three cores only three of the four workers ran at a time before, too.": 0.25}),
    check(workers_bring(20, 30, 1, 0, 4), 50 / 80, what="the gain from one to none")))
credit.part(0.5, "from two to three", lambda: check(
    workers_bring(70, 30, 2, 3, 8), 1.5, what="the gain from two to three workers",
    mistakes={
    "With workers the wait is not what a batch takes: each of them is busy for all of "
    "the time.": 100 / 30,
    "A worker is busy also while the loop trains, and not only while it waits.":
        100 / (140 / 3)}))
### BEGIN HIDDEN TESTS
credit.part(0.5, "other jobs, and no worker", lambda: (
    check(workers_bring(10, 40, 2, 0, 4), 50 / 140, what="the gain of a job that gives up both workers"),
    check(workers_bring(60, 20, 0, 2, 8), 8 / 3, what="the gain where a step takes 20 ms")))
### END HIDDEN TESTS
credit.total("So workers can shorten the wait, and never the step.")

# %% tags=["learning-alone"]
finish("workers-bring", workers_bring, final=False)
### BEGIN ENDING
ending = 0.5, "jobs", lambda draw: (
    draw.randint(5, 90), draw.randint(5, 90), draw.randint(0, 3), draw.randint(0, 9), draw.randint(1, 8))
### END ENDING

# %% [markdown]
# ## Little computing, and not starved
#
# Another job has enough workers, and yet its GPU computes for little more than half of the time.

# %%
predict("gpu-cost", choices=["waiting for data", "copies from pageable memory",
                             "launch gaps"],
        question="What costs this GPU most of its time: waiting for data, copies from "
                 "pageable memory, or launch gaps, in which the CPU has not launched "
                 "the next kernel yet?")

# %% tags=["folded"]
recorded = read_trace(example_trace("trace.json"))
causes = "waiting for data", "copies from pageable memory", "launch gaps"
truth = next(one for one in causes if recorded.gpu.use.cause.split()[0] in one)


def show_trace():
    say(recorded.summary)
    return trace_timeline(recorded)


def draw_trace(wait_ms=2, copy_ms=22, gap_ms=1, pinned=False):
    found = read_trace(example_trace(
        "try.json", wait=Q_(wait_ms, "ms"), copy_time=Q_(copy_ms, "ms"),
        launch_gap=Q_(gap_ms, "ms"), pinned=pinned))
    use = found.gpu.use
    shares = {"computes": use.busy - use.copying, "only copies": use.copying,
              "idle, no data": use.idle_in_waits,
              "idle, no launch": use.idle_before_launch}
    rows = [[name, percent(share)] for name, share in shares.items()]
    said = f"{found.waits.batch_rate.m_as('1/s'):.1f} steps a second; {use.verdict}."
    return Drawing(svg.share_bars(shares, title=said), said, ["GPU", "share"], rows)

# %%
reveal("gpu-cost", truth, then=show_trace, why=why_cost)

# %% [markdown]
# More workers bring nothing here. Choose `pinned`: on a stream of its own the copy runs beside the kernels.
# Then change the times: when is the GPU starved?

# %%
explore(draw_trace, after="gpu-cost", wait_ms=[0, 2, 10, 40], copy_ms=[0, 10, 22],
        gap_ms=[0, 1, 3, 5], pinned=False)

# %% [markdown]
# ## Exercise 9.3: idle in a wait, or otherwise (4 points, in parts)
#
# `work` holds the start and the end of each kernel and copy of a GPU, and `waits` those of each wait of the
# loop, in milliseconds from 0 to `end`. A copy may run beside a kernel. Return two shares of the whole time:
# the GPU is idle; it is idle *while the loop waits*.
#
# <details><summary>Hint</summary>
#
# Go through `sorted(work)` and remember until when the GPU is busy; think of the end, too. Two spans from `a` to
# `b` and from `c` to `d` have `max(0, min(b, d) - max(a, c))` in common.
#
# </details>

# %% role="answer" id="idle-in-waits"
def idle_shares(work, waits, end):
    """Two shares of the time from 0 to `end` [plain numbers from 0 to 1]: the GPU is
    idle; it is idle while the loop waits."""
    ### BEGIN SOLUTION
    idle, free = [], 0
    for start, stop in sorted(work):
        if start > free:
            idle.append((free, start))
        free = max(free, stop)
    idle.append((free, end))
    in_waits = sum(max(0, min(b, d) - max(a, c)) for a, b in idle for c, d in waits)
    return sum(b - a for a, b in idle) / end, in_waits / end
    ### END SOLUTION

# %% role="test" id="idle-in-waits-test" points=4
credit = Credit(4)
two = "idle, idle_in_waits"
recording = ([(60, 80), (10, 50), (25, 30), (85, 93)], [(0, 10), (20, 24), (50, 65)],
             100)
credit.part(1, "the idle share", lambda: check(
    one_of(idle_shares(*recording), 0, two), 0.32, what="the idle share", mistakes={
    "A copy beside a kernel is not counted twice: the GPU is busy once.": 0.27,
    "That is the busy share.": 0.68,
    "That is a percentage; return a share from 0 to 1.": 32.0,
    "At the end it is idle as well.": 0.25,
    "Before its first piece of work it is idle as well.": 0.22,
    "A piece of work may end while one that began before it still runs.": 0.52,
    "Work may come in any order: go through `sorted(work)`.": 0.72,
}))
credit.part(2, "idle while the loop waits", lambda: check(
    one_of(idle_shares(*recording), 1, two), 0.2,
    what="the share that is idle while the loop waits", mistakes={
    "That is how long the loop waits; the GPU may be busy meanwhile.": 0.29,
    "That is all of its idle time, also where the loop does not wait.": 0.32,
    "Both are shares of the whole time, not of the idle time.": 0.625,
    "That is the part of the waits in which the GPU is busy.": 0.09,
    "Each idle time may meet any of the waits: go through all pairs.": 0.1,
}))
### BEGIN HIDDEN TESTS
credit.part(1, "a busy GPU, and work in no order", lambda: (
    check(idle_shares([(0, 50), (50, 100)], [(20, 60)], 100)[1], 0.0, what="the idle share of a GPU that is always busy"),
    check(idle_shares([(60, 90), (0, 40), (10, 20)], [(30, 70)], 100)[0], 0.3, what="the idle share of work in no order"),
    check(idle_shares([(60, 90), (0, 40), (10, 20)], [(30, 70)], 100)[1], 0.2, what="the share that is idle in one long wait"),
    check(idle_shares([(0, 50)], [(50, 100)], 200)[0], 0.75, what="the idle share of 200 ms")))
### END HIDDEN TESTS
credit.total("So not every idle GPU waits for data.")

# %% tags=["learning-alone"]
finish("idle-in-waits", idle_shares, final=False)
### BEGIN ENDING
def a_recording(draw):
    work = [(start, start + draw.randint(5, 40)) for start in draw.sample(range(100), 6)]
    ends = sorted(draw.sample(range(140), 8))
    return work, list(zip(ends[::2], ends[1::2])), 140


ending = 1, "recordings", a_recording
### END ENDING

# %% [markdown]
# ## Now your own job
#
# With PyTorch, run `starvelab-doctor YOUR_SCRIPT`. Without it, put `watch` around your loop in place of
# `my_loader` and `my_step`. [What the
# verdicts mean](https://github.com/starvelab/starvelab/blob/main/docs/your-own-job.md).

# %%
images, steps = photos("100 KB"), photo_transforms()


def my_loader():
    for first in range(0, 64, 4):
        batch = [images.read(first + n) for n in range(4)]
        for one in steps:
            batch = [one.function(value) for value in batch]
        yield batch

# %%
def my_step(batch):
    time.sleep(0.02)


watched = watch(my_loader(), batch_size=4, workers=0, progress=False)
for batch in watched:
    my_step(batch)
say(advise(watched.result).summary)

# %% [markdown]
# ## In your own words
#
# What does your job wait for, and what will you change first? Not graded.

# %% [markdown]
# *Write here.*

# %% [markdown]
# Your predictions, and your lab report:

# %%
scorecard()

# %%
report()

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Predict a repair before you make it, and measure after it.
#
# **What comes next** is your own pipeline. If you want it harder, [write the loader
# yourself](../master-the-loader/01_write_the_loader.ipynb).
