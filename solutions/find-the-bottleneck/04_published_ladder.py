# %% [markdown]
# # 4. A published ladder
#
# **Can you compute the *cost* of parts from rates that somebody else measured, and predict the
# effect of a change?** In about MINUTES minutes you solve a published table.

# %% role="setup" id="setup-published"
import numpy as np
from PIL import ImageFilter

from starvelab import Q_, Accelerator, Pipeline, Samples, Workers
from starvelab.checks import Credit, check, one_of
from starvelab.measure import Transform, disturbance, photos
from starvelab.measure.transforms import RandomResizedCrop, decode
from starvelab.show import labeled_bars, table
from starvelab.tables import percent
from starvelab.widgets import explore, finish, predict, progress, reveal


def why_fix():
    """What the rate means, and what plausible mistakes predict."""
    return {"meaning": f"Measured were {after_fix:.2f} steps a second.", "mistakes": {
        "Perhaps reading seemed to bind alone: the workers read and transform.":
            "it stays at 0.89",
        f"Reading still takes the workers {read:.0f} ms of each batch.":
            "it rises to 3.23 as well"}}


def why_slowest():
    """How much the slowest transform takes, and what plausible mistakes choose."""
    whole = sum(taken.values())
    share = {name: percent((time / whole).m_as("")) for name, time in taken.items()}
    return {"meaning": f"It takes {share[slowest]} of a worker's time.", "mistakes": {
        f"Its loop runs over rows, and takes {share['shade']}.": "shade",
        f"It is compiled code, and takes {share['sharpen']}.": "sharpen",
        f"It takes {share['decode']}: a photograph is small.": "decode"}}


def why_rewritten():
    """What the factor means, and what plausible mistakes predict."""
    alone = (taken[slowest] / after.stage_times[slowest]).m_as("")
    return {"meaning": f"The transform itself is {alone:.0f} times as fast.",
            "mistakes": {
        "That is the transform alone: the others take as long as before.": alone,
        "That is the share that it took of the time; what is left of it?":
            (taken[slowest] / sum(taken.values())).m_as("")}}

# %% [markdown]
# ## The measured rates
#
# [Rand's
# article](https://towardsdatascience.com/a-caching-strategy-for-identifying-bottlenecks-on-the-data-input-pipeline/)
# trains a small network on one A10G with 4 workers and batches of 256. Its images are random numbers, so that
# *reading* one means generating it; there is nothing to decode.

# %% tags=["folded"]
article = {"nothing": Q_("0.89 / s"), "raw sample": Q_("1.72 / s"),
           "processed sample": Q_("3.23 / s"),
           "host batch": Q_("3.33 / s"), "device batch": Q_("3.45 / s")}
rates = list(article.values())
table(["cached", "steps a second", "time between batches",
       "times the rate of the row above"],
      [[name, f"{rate.m_as('1/s'):.2f}", (1 / rate).to("ms"),
        before and f"{(rate / before).m_as(''):.2f}"]
       for (name, rate), before in zip(article.items(), [None, *rates], strict=False)])

# %% [markdown]
# As ratios, the two large steps look alike. As times, one is twice the other. **Neither is what the parts
# cost.**
#
# The article next made the transforms faster. With a raw sample cached the rate then rose from 1.72
# to 3.23 steps a second, the same as with a processed one. Reading did not change.

