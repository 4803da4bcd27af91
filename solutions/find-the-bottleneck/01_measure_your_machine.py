# %% [markdown]
# # 1. Measure your machine
#
# Real JPEGs, real workers, a real stopwatch; only the GPU is simulated. **How many images a second can this
# machine prepare, and what does a worker bring?** In about MINUTES minutes you measure decoding, and workers as
# threads and as processes. Close other programs that keep this machine busy.

# %% role="setup" id="setup-11"
from importlib.util import find_spec
from io import BytesIO

import numpy as np
from PIL import Image

from starvelab import Pipeline, Q_, Samples, Workers
from starvelab.checks import check
from starvelab.measure import Transform, photos, usable_cores
from starvelab.measure import comparison_row, disturbance
from starvelab.measure.transforms import as_jpeg, decode_times, jpeg_size
from starvelab.show import loader_timeline, svg, table
from starvelab.widgets import Drawing, explore, finish, predict, progress, reveal


def why_decoding():
    """What the factor means, and what plausible mistakes predict."""
    more = len(files["full, fine"]) / len(files["full, coarse"])
    return {"meaning": f"It has {more:.1f} times the bytes, and as many pixels.",
            "mistakes": {
        "Perhaps you counted bytes only: each pixel is work, too.": more,
        "Perhaps you counted pixels only: each byte is work, too.": 1}}


def why_past():
    """What the rate means, and what plausible mistakes predict."""
    more = 100 * past - 100
    return {"meaning": f"{limit} workers more changed the rate by {more:+.0f} %.",
            "mistakes": {
        "Perhaps you gave each worker a core of its own; they share.": Q_("200 %"),
        "Perhaps you left out that they wait, and have second threads.": Q_("100 %")}}


def why_gil():
    """What the factor means, and what plausible mistakes predict."""
    both = (two_python["processes"].throughput / none_python.throughput).m_as("")
    return {"meaning": f"Two processes reach {both:.2f} times the rate.", "mistakes": {
        "Perhaps you let both run at once: only one at a time runs Python code.": 2}}

# %% [markdown]
# ## What one core decodes
#
# One photo, as three files: in full, saved coarsely and saved finely, and at half the width and height.

