# %% [markdown]
# # 1. Measure your machine
#
# The first assignment worked with other people's figures. Now it is your machine's turn: real JPEGs, real workers, a real
# stopwatch, and an accelerator that only exists in virtual time, so that no GPU is needed. **How many images a second can
# this machine prepare, what does a worker cost, and does the model know it beforehand?**
#
# In about MINUTES minutes you will
#
# - measure what decoding costs, and whether bytes or pixels decide it,
# - see what workers bring, as threads and as processes, up to your cores and past them,
# - learn to take a throughput from a recorded run without fooling yourself.
#
# The notebook measures for about half a minute in all, and says so each time. Close what else keeps this machine busy.
# Run All passes by exercises that are still open, and the last line says with which one to go on.

# %% role="setup" id="setup-11"
from io import BytesIO

import numpy as np
from PIL import Image

from starvelab import Pipeline, Q_, Samples, Workers
from starvelab.checks import check
from starvelab.measure import Transform, photos
from starvelab.measure import comparison_row, disturbance
from starvelab.measure.transforms import as_jpeg, decode_times, jpeg_size
from starvelab.show import info, loader_timeline, svg, table
from starvelab.widgets import Drawing, explore, predict, progress, reveal

# %% [markdown]
# ## What one core decodes
#
# One photo, kept as three files: twice in full, saved coarsely and saved finely, and once at half the width and height.

