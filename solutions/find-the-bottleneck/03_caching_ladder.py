# %% [markdown]
# # 3. The caching ladder
#
# The GPU waits. **For reading, decoding, the transforms, the copy?** In about MINUTES minutes you climb a ladder of
# caches.

# %% role="setup" id="setup-ladder"
from starvelab import Pipeline, Q_, Samples
from starvelab.checks import WrongAnswer, check
from starvelab.measure import SimulatedClock, Transform, disturbance
from starvelab.measure import photo_transforms, photos
from starvelab.show import loader_timeline, say, svg, table
from starvelab.tables import cell
from starvelab.widgets import Drawing, explore, finish, predict, progress, reveal
from starvelab.widgets import show_measured


def show_ladder():
    return by_hand


def why_rung():
    """What the drop means, and what plausible mistakes predict."""
    adds = {part: cell(time) for part, time in by_hand.evidence.items()}
    return {"meaning": f"Caching it saves {adds[by_hand.bottleneck]} of a batch.",
            "mistakes": {
        f"It costs most and adds {adds['transform']}: the rest hides behind the "
        "GPU.": "transform",
        f"It adds {adds['read']}.": "read", f"It adds {adds['collate']}.": "collate"}}


def why_inline():
    """What the fall means, and what plausible mistakes predict."""
    four_take, one_takes = (cell(four.replace(workers=n).measure(clock=slow).period)
                            for n in (4, 0))
    return {"meaning": f"Four workers share one drive: {four_take} either way.",
            "mistakes": {
        f"That is of the {one_takes} in one process, where everything adds.":
            "by about a third",
        "Perhaps you shared the saving among four workers: they do not bind.":
            "by about a tenth"}}

# %% [markdown]
# ## Climb it
#
# Two workers prepare batches of 32. For each image a worker needs 1 ms to read, 4 ms to decode, 5 ms to
# transform and 0.1 ms to put it into the batch (*collate*). The GPU needs 50 ms for a batch. First
# you cache what is read, then what is decoded, and so on: each is a *rung*.