# %% tags=["folded"]
photo = Image.open(BytesIO(photos("500 KB").read(0))).convert("RGB")
half = photo.resize((photo.width // 2, photo.height // 2))
files = {"full, coarse": as_jpeg(photo, 30), "full, fine": as_jpeg(photo, 98),
         "half, fine": as_jpeg(half, 98)}
pixels = {name: jpeg_size(raw) for name, raw in files.items()}
rows = [[name, "{} x {}".format(*pixels[name]), Q_(len(raw) / 1e3, "KB")]
        for name, raw in files.items()]
table(["file", "pixels", "bytes"], rows)

# %%
predict("decode-bytes", unchanged=1,
        question="How many times as long does the full, fine file take to decode as "
                 "the full, coarse one?")

# %% tags=["folded"]
times = decode_times(files)


def show_decoding():
    rows = [[n, Q_(len(raw) / 1e3, "KB"), times[n],
             (Q_(len(raw), "B") / times[n]).to("MB/s"),
             f"{pixels[n][0] * pixels[n][1] / times[n].m_as('s') / 1e6:.0f}"]
             for n, raw in files.items()]
    table(["file", "bytes", "decoding", "bytes a second", "million pixels a second"],
          rows)

# %%
reveal("decode-bytes", (times["full, fine"] / times["full, coarse"]).m_as(""),
       then=show_decoding, why=why_decoding, disturbed=disturbance(times))

# %% [markdown]
# Both count: each byte is unpacked, and each pixel computed. State **images a second together with
# their pixels and bytes**.
#
# ## Workers against cores
#
# One worker alone is no faster than none. It brings **overlap**: the loop is free meanwhile. Inside a
# container `os.cpu_count()` counts the cores of the host; `usable_cores` counts yours.

# %%
pipe = Pipeline(dataset=Samples(source=photos("100 KB")), batch_size=8, workers=2,
                hardware="1 ms")
cores = usable_cores(physical=True)
table(["Cores", "value"], [["usable here", usable_cores()],
                           ["usable and physical", cores]])

# %%
predict("past-cores", unit="%", between=(0, None), unchanged=100,
        question="One worker for each physical core delivers 100 %. How many percent "
                 "do two for each core?")

# %% tags=["folded"]
loaders = {"threads": "threads", "processes": "processes"}
if find_spec("torch"):
    loaders["torch"] = "PyTorch's DataLoader"
alone = pipe.replace(workers=0).measure(seconds="1 s", repeat=True)
one_worker = {kind: pipe.replace(workers=Workers(1, kind=kind)).measure(
                  seconds="1 s", repeat=True)
              for kind in loaders}
limit = min(cores, 16)  # more than that would take their time to start
several = {count: pipe.replace(workers=Workers(count, kind="processes")).measure(
               seconds="1 s", repeat=True)
           for count in sorted({2, limit, 2 * limit} - {1})}
several[1] = one_worker["processes"]
columns = ["what runs", "throughput", "95 % interval (img/s)", "of no worker"]


def show_workers():
    rows = [comparison_row("no worker", alone, alone)]
    rows += [comparison_row(f"one worker ({loaders[kind]})", record, alone)
             for kind, record in one_worker.items()]
    rows += [comparison_row(f"processes: {count}", several[count], alone)
             for count in sorted(several) if count > 1]
    table(columns, rows)
    return loader_timeline(several[max(2, limit)].trace, batches=16)


past = (several[2 * limit].throughput / several[limit].throughput).m_as("")

# %%
reveal("past-cores", Q_(100 * past, "%"), then=show_workers, why=why_past,
       disturbed=disturbance(alone, *one_worker.values(), *several.values()))

# %% [markdown]
# Beyond the cores there are at most second hardware threads. Each adds a part of a core.
#
# ## Threads, processes, and the GIL
#
# Threads share memory and hand nothing over. Are they as fast as processes? Here is a stage in pure
# Python:

# %%
def checksum(raw):
    total = 0
    for byte in raw[:30_000]:
        total = (31 * total + byte) % 65_521
    return np.array([total])


in_python = pipe.replace({
    "dataset.transforms": [Transform("checksum", checksum, part="decode")]})

# %%
predict("gil", unchanged=1,
        question="Two threads compute these checksums. How many times the rate of no "
                 "worker at all do they reach?")

# %% tags=["folded"]
none_python = in_python.replace(workers=0).measure(seconds="1 s", repeat=True)
two_python = {kind: in_python.replace(workers=Workers(2, kind=kind)).measure(
                  seconds="1 s", repeat=True)
              for kind in ("threads", "processes")}
two = {"threads": pipe.replace(workers=Workers(2, kind="threads")).measure(
           seconds="1 s", repeat=True),
       "processes": several[2]}


def show_gil():
    rows = [comparison_row(f"Pillow and NumPy, two {name}", record, alone)
            for name, record in two.items()]
    rows += [comparison_row(f"pure Python, two {name}", record, none_python)
             for name, record in two_python.items()]
    table(columns, rows)

# %%
reveal("gil", (two_python["threads"].throughput / none_python.throughput).m_as(""),
       then=show_gil, why=why_gil,
       disturbed=disturbance(none_python, alone, *two_python.values(), *two.values()))

# %% [markdown]
# One thread at a time may run Python code: it holds the *global interpreter lock*, the GIL. Pillow
# and NumPy release it while they work in C.
#
# ## Read a run without fooling yourself
#
# Batches come in **bursts**: workers that start together finish together. Each of four simulated
# workers takes 120 ms for a batch, so in the long run a batch comes every 30 ms. When is a count of
# the first batches exact?

# %% tags=["folded"]
slow_start = Pipeline(dataset=Samples(cpu_time="15 ms"), batch_size=8,
                      workers=Workers(4, start_up="80 ms"), hardware="5 ms")


def draw(workers=4, batches=10):
    changed = slow_start.replace(workers=workers)
    trace = changed.simulate(batches=120, replicas=1, warm_up=0).trace()
    rows = [["from the start", trace.first(batches).period],
            ["without the first 20", trace.after(20).first(batches).period]]
    exact = abs(rows[1][1].m_as("ms") * workers / 120 - 1) < 1e-3
    said = (f"{'✓ ' * exact}In the long run a batch takes {120 / workers:.4g} ms; "
            f"counted without the first 20, {rows[1][1].m_as('ms'):.4g} ms.")
    return Drawing(svg.loader_lanes(trace.first(batches), whole=True), said,
                   ["batches counted", "time of a batch"], rows)

# %%
explore(draw, after="past-cores", workers=[1, 2, 3, 4, 6, 8], batches=(3, 20))

# %% [markdown]
# **Leave the start out**, and **count a multiple of the workers**: then 4, 8 and 12 batches give 30 ms exactly.
#
# ## Exercise 1.1: throughput from a record (5 points)
#
# `done` has a mark for each batch of a run, the time when it was finished. Leave out the first
# `warm_up` marks. From the first remaining mark on, take the longest stretch whose batches are a
# multiple of the workers.
#
# PACKAGES
#
# <details><summary>Hint 1</summary>
#
# `done[warm_up:]` are the marks that count. How many batches lie between `n` marks?
#
# </details>
# <details><summary>Hint 2</summary>
#
# `count // workers * workers` is the largest multiple of `workers` that is not above `count`. A batch counts
# images: `Q_(batch_size, "img")`.
#
# </details>

# %% role="answer" id="record-throughput"
def throughput(done, batch_size, workers, warm_up):
    """Images a second [sample/time]; `done` [time] has the end of every batch since the
    start of the run, in order."""
    ### BEGIN SOLUTION
    marks = done[warm_up:]
    count = (len(marks) - 1) // workers * workers
    return (Q_(batch_size, "img") * count / (marks[count] - marks[0])).to("img/s")
    ### END SOLUTION

# %% role="test" id="record-throughput-test" points=5
three_workers = [800, 805, 810, 1100, 1105, 1112, 1220, 1225, 1230, 1340, 1345, 1350,
                 1480, 1485]
check(throughput(Q_(three_workers, "ms"), 16, 3, 6), Q_(16 * 6 / 0.26, "img/s"),
      what="the throughput of three workers", mistakes={
    "It ends inside a burst: is your stretch a multiple of the workers?":
        Q_(16 * 7 / 0.265, "img/s"),
    "That is the first round of the workers; take the longest stretch.":
        Q_(16 * 3 / 0.12, "img/s"),
    "Begin at the first mark that is left, the end of batch `warm_up`.":
        Q_(16 * 6 / 0.238, "img/s"),
    "You counted marks. Between 8 marks lie 7 batches.": Q_(16 * 8 / 0.265, "img/s"),
    "From one mark to a mark 6 batches later, 6 batches were done.":
        Q_(16 * 7 / 0.26, "img/s"),
    "The start-up is in it: count from the end of a batch, not from the start of the "
    "run.": Q_(16 * 14 / 1.485, "img/s"),
    "The warm-up is in it: leave out the first `warm_up` batches.":
        Q_(16 * 12 / 0.68, "img/s"),
    "You rounded the batches down, but not the time: end at the mark that many batches "
    "later.": Q_(16 * 6 / 0.265, "img/s"),
    "That is batches a second. How many images are in a batch?": Q_(6 / 0.26, "img/s"),
})
uneven = [10, 20, 30, 45, 55, 80, 90, 99]
check(throughput(Q_(uneven, "ms"), 10, 2, 1), Q_(10 * 6 / 0.079, "img/s"),
      what="the throughput of two uneven workers", mistakes={
    "Leave out the first `warm_up` marks, and no mark more.":
        Q_(10 * 4 / 0.06, "img/s"),
})
check(throughput(Q_([0, 20, 30, 50, 60, 80], "ms"), 10, 2, 0), Q_(40 / 0.06, "img/s"),
      what="the throughput of two workers from the first mark",
      means="So start and bursts no longer bend the rate.")
### BEGIN HIDDEN TESTS
longer = np.add.outer(np.arange(12) * 0.2, [0.5, 0.51, 0.52, 0.53]).ravel()[:-1]
check(throughput(Q_(longer, "s"), 32, 4, 8), Q_("640 img/s"), what="the throughput of four workers, in seconds")
check(throughput(Q_(longer[:-2], "s"), 32, 4, 7), Q_("640 img/s"), what="the throughput of a shorter run")
check(throughput(Q_([0.9, 0.95, 1.0, 1.05], "s"), 8, 1, 1), Q_("160 img/s"), what="the throughput of one worker")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("record-throughput", throughput, final=False)
### BEGIN ENDING
def a_run(draw):
    workers, warm_up = draw.randint(1, 5), draw.randint(0, 6)
    first, burst, rounds = ([draw.randint(1, 90) for _ in range(n)] for n in (warm_up + 1, workers, 4 * workers))
    # Whole rounds, or bursts that are alike: counted from either end the rate is the same.
    gaps = draw.choice((rounds, burst * draw.randint(2, 6) + burst[:draw.randrange(workers)]))
    return Q_(np.cumsum(first + gaps), "ms"), draw.randint(2, 64), workers, warm_up


ending = 5, "runs", a_run
### END ENDING

# %% [markdown]
# ## Exercise 1.2: stall (3 points)
#
# The share of the time in which the GPU waits, from 0 to 1.
#
# <details><summary>Hint</summary>
#
# How long does one batch take at that throughput? For how much of that does the GPU work?
#
# </details>

# %% role="answer" id="stall"
def stall(step_time, throughput, batch_size):
    """Waiting share [a plain number from 0 to 1]; `step_time` is [time], `throughput`
    [sample/time]."""
    ### BEGIN SOLUTION
    period = Q_(batch_size, "img") / throughput
    return (1 - step_time / period).to("").magnitude
    ### END SOLUTION

# %% role="test" id="stall-test" points=3
check(stall(Q_("30 ms"), Q_("420 img/s"), 16), 0.2125,
      what="the stall at 30 ms and 420 img/s", mistakes={
    "That is the busy share.": 0.7875,
    "That is a percentage; return a share from 0 to 1.": 21.25,
    "A step is for a whole batch, and the throughput counts images.": -11.6,
    "You compared the wait with the step; compare it with the whole time of a batch.":
        17 / 63,
}, means="So a rate and a step time tell how much of the time the GPU waits.")
### BEGIN HIDDEN TESTS
check(stall(Q_("0.02 s"), Q_("640 img/s"), 16), 0.2, what="the stall at 0.02 s and 640 img/s", mistakes={
    "Convert the times to one unit first.": 0.9992,
})
check(stall(Q_("30 ms"), Q_("1000 img/s"), 32), 0.0625, what="the stall at 30 ms and 1000 img/s")
from starvelab import Jitter

uneven = Pipeline(dataset=Samples(cpu_time="2.1875 ms", jitter=Jitter(0.2)), batch_size=32, workers=3, hardware="20 ms")
told = uneven.simulate(batches=100, replicas=1, warm_up=10)
check(stall(Q_("20 ms"), told.throughput, 32), told.stall, what="the stall of a simulated run")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("stall", stall, final=False)
### BEGIN ENDING
def a_step(draw):
    step, wait, batch = draw.randint(1, 90), draw.randint(1, 90), draw.randint(2, 256)
    return Q_(step, "ms"), Q_(batch / (step + wait), "img/ms"), batch


ending = 3, "runs", a_step
### END ENDING

# %% [markdown]
# ## In your own words
#
# In a small container a colleague sets `num_workers=64`, with threads and a transform in pure Python. What will happen? Not
# graded.

# %% [markdown]
# *Write here.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Workers help up to the physical cores; threads help if the work leaves Python.
#
# **Next:** the loop waits. [Does the GPU](02_who_waits.ipynb)?
