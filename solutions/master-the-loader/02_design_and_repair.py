# %% [markdown]
# # 2. Design, and repair
#
# **What is missing in your loader and in somebody else's script, and what is the cheapest host that keeps its GPUs busy?** You need
# about MINUTES minutes.

# %% role="setup" id="setup-design"
from functools import cache  # for the checks

import numpy as np
from IPython.display import Markdown, display

from starvelab import Accelerator, Pipeline, Q_, Ranks, Samples
from starvelab.checks import Credit, check, one_of
from starvelab.lesson.course.decisions import CORE_PRICE, DRIVE_PRICE
from starvelab.lesson.course.decisions import GPU_PRICES, Design
from starvelab.lesson.course.decisions import bill_curve
from starvelab.measure.samples import given_samples
from starvelab.lesson.course.training_script import changed_training, script_text
from starvelab.lesson.course.training_script import simulated_throughput, starved_counts
from starvelab.lesson.course.training_script import what_it_does
from starvelab.lesson.course.practice import clinic
from starvelab.show import loader_timeline, table
from starvelab.tables import cell, percent
from starvelab.widgets import Drawing, beside_real, explore, finish, load_loader
from starvelab.widgets import predict, progress, reveal, save_loader


def why_small():
    """What the share means, and what plausible mistakes predict."""
    burned, price = (1 - small.busy) * GPU_PRICES["A100"], GPU_PRICES["A100"]
    drive = small.pipeline.replace(workers="1e9 img/s").solve()
    return {"meaning": f"Of {price:.2f} USD an hour, {burned:.2f} are for waiting.",
            "mistakes": {
        "Perhaps you took the share that it waits.": Q_(100 - 100 * small.busy, "%"),
        "That is what the drive allows: the workers bring less.":
            Q_(100 * drive.utilization, "%")}}


def why_slow_host():
    """How the slow host is known, and what the others wait for."""
    least = cell(waits[slow_host])
    return {"meaning": f"The host {slow_host} waits for {least} only: it comes last.",
            "mistakes": {f"The host {host} waits {cell(wait)} at the barrier.": host
                         for host, wait in waits.items() if host != slow_host}}

# %% [markdown]
# ## Repair your loader
#
# Your loader assumes that a worker is as fast beside others as alone:

# %%
real = Pipeline(dataset=given_samples("recordings"), batch_size=16, hardware="4 ms")
runs = [real.replace(workers=n).measure(seconds="1 s", repeat=True, progress=False)
        for n in (1, 2, 4)]
step_ends = load_loader("step_ends")
beside_real(step_ends, runs, quiet="recordings")

# %% [markdown]
# Workers share cores, memory and, as threads, Python's lock. Change one line, until the error is small: how many times as long does
# a worker take for a batch beside the others?

# %%
def repaired(prepare, step, workers, prefetch, start_up):
    longer = 1  # change this line
    return step_ends([longer * ms for ms in prepare], step, workers, prefetch, start_up)


beside_real(repaired, runs, quiet="recordings")
save_loader(repaired)

# %% [markdown]
# ## A host under a budget
#
# Train ninety epochs of ImageNet within twelve hours. You rent a host: one kind of GPU, up to 8 of them; up to 128 cores, each
# with one worker; up to 8 drives, each with 0.2 GB/s. A worker prepares some 150 images a second, and each further worker adds
# less. The prices are made up.

# %% tags=["folded"]
prices = [[name, f"{price:.2f} USD"] for name, price in GPU_PRICES.items()]
table(["for an hour", "price"], [*prices, ["core", f"{CORE_PRICE:.2f} USD"],
                                 ["drive", f"{DRIVE_PRICE:.2f} USD"]])

# %%
predict("eight-cores", unit="%", question="One A100, eight cores, one drive: how busy "
                                          "is the GPU, in percent?")

# %% tags=["folded"]
small = Design("A100", gpus=1, cores=8, drives=1)


def show_small():
    table(["One A100 with eight cores", "value"], [
        ["busy", percent(small.busy)], ["training takes", small.hours],
        ["training costs", f"{small.dollars:.0f} USD"]])

# %%
reveal("eight-cores", Q_(100 * small.busy, "%"), then=show_small, why=why_small)