# %%
predict("ladder-fix", choices=["it stays at 0.89", "it rises, to less than 2",
                               "it rises to 3.23 as well"],
        question="With nothing cached, the rate was 0.89 steps a second. What becomes "
                 "of it after this fix?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# The same four workers read *and* transform. How long would they take for a batch if the transforms took no
# time at all?
#
# </details>

# %% tags=["folded"]
def apart(without, with_it):
    """What comes in between two rates of steps a second, in ms."""
    return 1000 / with_it - 1000 / without


copy, overhead = apart(3.45, 3.33), apart(3.33, 3.23)
read, transform = apart(1.72, 0.89), 1000 / 1.72
faster = 1000 / 1.28 - read


def steps(after_compute, by_workers):
    """Steps a second [a number] of the model; both are [ms] of a batch, the second what
    all workers take for it."""
    model = Pipeline(
        batch_size=256,
        dataset=Samples(cpu_time=Q_(by_workers * 4 / 256, "ms")),
        workers=Workers(4, cores=4),
        hardware=Accelerator(rate=Q_(256 * 3.45, "img/s"),
                             step_overhead=Q_(after_compute, "ms")),
    )
    return model.solve().throughput.m_as("img/s") / 256


BY_WORKERS = [
    ("processed sample", 3.23, 0.01, "overhead"),
    ("raw sample", 1.72, transform, "transform"),
    ("nothing", 0.89, transform + read, "read"),
    ("nothing, faster transforms", 1.28, faster + read, "faster transform"),
    ("raw sample, faster transforms", 3.23, faster, "predicted"),
    ("nothing, both, small images", 3.23, faster + read / 16, "predicted")]


def show_solved():
    rows = [["device batch", 3.45, steps(0, 0.01), "compute"],
            ["host batch", 3.33, steps(copy, 0.01), "copy"]]
    rows += [[name, measured, steps(copy + overhead, work), use]
             for name, measured, work, use in BY_WORKERS]
    table(["cached", "measured", "model", "used to find"],
          [[a, f"{b:.2f}", f"{c:.2f}", d] for a, b, c, d in rows])
    table(["for an image", "one worker takes"], [
        ["read", Q_(read / 64, "ms")], ["transform", Q_(transform / 64, "ms")],
        ["faster transform", Q_(faster / 64, "ms")]])


def show_others():
    before, gpu = 1000 / 0.89, 1000 / 3.23
    table(["model", "reading", "after the fix"], [
        ["the slowest stage", Q_(before, "ms"),
         "0.89 steps/s: faster transforms change nothing"],
        ["everything adds", Q_(read, "ms"),
         f"at most {1000 / (read + gpu):.2f} steps/s, even with free transforms"],
        ["workers add, GPU overlaps", Q_(read, "ms"),
         f"1.28 steps/s with transforms of {faster:.0f} ms"]])


after_fix = steps(copy + overhead, faster + read)
below = {"it stays at 0.89": 0.9, "it rises, to less than 2": 2,
         "it rises to 3.23 as well": 4}

# %%
reveal("ladder-fix", next(said for said, most in below.items() if after_fix < most),
       then=show_solved, why=why_fix)

# %% [markdown]
# The transforms cost more, although reading adds twice as much. Two other models are tempting:

# %%
reveal("ladder-fix", then=show_others)

# %% [markdown]
# Measured: 1.28 steps a second. Make an image cheaper until the GPU sets the pace. What do more
# workers bring instead?

# %%
START = Pipeline(batch_size=256, dataset=Samples(cpu_time="17.6 ms"),
                 workers=Workers(4, cores=4), hardware="826.9 img/s")
explore(START, {"dataset.cpu_time": (Q_("1 ms"), Q_("20 ms"))}, after="ladder-fix",
        advice=False, workers=[1, 2, 4, 6, 8],
        hardware=(Q_("200 img/s"), Q_("2000 img/s")))

# %% [markdown]
# ## Exercise 4.1: solve for the costs (6 points, in parts)
#
# With nothing cached and with a raw sample cached, the workers set the pace; with a processed sample cached,
# the GPU does. How long does one worker take to *read* one image, and how long to *transform* it?
# Neglect collating. `rates` has the keys `"nothing"`, `"raw sample"` and `"processed sample"`.
#
# <details><summary>Hint 1</summary>
#
# With a raw sample cached, what do the workers still do, and for how long does a batch keep them all
# busy?
#
# </details>
# <details><summary>Hint 2</summary>
#
# If four workers need 100 ms for 8 images, each prepares 2 images in these 100 ms: 50 ms an image.
#
# </details>

# %% role="answer" id="solve-costs"
def solve_costs(rates, batch_size, workers):
    """Times [time] of one worker to read and to transform an image; `rates` is {what is
    cached: [1/time]}."""
    ### BEGIN SOLUTION
    share = workers / batch_size
    return share * (1 / rates["nothing"] - 1 / rates["raw sample"]), share / rates["raw sample"]
    ### END SOLUTION

# %% role="test" id="solve-costs-test" points=6
two = "read, transform"
credit, easy = Credit(6), ({"nothing": Q_("0.8 / s"), "raw sample": Q_("2 / s"),
                            "processed sample": Q_("4 / s")}, 100, 5)
credit.part(2, "reading", lambda: check(
    one_of(solve_costs(*easy), 0, two), Q_("37.5 ms"), what="The time to read",
    mistakes={
    "That is what the part adds to a whole batch with all five workers; what does one "
    "image cost one worker?": Q_("750 ms"),
    "With nothing cached a worker reads and transforms: take the transforms away.":
        Q_("62.5 ms"),
    "A batch has 100 images.": Q_("3.75 s"),
    "Five workers prepare at the same time, so each image keeps one of them for "
    "longer than that.": Q_("7.5 ms")}))
credit.part(2, "transforms", lambda: check(
    one_of(solve_costs(*easy), 1, two), Q_("25 ms"), what="The time to transform",
    mistakes={
    "That is what the part adds to a whole batch with all five workers; what does one "
    "image cost one worker?": Q_("250 ms"),
    "That is what transforms add. The rest of what they cost hides behind the "
    "GPU.": Q_("12.5 ms"),
    "A batch has 100 images, not one.": Q_("2.5 s"),
    "Five workers prepare at the same time: in the time of a batch each has only its "
    "share of the images.": Q_("5 ms")}))
### BEGIN HIDDEN TESTS
real = {"nothing": Q_("0.89 / s"), "raw sample": Q_("1.72 / s"), "processed sample": Q_("3.23 / s")}, 256, 4
read_cost = Q_((1 / 0.89 - 1 / 1.72) * 1000 * 4 / 256, "ms")
work = Q_(1000 * 4 / 256 / 1.72, "ms")
credit.part(1, "the article's reading", lambda: check(one_of(solve_costs(*real), 0, two), read_cost, what="The time to read"))
credit.part(1, "the article's transforms", lambda: check(one_of(solve_costs(*real), 1, two), work, what="The time to transform"))
### END HIDDEN TESTS
credit.total("So a table of rates tells what a worker's time goes into, without a "
             "profiler.")

# %% tags=["learning-alone"]
finish("solve-costs", solve_costs, final=False)
### BEGIN ENDING
def a_ladder(draw):
    batch, workers, read, work = draw.randint(16, 256), draw.randint(2, 8), draw.randint(1, 60), draw.randint(1, 60)
    times = {"nothing": read + work, "raw sample": work, "processed sample": work / 2}
    return {name: Q_(workers / batch / time, "1/ms") for name, time in times.items()}, batch, workers


ending = 2, "ladders", a_ladder
### END ENDING

# %% [markdown]
# ## Exercise 4.2: predict the rate (5 points)
#
# Now predict the steps a second from the times to read and to transform an image. *Stages on one
# resource add, stages on different resources overlap*.
#
# <details><summary>Hint</summary>
#
# How long do the workers take for a batch, and how long the GPU?
#
# </details>

# %% role="answer" id="predict-rate"
def steps_per_second(read, transform, batch_size, workers, accelerator_step):
    """Steps a second [1/time]; `read` and `transform` [time] are one worker's for one
    image."""
    ### BEGIN SOLUTION
    workers_time = (read + transform) * batch_size / workers
    return (1 / max(workers_time, accelerator_step)).to("1/s")
    ### END SOLUTION

# %% role="test" id="predict-rate-test" points=5
busy = steps_per_second(Q_("4 ms"), Q_("6 ms"), 98, 5, Q_("110 ms"))
check(busy, Q_(1 / 0.196, "1/s"), what="the rate behind slow workers", mistakes={
    "That takes the slowest of three. Reading and transforming share the workers, so "
    "they add.": Q_(1 / 0.1176, "1/s"),
    "You added the GPU's time, and it overlaps with the workers'.":
        Q_(1 / 0.306, "1/s"),
    "The slower side sets the pace, not the faster.": Q_(1 / 0.11, "1/s"),
    "Five workers prepare at the same time.": Q_(1 / 0.98, "1/s"),
    "That is images a second, not steps.": Q_("500 / s"),
    "On average a worker has 19.6 of these images: do not round that.": Q_(1 / 0.19,
                                                                           "1/s"),
})
idle = steps_per_second(Q_("1 ms"), Q_("2 ms"), 100, 5, Q_("0.1 s"))
check(idle, Q_("10 / s"), what="the rate of quick workers", mistakes={
    "However quick the workers are, the GPU needs its time.":
        Q_(1 / 0.06, "1/s"),
}, means="So a few costs tell a rate before anybody measures it.")
### BEGIN HIDDEN TESTS
load, mended = 1000 / 0.89 - 1000 / 1.72, 1000 / 1.28 - 1000 / 0.89 + 1000 / 1.72
images = [Q_(time / 64, "ms") for time in (load, mended, load / 16)]
step = Q_(1000 / 3.23, "ms")
check(steps_per_second(images[0], images[1], 256, 4, step), Q_("1.28 / s"), what="the rate after faster transforms")
check(steps_per_second(images[2], images[1], 256, 4, step), Q_("3.23 / s"), what="the rate with small raw images")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("predict-rate", steps_per_second, final=False)
### BEGIN ENDING
ending = 5, "loaders", lambda draw: (
    Q_(draw.randint(1, 20), "ms"), Q_(draw.randint(1, 20), "ms"), draw.randint(2, 64), draw.randint(1, 8),
    Q_(draw.randint(10, 400), "ms"))
### END ENDING

# %% [markdown]
# ## On your own machine
#
# In one worker, somebody's own transforms shade, sharpen and tone real photographs. Read their
# code: what takes the worker longest, one of them or decoding?

# %%
def sharpen(image):
    return image.filter(ImageFilter.UnsharpMask(3))


def shade(image):
    pixels = np.array(image)
    for row in range(len(pixels)):
        pixels[row] = pixels[row] * (0.5 + row / 224)
    return pixels

# %%
def curve(value):
    return round(255 * (value / 255) ** 0.7)


def tone(pixels):
    return np.vectorize(curve, otypes=["uint8"])(pixels)

# %%
predict("slow-transform", choices=["decode", "sharpen", "shade", "tone"],
        question="Which of the four takes most of the worker's time?")

# %% tags=["folded"]
STEPS = [Transform("decode", decode, part="decode"),
         Transform("crop", RandomResizedCrop(112)), Transform("sharpen", sharpen),
         Transform("shade", shade)]
live = Pipeline(dataset=Samples(source=photos("100 KB"),
                                transforms=[*STEPS, Transform("tone", tone)]),
                batch_size=4, workers=1, hardware="4 ms")
before = live.measure(seconds="1 s", repeat=True, progress=False)
taken = before.stage_times
slowest = max(("decode", "sharpen", "shade", "tone"), key=lambda name: taken[name])


def show_taken():
    ms = [time.m_as("ms") for time in taken.values()]
    return labeled_bars(list(taken), ms, [percent(each / sum(ms)) for each in ms],
                        axis="ms of a sample",
                        caption="What one sample takes its worker.")

# %%
reveal("slow-transform", slowest, then=show_taken, why=why_slowest,
       disturbed=disturbance(before))

# %% [markdown]
# ## Exercise 4.3: rewrite it (5 points, in parts)
#
# `np.vectorize` is a loop in Python: it calls `curve` for each number. Write a function that returns the same
# pixels, and calls `curve` 256 times at most, whatever the curve and the image.
#
# <details><summary>Hint 1</summary>
#
# A pixel is a byte. How many different bytes are there?
#
# </details>
# <details><summary>Hint 2</summary>
#
# Where `table` is an array, `table[pixels]` looks all of them up at once.
#
# </details>

# %% role="answer" id="rewritten"
def rewritten(pixels, curve):
    """What `curve` makes of the pixels [array of uint8, of any shape]; it takes a byte
    and returns one."""
    ### BEGIN SOLUTION
    table = np.array([curve(value) for value in range(256)], dtype=np.uint8)
    return table[pixels]
    ### END SOLUTION

# %% role="test" id="rewritten-test" points=5
BYTES = range(np.iinfo(np.uint8).max + 1)


def tried(byte, shape):
    """What an answer makes of an image, what it should be, and how often it calls."""
    calls, pixels = [], np.random.default_rng(7).choice(BYTES, shape).astype(np.uint8)

    def curve(value):
        if np.ndim(value):
            raise AssertionError("`curve` takes one byte, and not an array of them.")
        calls.append(value)
        return byte(int(value))

    made = rewritten(pixels.copy(), curve)
    right = np.array([byte(value) for value in BYTES], np.uint8)[pixels]
    return made, right, len(calls)


def same(byte, shape):
    made, right, _ = tried(byte, shape)
    check(None if made is None else str(np.asarray(made).dtype), "uint8",
          what="the type of the pixels", mistakes={
        "They are eight bytes each, and the next transform takes bytes.": "int64"})
    check(np.array_equal(made, right), True, what="whether the pixels are the same",
          mistakes={
        "Some pixels are wrong: each becomes what `curve` makes of it.": False})


def less(byte, shape):
    same(byte, shape)
    check(tried(byte, shape)[2] <= len(BYTES), True, what="whether it calls so seldom",
          mistakes={"It still calls `curve` for each number of the image.": False})


credit = Credit(5)
credit.part(2, "the same pixels", lambda: same(lambda byte: 255 - byte, (9, 16, 3)))
credit.part(2, "fewer calls", lambda: less(lambda byte: byte // 2, (9, 16, 3)))
### BEGIN HIDDEN TESTS
credit.part(1, "another curve, and a gray image", lambda: less(lambda byte: (7 * byte + 3) % 251, (40, 31)))
### END HIDDEN TESTS
credit.total("So each value of a byte is worked out once, however large the image is.")

# %% tags=["learning-alone"]
finish("rewritten", rewritten, final=False)
### BEGIN ENDING
def other_curves(credit, answer, draw):
    def compare():
        factor, shift, asked = draw.randint(2, 9), draw.randint(0, 250), []
        shape = draw.choice(((40, 31), (9, 16, 3), (700,)))
        pixels = np.random.default_rng(draw.randrange(1000)).integers(256, size=shape, dtype=np.uint8)
        made = answer(pixels.copy(), lambda byte: asked.append(byte) or (factor * int(byte) + shift) % 251)
        same = made is not None and np.array_equal(made, (factor * pixels.astype(int) + shift) % 251)
        check(same and made.dtype == np.uint8, True, what="whether the pixels are right, and bytes")
        check(len(asked) <= 256, True, what="whether the curve is asked so seldom")

    credit.part(1, "twelve random curves", lambda: [compare() for _ in range(12)])
    return ()


ending = 1, other_curves
### END ENDING

# %% [markdown]
# How much faster is the whole pipeline? `rate` is the model's, from the worker's time for a sample:

# %%
def rate(of_a_sample):
    return live.replace(dataset=Samples(cpu_time=of_a_sample)).solve().throughput


table(["a sample takes", "img/s"], [[time, rate(time)] for time in ("20 ms", "5 ms")])

# %%
predict("rewrite", unchanged=1,
        question="How many times as fast will this machine prepare with your "
                 "transform?")

# %% tags=["folded"]
rewritten(np.zeros((1, 1), np.uint8), curve)  # says so where nothing is written yet
FAST = Transform("tone", lambda pixels: rewritten(pixels, curve))
after = live.replace({"dataset.transforms": [*STEPS, FAST]}).measure(
    seconds="1 s", repeat=True, progress=False)


def show_rewritten():
    table(["", "a sample takes", "the model says", "measured"], [
        [name, time, rate(time), one.throughput]
        for name, one in (("before", before), ("after", after))
        for time in [sum(one.stage_times.values())]])

# %%
reveal("rewrite", (after.throughput / before.throughput).m_as(""), then=show_rewritten,
       disturbed=disturbance(before, after), why=why_rewritten)

# %% [markdown]
# ## In your own words
#
# "Reading keeps the workers busy for twice as long as the transforms." Which two rates do you show? Not graded.

# %% [markdown]
# *Write here.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Neither a ratio nor a difference is a cost: a hidden stage still costs its workers.
#
# **Next:** the bottleneck has a name. [Pull the levers](05_pull_the_levers.ipynb).