# %%
photo = Image.open(BytesIO(photos("500 KB").read(0))).convert("RGB")
half = photo.resize((photo.width // 2, photo.height // 2))
files = {"full, coarse": as_jpeg(photo, 30), "full, fine": as_jpeg(photo, 98),
         "half, fine": as_jpeg(half, 98)}
pixels = {name: jpeg_size(raw) for name, raw in files.items()}

# %%
rows = [[name, "{} x {}".format(*pixels[name]), Q_(len(raw) / 1e3, "KB")]
        for name, raw in files.items()]
table(["file", "pixels", "bytes"], rows)

# %% [markdown]
# `decode_times` decodes each of them several times, in turn, and takes the median.

# %%
predict("decode-bytes", unchanged=1,
        question="How many times as long does the full, fine file take to decode as "
                 "the full, coarse one?")

# %%
times = decode_times(files)

# %%
def show_decoding():
    rows = [[n, Q_(len(raw) / 1e3, "KB"), times[n],
             (Q_(len(raw), "B") / times[n]).to("MB/s"),
             f"{pixels[n][0] * pixels[n][1] / times[n].m_as('s') / 1e6:.0f}"]
             for n, raw in files.items()]
    table(["file", "bytes", "decoding", "bytes a second", "million pixels a second"],
          rows)


reveal("decode-bytes", (times["full, fine"] / times["full, coarse"]).m_as(""),
       then=show_decoding)

# %% [markdown]
# Compare the columns of bytes and decoding. Both count: each byte has to be unpacked, and each pixel has to be computed.
# Many times the bytes take longer, and not many times as long; a quarter of the pixels, and of the bytes with them, takes about
# a quarter of the time. A worker's rate in bytes a second holds only for files that are compressed as strongly, and its rate
# in pixels, too. Speak of **images a second, of so many pixels and bytes**.
#
# Here are the three kinds of image that this assignment uses. They are made on first use, which takes a few seconds: those
# of 500 KB were made above, the others are made now.

# %%
kinds = {size: photos(size) for size in ("100 KB", "500 KB", "5 MB")}

# %%
stored = {size: samples.read(0) for size, samples in kinds.items()}
shapes = {size: jpeg_size(raw) for size, raw in stored.items()}
rows = [[size, "{} x {}".format(*shapes[size]), each, Q_(1 / each.m_as("s"), "img/s"),
         f"{shapes[size][0] * shapes[size][1] / each.m_as('s') / 1e6:.0f}"]
        for size, each in decode_times(stored, rounds=5).items()]
reveal("decode-bytes", then=lambda: table(["image", "pixels", "decoding", "one core",
                                           "million pixels a second"], rows))

# %% [markdown]
# ## What one worker costs
#
# A worker does the same work elsewhere, and then its batch has to come back: that is the **hand-over**. A thread shares
# the loop's memory. A process has its own, so each batch crosses over, and a float32 image of 224 x 224 has many more
# bytes than the JPEG it came from. We let the accelerator need next to nothing, so that the loader shows all it can.

# %%
from importlib.util import find_spec

pipe = Pipeline(dataset=Samples(source=kinds["100 KB"]), batch_size=8, workers=2,
                hardware="1 ms")
alone = pipe.replace(workers=0).measure(seconds="1 s", repeat=True)
loaders = ["threads", "processes"] + (["torch"] if find_spec("torch") else [])
one_worker = {kind: pipe.replace(workers=Workers(1, kind=kind)).measure(seconds="1 s")
              for kind in loaders}
if "torch" not in loaders:
    print("PyTorch is not installed here, so its DataLoader is left out. All else "
          "works without it.")

# %%
columns = ["what runs", "throughput", "95 % interval (img/s)", "of no worker",
           "disturbed"]
rows = [comparison_row(f"one worker ({loader})", record, alone)
        for loader, record in one_worker.items()]
table(columns, [comparison_row("no worker", alone, alone), *rows])

# %%
info("Where the time of one image goes", **alone.stage_times)

# %% [markdown]
# One worker should come out no faster than none, and often slower: it does the same work, plus the hand-over. What one
# worker buys is not speed but **overlap**, since the loop is free meanwhile: to wait for the end of a step, say, or for work of its
# own. Speed takes more of them.
#
# The last column is worth a look each time. Where other programs took part of your cores, or the run was uneven, a figure
# says more about that than about the loader: close what you can, and run that cell again. (`repeat=True` repeats a disturbed
# run once by itself. Where it is disturbed again, you may choose a recorded quiet run for the answer.)
#
# ## Workers against cores
#
# How many is "more"? Beware of the obvious call: inside a container `os.cpu_count()` counts the cores of the host,
# while the scheduler grants you fewer.

# %%
from os import cpu_count

from starvelab.measure import usable_cores

cores = usable_cores(physical=True)
info("Cores", os_cpu_count=cpu_count(), usable_here=usable_cores(),
     usable_and_physical=cores)

# %%
predict("past-cores", unit="%", between=(0, None), unchanged=100,
        question="One worker for each physical core delivers 100 %. How many percent "
                 "do two for each core?")

# %%
limit = min(cores, 16)  # more than that would take their time to start
if cores > limit:
    print(f"This machine has more cores than we start workers for: {2 * limit} workers "
          f"may still all find one.")
counts = sorted({2, limit, 2 * limit} - {1})
several = {count: pipe.replace(workers=Workers(count, kind="processes")).measure(
               seconds="1 s", repeat=True)
           for count in counts}
several[1] = one_worker["processes"]

# %%
def show_workers():
    rows = [comparison_row(f"workers: {count}", several[count], several[1])
            for count in sorted(several)]
    table([*columns[:3], "of one worker", columns[4]], rows)
    return loader_timeline(several[max(2, limit)].trace, batches=16)


past = (several[2 * limit].throughput / several[limit].throughput).m_as("")
reveal("past-cores", Q_(100 * past, "%"), then=show_workers,
       disturbed=disturbance(several[limit], several[2 * limit]))

# %% [markdown]
# Up to the cores each worker adds its hands, though not quite a full pair. Past them there are second hardware threads at
# most, where the processor has them, and each of these adds a part of a core. Further workers only take turns. The picture shows your own run: each lane is one worker, and the
# accelerator, which needs only 1 ms for a batch, waits nearly all the time.
#
# ## Threads, processes, and the GIL
#
# A worker may be a thread or a process. Threads share memory and hand nothing over. Are they as fast? Here is a stage that is
# written in pure Python:

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

# %%
none_python = in_python.replace(workers=0).measure(seconds="1 s", repeat=True)
two_python = {kind: in_python.replace(workers=Workers(2, kind=kind)).measure(
                  seconds="1 s", repeat=True)
              for kind in ("threads", "processes")}
two = {"threads": pipe.replace(workers=Workers(2, kind="threads")).measure(
           seconds="1 s"),
       "processes": several[2]}

# %%
def show_gil():
    rows = [comparison_row(f"Pillow and NumPy, two {name}", record, alone)
            for name, record in two.items()]
    rows += [comparison_row(f"pure Python, two {name}", record, none_python)
             for name, record in two_python.items()]
    table(columns, rows)


reveal("gil", (two_python["threads"].throughput / none_python.throughput).m_as(""),
       then=show_gil, disturbed=disturbance(two_python["threads"], none_python))

# %% [markdown]
# In Python one thread at a time may run Python code: it holds the *global interpreter lock*, the GIL. Pillow and NumPy
# let go of it while they work in C, and a stage written in pure Python never does. With two cores or more, and nobody else on
# them, two processes reach 1.6 to 1.9 times the rate with both kinds of work (measured on a quiet machine). Threads do so only
# as far as the work is done outside Python: where a Python loop over bytes or boxes is most of the work, they wait in a queue
# for the lock. (On a single core nothing helps. A *free-threaded* build of Python has no such lock.)
#
# ## Read a run without fooling yourself
#
# Batches do not come evenly, they come in **bursts**: workers that start together finish together. Below, four simulated workers
# take 15 ms for an image, so 120 ms for a batch of 8, and 400 ms to start; the accelerator needs 5 ms. In the long run that is a
# batch every 30 ms.

# %%
slow_start = Pipeline(dataset=Samples(cpu_time="15 ms"), batch_size=8,
                      workers=Workers(4, start_up="400 ms"), hardware="5 ms")
bursts = slow_start.simulate(batches=500, replicas=1, warm_up=0)
loader_timeline(bursts, batches=16)

# %%
from_start, steady = bursts.trace(), bursts.trace().after(20)
table(["batches counted", "from the start: ms a batch",
       "without the first 20: ms a batch"],
      [[n, from_start.first(n).period.m_as("ms"), steady.first(n).period.m_as("ms")]
       for n in (3, 4, 5, 6, 8, 10, 12, 40, 42, 480)])

# %% [markdown]
# Two rules follow, and `run` keeps both:
#
# - **Leave the start out.** Workers start, caches are cold, queues are empty. In the middle column it takes hundreds of
#   batches to wash that out.
# - **Count a multiple of the workers.** In the last column 4, 8 and 12 batches give 30 ms exactly. With 3 or 5 the count
#   ends in the middle of a burst, and the pause before it weighs too much.
#
# And count what lies *between* the marks: from the end of one batch to the end of the next is one batch, not two.
#
# Move the workers and the batches that are counted. How far apart are the two results, and when is the second one exact?

# %%
def draw(workers=4, batches=10):
    changed = slow_start.replace(workers=workers)
    trace = changed.simulate(batches=120, replicas=1, warm_up=0).trace()
    rows = [["from the start", trace.first(batches).period],
            ["without the first 20", trace.after(20).first(batches).period]]
    said = (f"In the long run a batch takes {120 / workers:.4g} ms; counted from the "
            f"start, {rows[0][1].m_as('ms'):.4g} ms.")
    return Drawing(svg.loader_lanes(trace.first(batches)), said,
                   ["batches counted", "time of a batch"], rows)

# %%
explore(draw, after="past-cores", workers=[1, 2, 3, 4, 6, 8], batches=(3, 48))

# %% [markdown]
# ## Exercise 1.1: throughput from a record (5 points)
#
# `done` says when each batch of a run was finished. Leave out the first `warm_up` batches. From the first mark that is left,
# take the longest stretch that is a multiple of the workers.
#
# <details><summary>Hint 1</summary>
#
# `done[warm_up:]` are the marks that count. Between `n` marks lie how many batches?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `count // workers * workers` is the largest multiple of `workers` that is not above `count`. With marks numbered from
# 0, mark number `count` lies `count` batches after mark 0. A batch counts images: `Q_(batch_size, "img")`.
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
### BEGIN HIDDEN TESTS
longer = np.add.outer(np.arange(12) * 0.2, [0.5, 0.51, 0.52, 0.53]).ravel()[:-1]
check(throughput(Q_(longer, "s"), 32, 4, 8), Q_("640 img/s"), what="the throughput of four workers, in seconds")
check(throughput(Q_(longer[:-2], "s"), 32, 4, 7), Q_("640 img/s"), what="the throughput of a shorter run")
check(throughput(Q_([0.9, 0.95, 1.0, 1.05], "s"), 8, 1, 1), Q_("160 img/s"), what="the throughput of one worker")
check(throughput(Q_([10, 20, 30, 45, 55, 80, 90, 99], "ms"), 10, 2, 1), Q_(10 * 6 / 0.079, "img/s"),
      what="the throughput of two uneven workers")
### END HIDDEN TESTS

# %% [markdown]
# ## From throughput to stall
#
# The accelerator works `step_time` for each batch, and a batch takes as long as the throughput says. That is enough to
# know how busy it is, with no clock on the accelerator at all. Now let it need 15 ms for a batch, and see your own
# starvation:

# %%
trained = pipe.replace(workers=Workers(1, kind="processes"), hardware="15 ms")
with_steps = {count: trained.replace(workers=count).measure(seconds="1 s")
              for count in (1, 2)}

# %%
def show_steps():
    rows = [[f"workers: {count}", one.throughput,
             (one.step_time * one.throughput / Q_("8 img")).m_as("")]
            for count, one in with_steps.items()]
    table(["the whole run", "throughput", "busy: step x throughput / batch"], rows)
    print("\nIn these 10 batches (the first ones of one worker) the share is not "
          "exactly that of the whole run:")
    return loader_timeline(with_steps[1].trace, batches=10)

# %%
reveal("past-cores", then=show_steps)

# %% [markdown]
# ## Exercise 1.2: stall (3 points)
#
# The share of the time in which the accelerator waits, from 0 to 1.
#
# <details><summary>Hint</summary>
#
# How long does one batch take at that throughput? For how much of that does the accelerator work? The rest is stall.
# The throughput counts images, so a batch has to count them too: `Q_(batch_size, "img")`.
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
check(stall(Q_("10 ms"), Q_("400 img/s"), 16), 0.75,
      what="the stall at 10 ms and 400 img/s", mistakes={
    "That is the busy share.": 0.25,
    "That is a percentage; return a share from 0 to 1.": 75.0,
    "A step is for a whole batch, and the throughput counts images.": -3.0,
    "You compared the wait with the step; compare it with the whole time of a batch.":
        3.0,
})
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

# %% [markdown]
# ## In your own words
#
# A colleague on a 4-core container reads `os.cpu_count()`, gets 64, and sets `num_workers=64` with threads and a
# transform in pure Python. What will happen, and why? Two or three sentences. Nobody marks this; writing it is how you
# notice what you have not understood yet.

# %% [markdown]
# *Double-click here and write.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Decoding takes time for each pixel and for each byte. Say images a second, and of which images.
# - One worker costs a hand-over. Several bring overlap and hands, up to the physical cores that you may really use.
# - Threads help where the work leaves Python; processes help in both cases.
# - Drop the warm-up, count a multiple of the workers, and count what lies between the marks.
#
# **Next:** the loop waits. Does the accelerator? [Notebook 2](02_who_waits.ipynb).