# %% [markdown]
# You pay for the GPU also while it waits. Here are some V100s. Where does the bill stop falling when you add cores?

# %% tags=["folded"]
def draw(gpus=2, cores=4, drives=1):
    host = Design("V100", gpus, cores, drives)
    rows = [["GPUs busy", percent(host.busy)],
            ["the training costs", f"{host.dollars:.0f} USD"],
            ["it takes", f"{host.hours:.1f~}"]]
    return Drawing(bill_curve(host), str(host), ["what", "value"], rows)

# %%
explore(draw, after="eight-cores", gpus=(1, 8), cores=(1, 64), drives=(1, 8))

# %% [markdown]
# ## Exercise 2.1: design under a budget (15 points, in parts)
#
# Put a host together whose GPUs are busy at least 90 % of the time, and that finishes within twelve hours, for as few dollars as
# you can. A host within 5 % of the cheapest earns all points, and a dearer one fewer. `Design("A100", gpus=1, cores=8,
# drives=1)` tells you `.busy`, `.hours`, `.dollars` and `.step`.
#
# <details><summary>Hint 1</summary>
#
# How many images a second do its GPUs need, and how many cores and drives deliver that?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Loop over the hosts that are plausible: whole cores and drives fit some numbers of GPUs better.
#
# </details>

