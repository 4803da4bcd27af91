# %% [markdown]
# # 2. Who waits?
#
# The training loop asks for a batch, and waits. Is the GPU starved, then? **Find out whose waiting
# counts, and compare the model with your own machine.** This takes about MINUTES minutes.

# %% role="setup" id="setup-21"
import numpy as np  # noqa: F401 (for your answers)

from starvelab import Accelerator, Pipeline, Q_, Samples, Workers
from starvelab.checks import Credit, check
from starvelab.measure import disturbance, photos, usable_cores
from starvelab.show import labeled_bars, loader_timeline, svg, table
from starvelab.tables import cell, percent
from starvelab.widgets import Drawing, explore, finish, predict, progress, reveal
from starvelab.widgets import show_measured


def why_next():
    """What the share means, and what plausible mistakes predict."""
    workers, step = (one_ahead.solve().resource_times[name]
                     for name in ("CPU", "accelerator"))
    return {"meaning": f"The loop sat in next() for {percent(waiting.host_wait)}.",
            "mistakes": {
        "That is the wait of the loop, which runs ahead.":
            Q_(100 * waiting.host_wait, "%"),
        "Perhaps preparing and computing took turns: they overlap.":
            Q_(100 * (workers / (workers + step)).m_as(""), "%")}}


def show_steps():
    return loader_timeline(waiting, batches=10)


# ternaus/imread_benchmark: images a second with 2, 4 and 8 workers
curves = {name: {n: Q_(rate, "img/s") for n, rate in zip((2, 4, 8), rates)}
          for name, rates in {"OpenCV": (1060.48, 1457.42, 1402.07),
                              "simplejpeg": (1110.09, 1521.17, 1510.80),
                              "Pillow": (844.47, 1283.11, 1275.67)}.items()}


def by_workers(curve, before, after):
    """By how many percent `after` workers in place of `before` change the rate."""
    return Q_(100 * ((curve[after] / curve[before]).m_as("") - 1), "%")


def why_eight():
    """What the change means, and what plausible mistakes predict."""
    return {"meaning": "With each decoder eight workers bring less than four.",
            "mistakes": {
        "That is the rule of exercise 2.2, which ends at the cores.": Q_("100 %"),
        "That is the gain of four workers in place of two.":
            by_workers(curves["OpenCV"], 2, 4)}}

# %% [markdown]
# ## The loop, or the GPU
#
# A single worker prepares 320 images a second, in batches of 8; the GPU needs 20 ms for a batch. The loop spends
# practically **all** of its time in `next()`.

# %%
predict("next-wait", unit="%", question="How much of the time does the GPU "
                                        "wait here, in percent?")

# %%
one_ahead = Pipeline(batch_size=8, workers=Workers(1, rate="320 img/s"),
                     hardware=Accelerator(rate="20 ms", in_flight=2))
waiting = one_ahead.simulate(batches=300, replicas=1, warm_up=20)

# %% tags=["folded"]
def draw(prepare_ms=25, workers=1, steps_in_flight=2, variation=0.0):
    changed = one_ahead.replace(
        {"workers.count": workers, "workers.rate": Q_(8 / prepare_ms, "img/ms"),
         "hardware.in_flight": steps_in_flight, "dataset.jitter.spread": variation})
    found = changed.simulate(batches=300, replicas=1, warm_up=20)
    rows = [["loop in next()", percent(found.host_wait)],
            ["GPU waits", percent(found.stall)]]
    agree = abs(found.host_wait - found.stall) < 0.01
    said = (f"{'✓ ' * agree}The loop spends {rows[0][1]} of the time in next(), and "
            f"the GPU waits {rows[1][1]} of it.")
    shares = {"loop in next()": found.host_wait, "GPU waits": found.stall}
    picture = svg.share_bars(shares, title=said)
    return Drawing(picture, said, ["who waits", "share of the time"], rows)

# %%
reveal("next-wait", Q_(100 * waiting.stall, "%"), why=why_next,
       then=show_steps)

# %% [markdown]
# The loop runs ahead: while it waits in `next()`, the GPU is busy with the previous batch. Starvation
# is the **idle gaps of the GPU**. When do the two bars agree? A loop that reads `loss.item()` has one
# step in flight.

# %%
explore(draw, after="next-wait", prepare_ms=(5, 80), workers=(1, 4),
        steps_in_flight=[1, 2, 4], variation=(0.0, 0.5, 0.1))