# %%
predict("ladder-culprit", choices=["read", "decode", "transform", "collate"],
        question="Which step up the ladder brings the largest single drop in the time "
                 "between batches?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# On average a batch is ready when each worker has prepared 16 images. How long does that take with
# nothing cached, with reading cached, and so on? Can a step be shorter than the GPU's own time?
#
# </details>

# %%
pipe = Pipeline(batch_size=32, workers=2, hardware="50 ms")
costs = {"read": "1 ms", "decode": "4 ms", "transform": "5 ms", "collate": "0.1 ms"}
by_hand = pipe.diagnose(clock=SimulatedClock(costs))
reveal("ladder-culprit", by_hand.bottleneck, then=show_ladder, why=why_rung)

# %% [markdown]
# A part *adds* the **difference between two rungs**, and may *cost* more. Decoding adds most.
# Repairing the transforms alone saves more. Below, the outline shows the cost of a part, and the
# filled bar what it adds. Make the GPU slower until a part vanishes. It is hidden, not gone.

# %% tags=["folded"]
START = {"decode": Q_("4 ms"), "transform": Q_("5 ms"), "step": Q_("50 ms")}


def draw(decode=START["decode"], transform=START["transform"], workers=2,
         step=START["step"]):
    shown = {"read": Q_("1 ms"), "decode": decode, "transform": transform,
             "collate": Q_("0.1 ms")}
    found = pipe.replace(workers=workers, hardware=step).diagnose(
        clock=SimulatedClock(shown))
    costs = {part: (32 * time / workers).m_as("ms") for part, time in shown.items()}
    costs["compute"] = step.m_as("ms")
    adds = {part: time.m_as("ms") for part, time in found.evidence.items()}
    gone = [part for part in adds if not adds[part] and costs.get(part)]
    said = f"{'✓ Hidden: ' + ', '.join(gone) + '. ' if gone else ''}{found.summary}"
    return Drawing(svg.cost_bars(costs, adds, title=found.summary), said,
                   found.headers, found.rows)

# %%
explore(draw, after="ladder-culprit", decode=(Q_("0 ms"), Q_("8 ms")),
        transform=(Q_("0 ms"), Q_("8 ms")), workers=[1, 2, 3, 4],
        step=(Q_("10 ms"), Q_("200 ms")))

# %% [markdown]
# <details><summary>Whose idea this is</summary>
#
# [Chaim Rand's](https://towardsdatascience.com/a-caching-strategy-for-identifying-bottlenecks-on-the-data-input-pipeline/),
# Towards Data Science, 2025.
#
# </details>
#
# ## Why not simply look?
#
# A long wait in `next()` never shows *why*, since the work is done in other processes. So people set
# `num_workers=0`, and a profiler shows every part. Say four workers share one drive. In one process
# a batch takes 140 ms: 100 ms for transforms and 40 ms for reading. You make the transforms twice as
# fast and go back to four workers.

# %%
predict("ladder-inline", choices=["by about a third", "by about a tenth", "not at all"],
        question="By how much does the time between batches fall in training, with "
                 "four workers?")

# %% tags=["folded"]
four = Pipeline(batch_size=40, workers=4, storage="100 MB/s", hardware="20 ms")
slow, fast = (SimulatedClock({"transform": time}, sample_size="100 KB")
              for time in ("2.5 ms", "1.25 ms"))


def show_inline():
    better = four.replace(storage="200 MB/s")
    rows = [[n, *(one.replace(workers=n).measure(clock=clock).period
                  for one, clock in ((four, slow), (four, fast), (better, slow)))]
                  for n in (0, 4)]
    table(["workers", "as it is", "transforms twice as fast", "drive twice as fast"],
          rows)
    return loader_timeline(four.measure(clock=slow).trace, batches=10)


saved = 1 - (four.measure(clock=fast).period / four.measure(clock=slow).period).m_as("")
answers = {"by about a third": 1 / 3, "by about a tenth": 1 / 10, "not at all": 0}

# %%
reveal("ladder-inline", min(answers, key=lambda said: abs(answers[said] - saved)),
       then=show_inline, why=why_inline)

# %% [markdown]
# **Setting `num_workers=0` changes the very thing you measure.**
#
# ## Exercise 3.1: what a part adds (4 points)
#
# From the rates of two neighboring rungs (steps a second), how much does the part between them add to each
# batch? If the rung with *more* cached is slower, that is noise, and the answer is 0 ms.
#
# <details><summary>Hint</summary>
#
# First turn each rate into a time. `max` works on quantities; so does `Q_("0 ms")`.
#
# </details>

# %% role="answer" id="added"
def added(rate_running, rate_cached):
    """What a part adds to each batch [time]: its result is cached in the second rate
    [1/time], not in the first."""
    ### BEGIN SOLUTION
    return max(1 / rate_running - 1 / rate_cached, Q_("0 ms")).to("ms")
    ### END SOLUTION

# %% role="test" id="added-test" points=4
check(added(Q_("4 / s"), Q_("5 / s")), Q_("50 ms"),
      what="what a part adds between 5 and 4 steps a second", mistakes={
    "That is the whole batch; how long did it take before this part came in?":
        Q_("250 ms"),
    "Subtract the times, not the rates: a step is not one over a difference of rates.":
        Q_("1 s"),
    "Which of the two rungs is the slower one, and which time is the longer?":
        Q_("0 ms"),
})
check(added(Q_("5 / s"), Q_("4.9 / s")), Q_("0 ms"),
      what="what a part adds that seems to save time", mistakes={
    "A part cannot make batches come sooner: a negative difference is noise.":
        Q_(1000 / 5 - 1000 / 4.9, "ms"),
    "A negative difference is noise, also with its sign changed.":
        Q_(1000 / 4.9 - 1000 / 5, "ms"),
}, means="So two rates tell what the part between them adds.")
### BEGIN HIDDEN TESTS
article_read = Q_(1000 / 0.89 - 1000 / 1.72, "ms")
check(added(Q_("0.89 / s"), Q_("1.72 / s")), article_read, what="what reading adds in the article")
check(added(Q_("60 / min"), Q_("2 / s")), Q_("500 ms"), what="what a part adds between two units", mistakes={
    "Convert both rates to the same unit first.": Q_("0 ms"),
})
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("added", added, final=False)
### BEGIN ENDING
def two_rates(draw):
    time = draw.randint(100, 400)
    return Q_(1 / time, "1/ms"), Q_(1 / (time + draw.randrange(-79, 80, 2)), "1/ms")


ending = 4, "pairs of rates", two_rates
### END ENDING

# %% [markdown]
# ## Exercise 3.2: the suspects in order (4 points)
#
# Given what each part adds, list the parts that starve the GPU, the bottleneck first. Leave out `"compute"`, the
# GPU's own time, and parts that add nothing.
#
# <details><summary>Hint</summary>
#
# `sorted(names, key=evidence.get, reverse=True)` sorts names by their values.
#
# </details>

# %% role="answer" id="suspects"
def suspects(evidence):
    """Names of the parts that add something [list of str], the largest first;
    `evidence` is {name: time}."""
    ### BEGIN SOLUTION
    parts = [part for part, time in evidence.items() if part != "compute" and time > Q_("0 ms")]
    return sorted(parts, key=evidence.get, reverse=True)
    ### END SOLUTION

# %% role="test" id="suspects-test" points=4
def in_order(evidence):
    names = suspects(evidence)
    if isinstance(names, str):
        raise WrongAnswer(f"Return a list of names, not one name. Got {names!r:.60}.")
    if not isinstance(names, (list, tuple)) or {*map(type, names)} - {str}:
        raise WrongAnswer("Return a list of names alone, without their times, "
                          f"got {names!r:.60}.")
    return " > ".join(names)


times = {"read": 4, "decode": 0, "transform": 30, "copy": 16, "compute": 50}
evidence = {part: Q_(time, "ms") for part, time in times.items()}
check(in_order(evidence), "transform > copy > read",
      what="the order of the suspects", mistakes={
    "The GPU's own time is what should be left, so it is no suspect.":
        "compute > transform > copy > read",
    "Sorted, yes. But what the GPU computes is no suspect, and nor is what "
    "adds nothing: choose the names first.":
        "compute > transform > copy > read > decode",
    "The largest comes first.": "read > copy > transform",
    "A part that adds nothing is no suspect.": "transform > copy > read > decode",
    "They are in the order in which a sample meets them; sort by what they add.":
        "read > transform > copy",
    "They are sorted by name; sort by what they add.": "transform > read > copy",
    "Return a list of names, not one name.": " > ".join("transform"),
}, means="So the first adds most, and another part may still cost more.")
### BEGIN HIDDEN TESTS
mixed = {"read": Q_("0.1 s"), "decode": Q_("20 ms"), "compute": Q_("50 ms")}
check(in_order(mixed), "read > decode", what="the order in two units", mistakes={
    "Convert all times to the same unit first.": "decode > read",
})
check(in_order({"read": Q_("0 ms"), "compute": Q_("9 ms")}), "", what="the order when nothing starves")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("suspects", suspects, final=False)
### BEGIN ENDING
def some_evidence(draw):
    parts = draw.sample(["read", "decode", "crop", "collate", "compute"], draw.randint(2, 5))
    times = [draw.choice((0, 400)), *draw.sample(range(1, 300), len(parts) - 1)]
    return [{part: Q_(time, "ms") for part, time in zip(parts, times)}]


ending = 4, "ladders", some_evidence
### END ENDING

# %% [markdown]
# ## On your own machine
#
# Now two threads really decode JPEGs, and somebody added a stage that asks a slow service about each image.
# Every few batches `diagnose` changes what is cached, in random order.

# %% tags=["folded"]
from time import sleep


def ask_service(image):
    """Nothing but waiting: 12 ms for each image."""
    sleep(0.012)
    return image

# %%
usual = photo_transforms()
decode, *transforms = usual
slowed = [decode, Transform("ask service", ask_service), *transforms]
live = Pipeline(dataset=Samples(source=photos("100 KB"), transforms=slowed),
                batch_size=4, workers=2, storage="30 MB/s", hardware="6 ms")
found = live.diagnose(budget="8 s")
show_measured("ladder", found, disturbed=disturbance(found))

# %% [markdown]
# Take that stage out. Which part leads now, and was it there all the time?

# %%
mended = live.replace({"dataset.transforms": usual}).diagnose(budget="6 s")


def show_both():
    table(["part", "with the planted stage", "without"],
          [[part, found.evidence[part], mended.evidence[part]]
           for part in found.evidence])


show_measured("repaired-ladder", show_both, disturbed=disturbance(found, mended))

# %% [markdown]
# Give `diagnose` too little time on purpose:

# %%
hasty = live.diagnose(budget="0.5 s", progress=False)
say(hasty.reason or "Here even that was enough.")

# %% [markdown]
# ## Exercise 3.3: a lead, or noise? (3 points)
#
# Two parts add `first` and `second` to each batch, each known up to its standard error. Does the
# first one lead? It must be larger by *more than twice* the error of the difference, $\sqrt{e_1^2 +
# e_2^2}$.
#
# <details><summary>Hint</summary>
#
# `(a**2 + b**2) ** 0.5` works on quantities. Who leads if the second one is larger?
#
# </details>

# %% role="answer" id="leads"
def leads(first, first_error, second, second_error):
    """Whether the first part adds more than the second, beyond the noise [True or
    False]; all arguments are [time]."""
    ### BEGIN SOLUTION
    error = (first_error**2 + second_error**2) ** 0.5
    return bool(first - second > 2 * error)
    ### END SOLUTION

# %% role="test" id="leads-test" points=3
first, second, other = Q_("30 ms"), Q_("3 ms"), Q_("4 ms")
check(leads(first, second, Q_("19 ms"), other), True,
      what="30 ± 3 ms against 19 ± 4 ms", mistakes={
    "The lead is 11 ms. Did you add the errors as they are? Take the root of the sum "
    "of their squares.": False,
})
check(leads(first, second, Q_("20 ms"), other), False,
      what="30 ± 3 ms against 20 ± 4 ms", mistakes={
    "It is ahead, but not by more than twice the error of the difference.": True,
})
check(leads(Q_("19 ms"), second, first, other), False,
      what="19 ± 3 ms against 30 ± 4 ms", mistakes={
    "The other one leads.": True,
}, means="So a culprit is certain only where its lead is larger than the noise.")
### BEGIN HIDDEN TESTS
check(leads(Q_("30 ms"), Q_("1 ms"), Q_("25 ms"), Q_("3 ms")), False, what="30 ± 1 ms against 25 ± 3 ms")
check(leads(Q_("30 ms"), Q_("3 ms"), Q_("23 ms"), Q_("1 ms")), True, what="30 ± 3 ms against 23 ± 1 ms")
check(leads(Q_("0.05 s"), Q_("1 ms"), Q_("20 ms"), Q_("0.001 s")), True, what="0.05 s against 20 ms")
check(leads(Q_("30 ms"), Q_("1 ms"), Q_("23 ms"), Q_("2 ms")), True, what="30 ± 1 ms against 23 ± 2 ms")
check(leads(Q_("29 ms"), Q_("3 ms"), Q_("19 ms"), Q_("4 ms")), False, what="29 ± 3 ms against 19 ± 4 ms, exactly twice the error")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("leads", leads, final=False)
### BEGIN ENDING
def two_parts(draw):
    second, one, other = (draw.randint(1, 6) for _ in range(3))
    if draw.random() < 0.2:  # a tie
        return Q_("29 ms"), Q_("3 ms"), Q_("19 ms"), Q_("4 ms")
    apart = 2 * (one**2 + other**2) ** 0.5 * draw.choice((0.9, 1.1, 1.3, -0.9, -1.5))
    return Q_(20 + second + apart, "ms"), Q_(one, "ms"), Q_(20 + second, "ms"), Q_(other, "ms")


ending = 3, "pairs of parts", two_parts
### END ENDING

# %% [markdown]
# ## In your own words
#
# With `num_workers=0` a profiler finds augmentation the largest part. What do you measure before you rewrite it? Not graded.

# %% [markdown]
# *Write here.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Cache one part after the other, and subtract times. After each fix, climb again.
#
# **Next:** a ladder that [somebody else has measured](04_published_ladder.ipynb).