# %% role="answer" id="my-design"
def my_design():
    """A dict with "gpu", "gpus", "cores" and "drives"."""
    ### BEGIN SOLUTION
    hosts = [Design("A100", gpus, 19 * gpus + more, -(-3 * gpus // 2)) for gpus in (2, 4) for more in (0, 1, 2, 3)]
    best = min((host for host in hosts if host.obstacle == "none"), key=lambda host: host.dollars)
    return {"gpu": best.gpu, "gpus": best.gpus, "cores": best.cores, "drives": best.drives}
    ### END SOLUTION

# %% role="test" id="my-design-test" points=15
credit = Credit(15)
credit.part(2, "a host that can be bought", lambda: Design.of(my_design()))
credit.part(6, "90 % busy within twelve hours",
            lambda: check(Design.of(my_design()).obstacle, "none",
                          what="what stands against this host", mistakes={
    "The workers cannot feed the GPUs: more cores, or fewer or slower GPUs.": "CPU",
    "The drives cannot feed the GPUs: more drives, or fewer or slower GPUs.": "storage",
    "The GPUs are busy, and too slow to finish in twelve hours.": "time"}))
### BEGIN HIDDEN TESTS
credit.part(2, "nothing idle", lambda: (check(Design.of(my_design()).obstacle, "none"), check(Design.of(my_design()).idle, "none", what="what is idle in this host", mistakes={
    "A quarter of the cores could go, and the GPUs would be as busy.": "cores",
    "One drive could go, and the GPUs would be as busy.": "drives"})))


def economy():
    host = Design.of(my_design())
    check(host.obstacle, "none", what="what stands against this host")
    return (2 - host.dollars / 35.45) / 0.95


credit.share(5, "the price beside the cheapest host", economy)
### END HIDDEN TESTS
credit.total("So it trains in time, and its GPUs wait a tenth of the time at most. "
             "Could it cost less?")

# %% tags=["learning-alone"]
finish("my-design", my_design, final=False)
### BEGIN ENDING
def beside_the_cheapest(credit, answer, draw):
    from starvelab.lesson.course.decisions import Design

    cheapest = 35.45

    def judged():
        check(Design.of(answer()).obstacle, "none", what="what stands against this host")
        return Design.of(answer())

    credit.part(2, "nothing idle", lambda: check(judged().idle, "none", what="what is idle in this host"))
    credit.share(5, "the price beside the cheapest host", lambda: (2 - judged().dollars / cheapest) / 0.95)
    return [f"The cheapest host that exists trains for {cheapest:.2f} USD."]


ending = 7, beside_the_cheapest
### END ENDING

# %% [markdown]
# ## The slowest of four
#
# Four hosts train together, each with one GPU, at 3 USD an hour. A step ends at a *barrier*: all wait for the last one's gradients.
# One host prepares its batches more slowly. This is what you see:

# %% tags=["folded"]
job = Pipeline(dataset=Samples(cpu_time="4.5 ms"), batch_size=32, workers=4,
               hardware=Accelerator(rate="40 ms", ranks=Ranks(4, spread=0.1, slow=1.6)))
run = job.simulate(batches=400, replicas=1)
# The slow rank of a simulation is its last.
RANKS = {"east": 0, "north": 1, "south": 3, "west": 2}
traces = {host: run.trace(rank=rank) for host, rank in RANKS.items()}
ends = np.array([trace.step_end[20:] for trace in traces.values()])
waits = {host: Q_(wait, "ms")
         for host, wait in zip(RANKS, (ends.max(axis=0) - ends).mean(axis=1))}
slow_host = min(waits, key=lambda host: waits[host])
ready = run.queues.mean(axis=0).round(1)
table(["host", "waits at the barrier, each step", "batches ready"],
      [[host, waits[host], ready[RANKS[host]]] for host in RANKS])

# %%
predict("slow-host", choices=["east", "north", "south", "west"],
        question="Which host do the others wait for?")

# %% tags=["folded"]
def show_hosts():
    others = [host for host in RANKS if host != slow_host]
    for host in (others[0], slow_host):
        display(Markdown(f"The host **{host}**:"),
                loader_timeline(traces[host].after(20), batches=10))


def show_dollars():
    rows = [[name, step.throughput, percent(step.stall), f"{12 * step.stall:.2f} USD"]
            for name, step in (("as it is", job.solve()),
                               ("four alike", job.solve({"hardware.ranks.slow": 1.0})))]
    table(["four hosts", "throughput", "GPUs wait", "that costs an hour"], rows)

# %%
reveal("slow-host", slow_host, then=show_hosts, why=why_slow_host)

# %% [markdown]
# Above, the fast host waits at the barrier. The slow one waits for its batches. You pay for all:

# %%
reveal("slow-host", then=show_dollars)

# %% [markdown]
# Four equal hosts wait, too: in each step one is the last. What do 64 hosts lose?

# %%
explore(job, {"hardware.ranks.hosts": [1, 2, 4, 16, 64],
              "hardware.ranks.slow": (1.0, 2.0, 0.1),
              "hardware.ranks.spread": [0.0, 0.1, 0.2, 0.4]}, after="slow-host")

# %% [markdown]
# ## Exercise 2.2: the slowest of N (10 points, in parts)
#
# `arrives` has, for each host, the time at which it came to the barrier of each step, in ms since the step before. Which host takes
# longest over all steps? Without it the others would wait only for each other. How many dollars of an hour does its delay cost?
# Return both, the host first.
#
# <details><summary>Hint 1</summary>
#
# How long does each step take, with this host and without it? `zip(*lists)` goes through several lists at once.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# All hosts are paid for. For which part of an hour are steps longer than they have to be?
#
# </details>

# %% role="answer" id="slowest"
def slowest(arrives, price):
    """The slow host [str], and what it costs [money/time]; `arrives` is {host: [ms, for
    each step]}, and `price` that of one host [money/time]."""
    ### BEGIN SOLUTION
    late = max(arrives, key=lambda host: sum(arrives[host]))
    others = [arrives[host] for host in arrives if host != late]
    longer, shorter = (sum(map(max, zip(*hosts))) for hosts in (arrives.values(), others))
    return late, len(arrives) * price * (1 - shorter / longer)
    ### END SOLUTION

# %% role="test" id="slowest-test" points=10
two = "host, cost"
credit, three = Credit(10), ({"left": [40, 60, 50], "right": [70, 66, 74],
                              "upper": [50, 40, 50]}, Q_("30 USD/h"))
accident = ({"left": [40, 95, 40, 40], "right": [70, 70, 70, 70]}, Q_("3 USD/h"))
credit.part(3, "the slow host", lambda: check(
    one_of(slowest(*three), 0, two), "right", what="the slow host", mistakes={
    "It arrives first, and waits for the others.": "upper"}))
credit.part(3, "what it costs", lambda: check(one_of(slowest(*three), 1, two),
                                              Q_(150 / 7, "USD/h"),
                                              what="What it costs", mistakes={
    "That is what the others wait: its own GPU waits as well, for batches.":
        Q_(130 / 7, "USD/h"),
    "The others wait for each other, too: in each step for the last of them.":
        Q_(180 / 7, "USD/h"),
    "That is one host, and all three are paid for.": Q_(50 / 7, "USD/h"),
    "Compare with the steps as they are: these are paid for.":
        Q_(90 * 5 / 16, "USD/h")}))
credit.part(2, "an accident", lambda: (
    check(one_of(slowest(*accident), 0, two), "right", what="the slowest host",
          mistakes={"It was the last only once; add up all of its steps.": "left"}),
    check(one_of(slowest(*accident), 1, two), Q_(6 * (1 - 215 / 305), "USD/h"),
          what="What it costs beside an accident")))
### BEGIN HIDDEN TESTS
five = {"a": [30, 32, 30, 52], "b": [30, 33, 29, 30], "c": [44, 50, 47, 49], "d": [30, 30, 32, 30], "e": [29, 30, 45, 30]}
credit.part(2, "five hosts", lambda: (
    check(one_of(slowest(five, Q_("2.5 USD/h")), 0, two), "c", what="the slow host of five"),
    check(one_of(slowest(five, Q_("2.5 USD/h")), 1, two), Q_(12.5 * (1 - 160 / 193), "USD/h"), what="What it costs among five"),
    check(one_of(slowest({"a": [52, 52, 52, 30], "b": [50, 50, 50, 90]}, Q_("1 USD/h")), 0, two), "b", what="the slow host of two"),
    check(one_of(slowest(five, Q_("0.05 USD/min")), 1, two), Q_(15 * (1 - 160 / 193), "USD/h"), what="What it costs, by the minute")))
### END HIDDEN TESTS
credit.total("So one slow host makes all wait, and all are paid for.")

# %% tags=["learning-alone"]
finish("slowest", slowest, final=False)
### BEGIN ENDING
def some_hosts(draw):
    hosts, steps = draw.sample(("ash", "beech", "elm", "fir", "oak", "yew"), draw.randint(3, 6)), 8
    arrives = {host: [draw.randint(30, 55) for _ in range(steps)] for host in hosts}
    late, other = draw.sample(hosts, 2)
    # Slow on the whole; another host is once the last of all.
    arrives[late] = draw.choice(([draw.randint(62, 90) for _ in range(steps)], [29] * (steps - 2) + [200, 200]))
    arrives[other][draw.randrange(steps)] = 95
    return arrives, Q_(draw.randint(1, 40), "USD/h")


ending = 2, "jobs", some_hosts
### END ENDING

# %% [markdown]
# ## A script that starves
#
# The next cell writes `train.txt` beside this notebook. It trains on photographs, on a machine with **4 cores**, over a link of
# **0.15 GB/s**, and its GPU starves. It has four faults, and no bug. Open it with a double-click in the list of files.

# %%
before = what_it_does(script_text("train.txt"))
table(["what the script does to one image", "number"], list(before.items()))
table(["On the machine with 4 cores", "value"],
      [["throughput", simulated_throughput(before)]])

# %% [markdown]
# ## Exercise 2.3: repair a script (20 points, in parts)
#
# Edit `train.txt`, save it, and run the cell above again, until the throughput is at least **twice** what it was. What the model
# learns must stay the same: as many images in a batch, of 224 x 224 pixels, decoded, blurred and labeled, with the functions
# that the script imports. The check counts their calls. Then return the text of your file, `script_text("train.txt")`, and
# submit `train.txt`, too.
#
# <details><summary>Hint 1</summary>
#
# For each number of the table ask: does it have to be so large?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The order of two transforms, something that is the same for all images, the bytes of a number, and the machine's cores.
#
# </details>

# %% role="answer" id="my-script"
def my_script():
    """The text of your script."""
    ### BEGIN SOLUTION
    text = script_text("train.txt")
    for old, new in [("workers=3", "workers=4"), ('Transform("normalize", normalize),', ""),
                     ('Transform("blur", blur),', ""), ("crop),", 'crop), Transform("blur", blur),'),
                     ("    labels = read_labels()", ""), ("def look_up", "labels = read_labels()\n\ndef look_up")]:
        text = text.replace(old, new)
    return text
    ### END SOLUTION

# %% role="test" id="my-script-test" points=20
def measured(width, height):
    mine = what_it_does(my_script(), width, height)
    if not (mine["decoded pixels"] and mine["images sent"]):
        raise AssertionError("The model is trained on the photographs: decode them, "
                             "and send what was decoded.")
    if mine == starved_counts(width, height):
        raise AssertionError("It does what it did before: nothing is repaired yet.")
    return mine


credit, done, larger = Credit(20), cache(lambda: measured(500, 375)), cache(
    lambda: measured(640, 480))
credit.part(2, "the same training", lambda: check(changed_training(done()), "nothing",
    what="what your script changes of the training", mistakes={
    "How many images a step sees is part of the training.": "batch size",
    "The model is trained on 3 x 224 x 224 values.": "pixels",
    "The model is trained on images that are blurred.": "blur",
    "The model is trained with a label for each image: read them once, and go on "
    "looking each of them up.": "labels"}))
credit.part(3, "workers", lambda: check(done()["workers"], 4,
                                        what="the number of workers", mistakes={
    "That is as it was, and a core is idle.": 3,
    "Workers past the cores bring nothing.": 8,
    "Without workers the training loop prepares each batch, and the GPU waits "
    "for it.": 0}))
credit.part(3, "pixels that are blurred",
            lambda: check(done()["blurred pixels"], 224 * 224,
                          what="the number of blurred pixels",
                          mistakes={"The blur sees pixels that the crop throws away.":
                              500 * 375, "No pixel is blurred any more.": 0}))
credit.part(3, "labels", lambda: check(done()["label reads"], 0,
                                       what="how often labels are read for one image",
                                       mistakes={
                                           "All labels are read again for each image, "
                                           "and they are the same each time.": 1}))
credit.part(3, "bytes on the link", lambda: check(done()["bytes sent"], 3 * 224 * 224,
    what="the number of bytes that are sent",
    mistakes={"These are four bytes a value: the GPU can normalize what comes "
              "as uint8.": 4 * 3 * 224 * 224, "These are two bytes a value.": 2 * 3
              * 224 * 224}))
def twice(mine, width, height):
    return bool(simulated_throughput(mine) >= 2
                * simulated_throughput(starved_counts(width, height)))
credit.part(3, "twice the throughput", lambda: (
    check(changed_training(done()), "nothing", what="what your script changes"),
    check(twice(done(), 500, 375), True,
          what="whether the throughput is twice what it was", mistakes={
    "One of the numbers that cost the most is still as it was.": False})))
### BEGIN HIDDEN TESTS
credit.part(3, "twice the throughput with larger images", lambda: (
    check(changed_training(larger()), "nothing", what="what your script changes with larger images"),
    check(larger()["blurred pixels"], 224 * 224, what="the number of blurred pixels of a larger image"),
    check(twice(larger(), 640, 480), True, what="whether the throughput is twice what it was, with larger images")))
### END HIDDEN TESTS
credit.total("So the same machine trains at least twice as many images a second, and "
             "nothing was bought.")

# %% tags=["learning-alone"]
finish("my-script", my_script, final=False)
### BEGIN ENDING
def other_images(credit, answer, draw):
    from starvelab.lesson.course import training_script as script

    width, height = draw.randrange(520, 900, 4), draw.randrange(400, 700, 4)

    def twice():
        mine = script.what_it_does(answer(), width, height)
        check(script.changed_training(mine), "nothing", what="what your script changes of the training")
        starved = script.simulated_throughput(script.starved_counts(width, height))
        faster = bool(script.simulated_throughput(mine) >= 2 * starved)
        check(faster, True, what="whether the throughput is twice what it was")

    credit.part(3, f"twice the throughput with images of {width} x {height} pixels", twice)
    return ()


ending = 3, other_images
### END ENDING

# %% [markdown]
# ## In your own words
#
# Which repair gained most by itself, and which gained nothing until you made another one? Why? Not
# graded.

# %% [markdown]
# *Write here.*

# %% [markdown]
# ## Practice without end
#
# `clinic` draws a script that starves, another one for each number. Which lines are at fault? Lock a guess by their names, first
# the one that binds: `case.guess("collate", "retry")`. Then try up to three cures, such as `case.cure("num_workers")`, and ask for
# the key, which says why: `case.key()`.

# %%
case = clinic(1)
case

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Gains do not add up: repairing what does not bind brings nothing.
#
# **Next:** [Notebook 3](03_beyond_images.ipynb): your loader meets your own data.