# %% [markdown]
# ## Exercise 2.1: who waits? (4 points)
#
# A record says, for each batch, when the loop `asked` for it and `received` it, and when the GPU
# began (`step_start`) and ended (`step_end`) its step: four lists of milliseconds. For which share of the
# time does the *GPU* wait, from its first step to the end of its last?
#
# <details><summary>Hint</summary>
#
# Two of the four lists are about the loop. From the other two: for how much of the whole time did
# steps run?
#
# </details>

# %% role="answer" id="idle-share"
def idle_share(asked, received, step_start, step_end):
    """Share [a plain number from 0 to 1] in which the GPU waits; each list has
    one time in ms for each batch."""
    ### BEGIN SOLUTION
    busy = sum(end - start for start, end in zip(step_start, step_end))
    return 1 - busy / (step_end[-1] - step_start[0])
    ### END SOLUTION

# %% role="test" id="idle-share-test" points=4
had = [100, 125, 150, 175, 200]
record = [80, 100, 125, 150, 175], had, had, [120, 145, 170, 195, 220]
check(idle_share(*record), 1 / 6, what="the share in which the GPU waits",
      mistakes={
    "That is the loop, waiting in next().": 1.0,
    "That is the busy share.": 5 / 6,
    "That is a percentage; return a share from 0 to 1.": 100 / 6,
    "You compared the gaps with the steps; compare them with the whole stretch.": 0.2,
    "Start the clock with the first step: before that, nothing could run.": 120 / 220,
})
slow_copy = [10, 40, 70, 100], [10, 40, 70, 100], [20, 50, 80, 110], [40, 70, 100, 130]
check(idle_share(*slow_copy), 30 / 110, what="the share behind a slow copy", mistakes={
    "Here next() takes no time, and the GPU still waits: for a copy.":
        0.0})
of_other_lengths = [0, 30, 60], [20, 50, 90], [20, 50, 90], [30, 70, 100]
check(idle_share(*of_other_lengths), 0.5, what="the share with steps of 10, 20 and 10",
      mistakes={
    "Steps may differ: add up what each of them takes.": 1 - 30 / 80,
}, means="So the loop may wait while the GPU works, and the other way round.")
### BEGIN HIDDEN TESTS
kept_busy = [5, 20, 40, 60], [15, 35, 55, 75], [20, 40, 60, 80], [40, 60, 80, 100]
check(idle_share(*kept_busy), 0.0, what="the share of a GPU that never waits")
uneven = [0, 90, 130, 310], [90, 130, 310, 320], [95, 130, 315, 330], [115, 150, 330, 370]
check(idle_share(*uneven), 1 - 95 / 275, what="the share with steps of different length")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("idle-share", idle_share, final=False)
### BEGIN ENDING
def some_steps(draw):
    starts, ends, now = [], [], draw.randint(20, 300)
    for _ in range(5):
        starts.append(now := now + draw.randint(1, 30))
        ends.append(now := now + draw.randint(5, 40))
    return [start - 9 for start in starts], [start - 4 for start in starts], starts, ends


ending = 4, "records", some_steps
### END ENDING

# %% [markdown]
# ## The model against your machine
#
# `calibrated` measures one worker, and as many workers as there are cores. From that, the package
# predicts other pipelines. For a batch $b$ and $n = \min(\text{workers}, \text{cores})$:
#
# $$\text{time between batches} = \max\left(\text{step},\ \frac{b \cdot \text{CPU time of an image} + \text{hand-over}}{n}\,\bigl(1 + c\,(n - 1)\bigr)\right)$$
#
# $c$ is the *contention* that calibration fits: 0 if workers do not slow each other, 1 if they take
# turns.

# %%
ours = Pipeline(dataset=Samples(source=photos("100 KB")), batch_size=8,
                workers=Workers(2, kind="processes"), hardware="1 ms")
known = ours.calibrated(seconds="1 s")

# %% tags=["folded"]
limit = min(usable_cores(physical=True), 16)
rows, runs = [], []
for step in ("1 ms", "15 ms"):
    stepping = known.replace(hardware=step)
    for count in sorted({1, 2, limit}):
        wanted = stepping.replace(workers=count)
        seen = wanted.measure(seconds="1 s", repeat=True)
        runs.append(seen)
        solved, name = wanted.solve(), f"workers: {count}, step: {step}"
        rows.append([name, seen.throughput, solved.throughput,
                     f"{(solved.throughput / seen.throughput).m_as('') - 1:+.1%}"])


def show_model():
    table(["The workers of your machine", "value"], [
        ["cpu time of an image", known.dataset.cpu_time],
        ["handing over a batch", known.workers.handover.worker],
        ["cores", known.workers.cores], ["contention", known.assumptions.contention]])
    table(["pipeline", "measured", "model", "off by"], rows)

