# %% [markdown]
# # 4. The batch sweep: where does starvation begin?
#
# Behind eight workers the GPU starved at a batch of 256. In about MINUTES minutes you find where starvation begins, and what a
# *sweep*, a measurement at several batch sizes, can show.
#
# Eight workers prepare 2 GB/s together, in images of 500 KB. The GPU takes 11.74 ms for a batch of 256, and 5.015 ms of
# these are overhead, which each step has.

# %% role="setup" id="setup-04"
from math import ceil, floor  # noqa: F401 (for your answers)

from starvelab import TUTORIAL, Hardware, Models, Pipeline, Q_
from starvelab.checks import check
from starvelab.show import svg, table
from starvelab.widgets import Drawing, beside_lab, explore, finish, predict, progress
from starvelab.widgets import reveal

pipe = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8)


def draw_lines(workers=8, batch_size=64, assumptions=TUTORIAL):
    """Draw the time of each resource, and where they cross."""
    here = pipe.replace(workers=workers, batch_size=batch_size, assumptions=assumptions)
    crossing = here.crossover()
    at = "✓ The GPU waits from here on. " if batch_size == crossing.starves_from else ""
    return Drawing(svg.lines_over_batch(here), f"{at}{crossing.summary}")


def show_sweeps():
    """Show two sweeps of one job."""
    rows = []
    for name, batches in {"sweep A": (64, 128, 256), "sweep B": (8, 64, 256)}.items():
        for b in batches:
            step = pipe.solve(batch_size=b)
            alone = pipe.solve(batch_size=b, workers=10_000).throughput
            rows.append([name, b, step.throughput, alone])
    table(["", "batch", "with its loader", "the same batch again and again"], rows)


def why_crossover():
    """What the batch size means, and what plausible mistakes predict."""
    first, step = pipe.crossover().starves_from, pipe.solve(batch_size=256)
    fed = [str(batch) for batch in (8, 16, 32, 64, 128, 256) if first and batch < first]
    bare = pipe.replace(assumptions=TUTORIAL.replace(overhead_per_layer="0 ms",
                                                     overhead_per_step="0 ms"))
    times = step.resource_times
    return {"meaning": f"Of the usual batches, only {' and '.join(fed)} are fed.",
            "mistakes": {
        "Perhaps the fixed cost of a step is missing: without it no batch is fed.":
            bare.crossover().starves_from,
        "Perhaps you looked at powers of two only: batches in between count.":
            1 << first.bit_length(),
        "Perhaps you kept the GPU's time for 256: a smaller batch takes less.":
            256 * (times["accelerator"] / times["CPU"]).m_as("")}}