# %%
show_measured("calibrated", show_model, disturbed=disturbance(known, *runs))

# %% [markdown]
# The model is typically 5 % off, and in one of ten runs more than 16 %. Beside other programs it is
# 30 % off and more. What would four workers do on eight cores?
#
# <details><summary>Source</summary>
#
# 74 runs of this package's prototype.
#
# </details>

# %%
explore(stepping, {"workers.cores": [1, 2, 4, 8, 16]}, after="next-wait", advice=False,
        workers=(1, 16))

# %% [markdown]
# ## Exercise 2.2: predict a rate (7 points, in parts)
#
# Write the rule above, and return the throughput.
#
# <details><summary>Hint</summary>
#
# CPU time is for one image, hand-over and step for one batch. In the throughput a batch counts images:
# `Q_(batch_size, "img")`.
#
# </details>

# %% role="answer" id="mean-rate"
def predicted_rate(batch_size, workers, cores, contention, cpu_time, handover_time,
                   step_time):
    """Throughput [sample/time]; `contention` is a number from 0 to 1, `cpu_time` [time]
    for an image, `handover_time` and `step_time` [time] for a batch."""
    ### BEGIN SOLUTION
    n = min(workers, cores)
    loader = (batch_size * cpu_time + handover_time) / n * (1 + contention * (n - 1))
    return (Q_(batch_size, "img") / max(loader, step_time)).to("img/s")
    ### END SOLUTION

# %% role="test" id="mean-rate-test" points=7
credit = Credit(7)
costs = {"cpu_time": Q_("9 ms"), "handover_time": Q_("10 ms"), "step_time": Q_("4 ms")}
credit.part(2, "two workers on four cores", lambda: check(
    predicted_rate(10, 2, 4, 0, **costs), Q_("200 img/s"), mistakes={
    "The hand-over is missing.": Q_(10 / 0.045, "img/s"),
    "Each worker hands over its own batches, so the hand-over is shared among them, "
    "too.": Q_(10 / 0.055, "img/s"),
    "The hand-over is for a whole batch, not for each image.": Q_(10 / 0.095, "img/s"),
    "The CPU time is for one image: a batch has 10.": Q_(10 / 0.0095, "img/s"),
    "You added the step, but the GPU works while the workers prepare.":
        Q_(10 / 0.054, "img/s"),
}, what="The rate of two workers"))
credit.part(2, "eight workers on four cores",
            lambda: check(predicted_rate(10, 8, 4, 0, **costs), Q_("400 img/s"),
                          mistakes={
    "Workers past the cores bring nothing.": Q_("800 img/s")},
    what="The rate of eight workers"))
credit.part(1, "workers that hold each other up", lambda: check(
    predicted_rate(10, 4, 8, 0.25, **costs), Q_(1600 / 7, "img/s"), mistakes={
    "The contention is missing.": Q_("400 img/s"),
    "A worker does not hold itself up: count the others.": Q_("200 img/s")},
    what="The rate at a contention of 0.25"))
slow = costs | {"step_time": Q_("50 ms")}
credit.part(1, "a slow GPU", lambda: check(
    predicted_rate(10, 4, 8, 0.25, **slow), Q_("200 img/s"), mistakes={
    "Here the GPU is the slower one, and it sets the pace.": Q_(1600 / 7, "img/s"),
    "Workers hold each other up, and not the GPU.": Q_(10 / 0.0875, "img/s")},
    what="The rate of a slow GPU"))
### BEGIN HIDDEN TESTS
other = {"cpu_time": Q_("2.5 ms"), "handover_time": Q_("0.004 s"), "step_time": Q_("1 ms")}
credit.part(1, "a batch of 32", lambda: check(
    predicted_rate(32, 6, 3, 0.1, **other), Q_(80 / 0.084, "img/s"), what="The rate at a batch of 32"))
### END HIDDEN TESTS
credit.total("So by this rule workers past the cores bring nothing, nor does a faster "
             "GPU behind slow workers.")

# %% tags=["learning-alone"]
finish("mean-rate", predicted_rate, final=False)
### BEGIN ENDING
ending = 1, "loaders", lambda draw: (
    draw.randint(1, 64), draw.randint(1, 16), draw.randint(1, 16), draw.choice((0, 0.02, 0.3, 1)),
    *(Q_(draw.randint(1, most), "ms") for most in (20, 60, 90)))
### END ENDING

# %% [markdown]
# ## Curves that flatten and fall
#
# Somebody decoded ImageNet by PyTorch's `DataLoader` on a processor with 16 hardware threads, with 2, 4 and 8 workers.
# With OpenCV and four workers the rate was 1,457 images a second.
#
# <details><summary>Source</summary>
#
# [ternaus/imread_benchmark](https://github.com/ternaus/imread_benchmark)
#
# </details>

# %%
predict("eight-workers", unit="%", between=(-100, None), unchanged=0,
        question="By how many percent do eight workers in place of four change "
                 "the rate with OpenCV?")

# %% tags=["folded"]
def show_curves():
    rows = [(f"{name}, {n} workers", rate.m_as("img/s"), cell(rate))
            for name, curve in curves.items() for n, rate in curve.items()]
    return labeled_bars(*zip(*rows), axis="images a second",
                        caption="Four workers bring most, and eight a bit less.")

# %%
reveal("eight-workers", by_workers(curves["OpenCV"], 4, 8), then=show_curves,
       why=why_eight)

# %% [markdown]
# The rule of exercise 2.2 has no curve that falls. So measure the curve of your own loader, and
# take the fewest workers that reach the best rate, because each takes memory.

# %% [markdown]
# ## Exercise 2.3: as few workers as possible (5 points, in parts)
#
# Which is the smallest number of workers on a measured curve that is within 1 % of the best rate?
#
# <details><summary>Hint</summary>
#
# Find the best of the rates first.
#
# </details>

# %% role="answer" id="fewest-workers"
def fewest_workers(curve):
    """The smallest number of workers [int] that is as fast as any, but for 1 %;
    `curve` maps numbers of workers to what they bring [sample/time]."""
    ### BEGIN SOLUTION
    best = max(curve.values())
    return min(n for n, rate in curve.items() if rate >= 0.99 * best)
    ### END SOLUTION

# %% role="test" id="fewest-workers-test" points=5
def curve_of(**rates):
    return {int(name[1:]): Q_(rate, "img/s") for name, rate in rates.items()}


credit = Credit(5)
credit.part(2, "the published curves", lambda: (
    check(fewest_workers(curves["OpenCV"]), 4, mistakes={
        "There the rate has fallen again.": 8,
        "Four of them are faster by 37 %.": 2,
        "That is the place in the list; return the number of workers.": 1},
        what="the number of workers for OpenCV"),
    check(fewest_workers(curves["simplejpeg"]), 4, mistakes={
        "Fewer workers are within 1 % of the best.": 8},
        what="the number of workers for simplejpeg")))
credit.part(2, "a flat top", lambda: (
    check(fewest_workers(curve_of(n1=500, n2=990, n4=1450, n8=1455, n16=1300)), 4,
          mistakes={
        "Eight are the fastest, but four are within 1 % of them.": 8,
        "There the rate has fallen again.": 16},
        what="the number of workers where the top is flat"),
    check(fewest_workers(curve_of(n1=500, n2=980, n4=1000, n8=1000)), 4, mistakes={
        "Two bring 2 % less than the best, and 1 % is what may be lost.": 2},
        what="the number of workers where two bring 2 % less")))
### BEGIN HIDDEN TESTS
credit.part(1, "other curves", lambda: (
    check(fewest_workers(curve_of(n1=100, n2=180, n3=200, n4=170)), 3, what="the number on a curve that falls far"),
    check(fewest_workers(curve_of(n1=100, n2=100.5, n4=150, n8=151)), 4, what="the number behind a step"),
    check(fewest_workers(curve_of(n1=500, n2=990.05, n4=1000)), 2, what="the number where two bring 0.995 % less"),
    check(fewest_workers(curve_of(n6=300)), 6, what="the number on a curve of one point")))
### END HIDDEN TESTS
credit.total("So the last worker that helps is found by measuring.")

# %% tags=["learning-alone"]
finish("fewest-workers", fewest_workers, final=False)
### BEGIN ENDING
def a_curve(draw):
    enough, most = draw.randint(1, 25), draw.randint(2, 30)
    if draw.random() < 0.2:
        return {1: Q_("500 img/s"), 2: Q_("990.05 img/s"), 4: Q_("1000 img/s")}
    return {n: Q_(min(1, n / enough) * draw.randint(975, 1000), "img/s") for n in range(1, most)}


ending = 1, "curves", lambda draw: (a_curve(draw),)
### END ENDING

# %% [markdown]
# ## In your own words
#
# A colleague's loop is mostly in `next()`, and they want a faster drive. What do you measure first? Not graded.

# %% [markdown]
# *Write here.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - The loop's wait in `next()` is not the GPU's stall.
#
# **Next:** which stage is to blame? [The caching ladder](03_caching_ladder.ipynb).