# %%
predict("crossover", between=(1, None), whole=True,
        question="What is the smallest batch size at which the GPU has to wait for the "
                 "workers?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Write both times as lines in the batch size. For which batch size are they equal?
#
# </details>

# %%
reveal("crossover", pipe.crossover().starves_from, why=why_crossover)

# %% [markdown]
# Both times grow with every image in the batch. The GPU's time starts from a fixed cost, so the two lines cross. Left of the
# crossing no data are missing, and yet the GPU is hardly used: at a batch of 10 about 95 % of the step is overhead. No number of
# workers helps there.
#
# Move the workers: where do the lines cross for 2, 8 and 32 of them? Then move the batch until the GPU begins to wait.

# %%
explore(draw_lines, after="crossover", workers=[1, 2, 4, 8, 16, 32, 64],
        batch_size=(1, 160))

# %% [markdown]
# ## Exercise 4.1: the first starved batch (5 points)
#
# The workers need `cpu_per_image` for each image. The GPU needs `gpu_per_image` for each image and `gpu_overhead` for each step.
# Which is the smallest whole batch size at which preparing takes *longer* than using? `cpu_per_image` is larger than
# `gpu_per_image`. When both take equally long, nobody waits.
#
# <details><summary>Hint 1</summary>
#
# Preparing: `cpu_per_image * b`. Using: `gpu_per_image * b + gpu_overhead`. For which b are they equal?
#
# </details>
# <details><summary>Hint 2</summary>
#
# At `gpu_overhead / (cpu_per_image - gpu_per_image)`, which is rarely a whole number. The first whole number strictly above
# it is one more than its floor (`floor` is imported).
#
# </details>

# %% role="answer" id="starved-from"
def starved_from(cpu_per_image, gpu_per_image, gpu_overhead):
    """The smallest batch size [int] at which the GPU waits; all arguments are
    [time]."""
    ### BEGIN SOLUTION
    crossing = gpu_overhead / (cpu_per_image - gpu_per_image)
    return floor(round(crossing.to("").magnitude, 9)) + 1
    ### END SOLUTION

# %% role="test" id="starved-from-test" points=5
check(starved_from(Q_("0.25 ms"), Q_("0.05 ms"), Q_("5.14 ms")), 26,
      what="the first starved batch", mistakes={
    "At that batch the GPU does not wait yet: they cross a little later.": 25,
    "The GPU's time grows with the batch as well.": 21,
    "You looked at powers of two only: batches in between count.": 32,
    "They cross at 25.7: round that down before you add one.": 27,
    "Times of an image do not add here: look at their difference.": 18,
})
check(starved_from(Q_("1 ms"), Q_("0.5 ms"), Q_("5 ms")), 11,
      what="the first starved batch with a tie at 10", mistakes={
    "In a tie nobody waits: the next batch is the first.": 10,
})
check(starved_from(Q_("200 us"), Q_("0.15 ms"), Q_("5.01 ms")), 101,
      what="the first starved batch of fast workers", mistakes={
    "Convert the three times to the same unit first.": 1,
}, means="So the batch size alone can decide whether the GPU waits.")
### BEGIN HIDDEN TESTS
gpu = Q_(41 / 1560, "ms")
check(starved_from(Q_("0.25 ms"), gpu, Q_("5.015 ms")), 23, what="the first starved batch of 500 KB images")
check(starved_from(Q_("2.5 ms"), gpu, Q_("5.015 ms")), 3, what="the first starved batch of 5 MB images")
check(starved_from(Q_("0.125 ms"), gpu, Q_("5.015 ms")), 51, what="the first starved batch behind 16 workers")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("starved-from", starved_from, final=False)
### BEGIN ENDING
def three_times(draw):
    gpu, more, batch = draw.randint(3, 300), draw.randint(3, 300), draw.randint(2, 90)
    # No rounding of a unit may decide a tie.
    overhead = draw.choice((Q_((batch - 1) * more, "us"), Q_((batch - draw.choice((0.3, 0.7))) * more / 1000, "ms")))
    return Q_(gpu + more, "us"), Q_(gpu, "us"), overhead


ending = 5, "batches", three_times, "exact"
### END ENDING

# %% [markdown]
# ## What does a sweep show?
#
# You measured a job with its loader (the workers and what they run), and with the same batch again and again.

# %%
reveal("crossover", then=show_sweeps)

# %% [markdown]
# In every row of sweep A the GPU starves, so A does not show where starvation begins. Sweep B shows
# both sides.
#
# ## Exercise 4.2: what to measure next (4 points)
#
# Both lists go from the smallest batch to the largest. Below 95 % of the rate with the same batch, the GPU starves. Where does
# starvation begin: at `"smaller"` batches than these, at `"larger"` ones, or `"between"` two of them?
#
# <details><summary>Hint</summary>
#
# Does the first batch starve? Does the last? `zip(with_loader, same_batch)` pairs the rates.
#
# </details>

# %% role="answer" id="measure-next"
def measure_next(with_loader, same_batch):
    """Where starvation begins ["smaller", "larger" or "between"]; both arguments are
    lists of rates, plain numbers of img/s."""
    ### BEGIN SOLUTION
    starved = [rate < 0.95 * alone for rate, alone in zip(with_loader, same_batch)]
    if starved[0]:
        return "smaller"
    return "between" if any(starved) else "larger"
    ### END SOLUTION

# %% role="test" id="measure-next-test" points=4
words = "smaller", "larger", "between"
check(measure_next([980, 1900, 2000, 2010], [1000, 1950, 2900, 3600]), "between",
      among=words, what="the verdict on the first sweep", mistakes={
    "The first batch starves by 2 %, which a measurement may be off.": "smaller",
    "The last of these batches starves.": "larger",
})
check(measure_next([500, 510, 505], [800, 1200, 1500]), "smaller", among=words,
      what="the verdict on the second sweep", mistakes={
    "Its first batch starves already: the beginning is not among these.": "between",
    "Even its first batch has 500 of 800 img/s: it starves.": "larger",
})
check(measure_next([700, 1200, 1590], [710, 1220, 1600]), "larger", among=words,
      what="the verdict on the third sweep", mistakes={
    "Differences of 1 or 2 % are noise: no batch of these starves.": "between",
    "Differences of 1 % are noise: its first batch does not starve.": "smaller",
}, means="So you measure next where the answer can still change.")
### BEGIN HIDDEN TESTS
for loader, alone, verdict in (
    ([90, 91], [99, 98], "smaller"), ([97, 92], [100, 99], "between"), ([2000, 2010, 2005], [2010, 2005, 2020], "larger"),
    ([97, 180, 260, 300], [100, 185, 264, 400], "between"), ([3000, 6000], [5000, 9000], "smaller"),
    ([951, 1500], [1000, 3000], "between"),
):
    check(measure_next(loader, alone), verdict, what=f"the verdict on a sweep of {len(loader)} batches")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("measure-next", measure_next, final=False)
### BEGIN ENDING
def a_sweep(draw):
    alone = sorted(draw.randint(200, 9000) for _ in range(draw.randint(2, 6)))
    begins = draw.randint(0, len(alone))
    return [rate * (draw.choice((0.98, 0.951)) if n < begins else draw.randint(80, 92) / 100) for n, rate in enumerate(alone)], alone


ending = 4, "sweeps", a_sweep
### END ENDING

# %% [markdown]
# ## Your model
#
# Move the batch size: do both models starve from the same size on?

# %%
beside_lab(batch_size=8, after="crossover")

# %% [markdown]
# ## In your own words
#
# Why does a larger batch not help at the CPU wall? Not graded.

# %% [markdown]
# *Write here.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - A sweep must show *both* sides of what you look for.
#
# **Next:** add workers. [Notebook 5](05_worker_fix.ipynb): how many, and what comes after?
