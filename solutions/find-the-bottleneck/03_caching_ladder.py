# %% [markdown]
# # 3. The caching ladder
#
# The accelerator waits for its input. Is it reading, decoding, the transforms, putting the batch together, the copy?
# From the training loop they all look the same: the next batch is not there yet. **How do you find the one that
# starves it?**
#
# In about MINUTES minutes you will
#
# - see what a profiler and `num_workers=0` can tell, and what they cannot,
# - climb a ladder of caches by hand, then let `diagnose` climb it on a real pipeline with a planted bottleneck,
# - learn to read differences of time and not ratios, and to tell what a part *adds* from what it *costs*,
# - solve a published table, and check two of its rows that the solution did not use.

# %% role="setup" id="setup-ladder"
from starvelab import Pipeline, Q_
from starvelab.checks import Credit, check
from starvelab.measure import InputPipeline, SimulatedClock, Transform, VirtualAccelerator, VirtualStorage
from starvelab.measure import diagnose, photo_transforms, photos, run
from starvelab.show import loader_timeline, say, svg, table
from starvelab.widgets import Drawing, explore, predict, reveal

# %% [markdown]
# ## Predict
#
# Two workers prepare batches of 32. For each image a worker needs 1 ms to read, 4 ms to decode, 5 ms to transform and
# 0.1 ms to put it into the batch. The accelerator needs 50 ms for a batch. You climb a ladder of caches: first you keep
# what is read, then what is decoded, and so on. Each step up spares one part more, and the next batch comes sooner.

# %%
predict("ladder-culprit", choices=["read", "decode", "transform", "collate"],
        question="Which step up the ladder brings the largest single drop in the time between batches?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two workers share 32 images: each prepares 16 of them for every batch. Write down the time for a batch with nothing
# cached, then with reading cached too, and so on. Can it fall below what the accelerator needs?
#
# </details>
#
# ## Why not simply look?
#
# Here are two pipelines with opposite faults: in one the images are slow to read, in the other slow to transform. The
# lab's `SimulatedClock` computes how they run, exactly, without a thread or a file.

# %%
loaders = {"slow to read": SimulatedClock({"read": "5 ms", "transform": "1 ms"}),
           "slow to transform": SimulatedClock({"read": "1 ms", "transform": "5 ms"})}
pipe = InputPipeline(batch_size=32, workers=2, accelerator=VirtualAccelerator(step_time="50 ms"))
seen = {name: run(pipe, clock=clock) for name, clock in loaders.items()}
table(["pipeline", "time between batches", "accelerator busy", "loop waits in next()"],
      [[name, record.period, f"{100 * record.utilization:.1f} %", f"{100 * record.host_wait:.1f} %"]
       for name, record in seen.items()])

# %% [markdown]
# Not a digit differs. That is all a profiler of the training loop can see: a long wait in `next()`. It shows *that*
# the loop starves and never *why*, since the work is done in other processes.
#
# So people set `num_workers=0`. Now the loop prepares its own batches, and the profiler shows every part. Try it on a
# third pipeline: four workers, batches of 40, a storage that all workers share. In one process the profile is clear:
# of the 140 ms for a batch, 100 ms are transforms and 40 ms reading. You make the transforms twice as fast and go
# back to four workers.

# %%
predict("ladder-inline", choices=["by about a third", "by about a tenth", "not at all"],
        question="By how much does the time between batches fall in training, with four workers?")

# %%
four = InputPipeline(batch_size=40, workers=4, storage=VirtualStorage(bandwidth="100 MB/s"),
                     accelerator=VirtualAccelerator(step_time="20 ms"))
slow, fast = (SimulatedClock({"transform": time}, sample_size="100 KB") for time in ("2.5 ms", "1.25 ms"))


def try_both():
    better = four.replace(storage=VirtualStorage(bandwidth="200 MB/s"))
    rows = [[n, *(run(one.replace(workers=n), clock=clock).period
                  for one, clock in ((four, slow), (four, fast), (better, slow)))] for n in (0, 4)]
    table(["workers", "as it is", "transforms twice as fast", "storage twice as fast"], rows)

# %%
def show_inline():
    try_both()
    say("Four workers transform side by side, and read one after the other from the one storage. In one process "
        "nothing runs side by side, so the profile finds transforms the larger part, and they are not what binds. "
        "Below: each worker is busy or waits for its reads all the time, and the accelerator waits for both.")
    return loader_timeline(run(four, clock=slow).trace, batches=10)

# %%
saved = 1 - (run(four, clock=fast).period / run(four, clock=slow).period).m_as("")
answers = {"by about a third": 1 / 3, "by about a tenth": 1 / 10, "not at all": 0}
reveal("ladder-inline", min(answers, key=lambda said: abs(answers[said] - saved)), then=show_inline)

# %% [markdown]
# **Setting `num_workers=0` changes the very thing you measure.** Whatever you do to find a bottleneck has to leave
# the workers, the storage and the accelerator as they are.
#
# ## The ladder
#
# Leave everything running as in training, and cache the result of one part after the other:
#
# | rung: what is cached | what still runs |
# |---|---|
# | nothing | read, decode, transform, collate, copy, compute |
# | raw sample | decode, transform, collate, copy, compute |
# | decoded sample | transform, collate, copy, compute |
# | processed sample | collate, copy, compute |
# | host batch | copy, compute |
# | device batch | compute |
#
# *Collate* puts the samples together into a batch. The last rung is the best that any loader can do. Between two
# rungs exactly one part comes in, and the **difference of their times between batches** is what that part adds.
#
# The idea is Chaim Rand's, in [A Caching Strategy for Identifying Bottlenecks on the Data Input
# Pipeline](https://towardsdatascience.com/a-caching-strategy-for-identifying-bottlenecks-on-the-data-input-pipeline/)
# (Towards Data Science, 2025), whose figures you will solve below.
#
# ## Climb it by hand
#
# Back to the pipeline of your prediction. A cached part costs nothing, so it is left out.

# %%
def batch_time(**costs):
    """Time between batches [time] when a worker still has these parts to do for each image."""
    return run(pipe, clock=SimulatedClock(costs)).period


rungs = {"nothing": batch_time(read="1 ms", decode="4 ms", transform="5 ms", collate="0.1 ms"),
         "raw sample": batch_time(decode="4 ms", transform="5 ms", collate="0.1 ms"),
         "decoded sample": batch_time(transform="5 ms", collate="0.1 ms"),
         "processed sample": batch_time(collate="0.1 ms"),
         "host batch": batch_time(), "device batch": batch_time()}

# %% [markdown]
# `diagnose` takes these six times as they are, subtracts, and names the largest step of the ladder. (You meet below
# why that is not always the part that costs most.)

# %%
by_hand = diagnose(rungs)
reveal("ladder-culprit", by_hand.bottleneck, then=lambda: by_hand)

# %% [markdown]
# ## Exercise 3.1: what a part adds (5 points)
#
# Ladders are usually noted as rates: so many steps a second. From the rates of two neighboring rungs, how much does
# the part between them add to each batch? Measured rates wobble; where the rung with *more* cached came out slower,
# the part adds nothing that can be told from noise, and the answer is 0 ms.
#
# <details><summary>Hint</summary>
#
# First turn each rate into the time of one batch. `max` works on quantities; so does `Q_("0 ms")`.
#
# </details>

# %% role="answer" id="added"
def added(rate_running, rate_cached):
    """What a part adds to each batch [time]: its result is cached in the second rate [1/time], not in the first."""
    ### BEGIN SOLUTION
    return max(1 / rate_running - 1 / rate_cached, Q_("0 ms")).to("ms")
    ### END SOLUTION

# %% role="test" id="added-test" points=5
check(added(Q_("4 / s"), Q_("5 / s")), Q_("50 ms"), what="what a part adds between 5 and 4 steps a second", mistakes={
    "That is the whole batch; how long did it take before this part came in?": Q_("250 ms"),
    "Subtract the times, not the rates: a step is not one over a difference of rates.": Q_("1 s"),
    "Which of the two rungs is the slower one, and which time is the longer?": Q_("0 ms"),
})
check(added(Q_("5 / s"), Q_("4.9 / s")), Q_("0 ms"), what="what a part adds that seems to save time", mistakes={
    "A part cannot make batches come sooner: a negative difference is noise.": Q_(1000 / 5 - 1000 / 4.9, "ms"),
    "A negative difference is noise, also with its sign changed.": Q_(1000 / 4.9 - 1000 / 5, "ms"),
})
### BEGIN HIDDEN TESTS
article_read = Q_(1000 / 0.89 - 1000 / 1.72, "ms")
check(added(Q_("0.89 / s"), Q_("1.72 / s")), article_read, what="what reading adds in the article")
check(added(Q_("60 / min"), Q_("2 / s")), Q_("500 ms"), what="what a part adds between two units", mistakes={
    "Convert both rates to the same unit first.": Q_("0 ms"),
})
### END HIDDEN TESTS

# %% [markdown]
# ## Exercise 3.2: the suspects in order (5 points)
#
# Given what each part adds, list the parts that starve the accelerator: the bottleneck first, then the runner-up, down
# to the least. What the accelerator itself computes is no part of the list, and nor is what adds nothing.
#
# <details><summary>Hint</summary>
#
# `sorted(names, key=evidence.get, reverse=True)` sorts names by what stands beside them.
#
# </details>

# %% role="answer" id="suspects"
def suspects(evidence):
    """Names of the parts that add something [list of str], the largest first; `evidence` is {name: time}."""
    ### BEGIN SOLUTION
    parts = [part for part, time in evidence.items() if part != "compute" and time > Q_("0 ms")]
    return sorted(parts, key=evidence.get, reverse=True)
    ### END SOLUTION

# %% role="test" id="suspects-test" points=5
times = {"read": 16, "decode": 0, "transform": 30, "copy": 4, "compute": 50}
evidence = {part: Q_(time, "ms") for part, time in times.items()}
check(" > ".join(suspects(evidence)), "transform > read > copy", what="the order of the suspects", mistakes={
    "The accelerator's own time is what should be left, so it is no suspect.": "compute > transform > read > copy",
    "The largest comes first.": "copy > read > transform",
    "A part that adds nothing is no suspect.": "transform > read > copy > decode",
    "They stand in the order in which a sample meets them; sort by what they add.": "read > transform > copy",
    "A list of names is asked for, not one name.": " > ".join("transform"),
})
### BEGIN HIDDEN TESTS
mixed = {"read": Q_("0.1 s"), "decode": Q_("20 ms"), "compute": Q_("50 ms")}
check(" > ".join(suspects(mixed)), "read > decode", what="the order in two units", mistakes={
    "Convert all times to the same unit first.": "decode > read",
})
check(" > ".join(suspects({"read": Q_("0 ms"), "compute": Q_("9 ms")})), "", what="the order when nothing starves")
### END HIDDEN TESTS

# %% [markdown]
# ## What a part adds, and what it costs
#
# For the same pipeline: what each part *costs* (its time for 32 images, shared by two workers), what it *adds* on the
# ladder, and what you would gain by making this one part free and leaving all others as they are.

# %%
costs = {"read": "1 ms", "decode": "4 ms", "transform": "5 ms", "collate": "0.1 ms"}


def compare_parts():
    rows = [[part, 32 * Q_(time) / 2, by_hand.evidence[part],
             rungs["nothing"] - batch_time(**{other: t for other, t in costs.items() if other != part})]
            for part, time in costs.items()]
    table(["part", "costs", "adds on the ladder", "gained if it alone were free"], rows)

# %%
def show_parts():
    compare_parts()
    say("Transforms cost the most, and mending them alone gains the most. On the ladder they show only what sticks "
        "out above the accelerator: with nothing else to prepare, its own 50 ms hide the rest of them.")


reveal("ladder-culprit", then=show_parts)

# %% [markdown]
# Keep two things in mind when you read a ladder. **It finds what starves the accelerator, climbing from the source: each
# difference is what you gain once everything before it is mended.** And the part next to the accelerator hides some
# of its cost behind it: parts on the same workers add up, while the accelerator overlaps with them. Where two CPU
# parts are near each other, solve for what they cost before you choose one. You do that below.
#
# Move the sliders. The outline is what a part costs, the filled bar what it adds. Make the accelerator slower until a
# part vanishes from the ladder: it is hidden, not gone. What happens when you then make the accelerator faster?

# %%
start = {"decode": Q_("4 ms"), "transform": Q_("5 ms"), "step": Q_("50 ms")}


def bar(row, part, cost, adds, scale):
    """One row: the name, an outline for what a part costs, a bar for what it adds, and both figures [ms]."""
    y = 8 + 34 * row
    color = "#009E73" if part == "compute" else "#0072B2"
    return (f'<text x="100" y="{y + 17}" text-anchor="end">{part}</text>'
            f'<rect x="110" y="{y}" width="{scale * adds:.1f}" height="24" fill="{color}"/>'
            f'<rect x="110" y="{y}" width="{scale * cost:.1f}" height="24" fill="none" stroke="currentColor"/>'
            f'<text x="452" y="{y + 17}">costs {cost:.1f}, adds {adds:.1f} ms</text>')

# %%
def draw(decode=start["decode"], transform=start["transform"], workers=2, step=start["step"]):
    shown = {"read": Q_("1 ms"), "decode": decode, "transform": transform, "collate": Q_("0.1 ms")}
    moved = pipe.replace(workers=workers, accelerator=VirtualAccelerator(step_time=step))
    found = diagnose(moved, clock=SimulatedClock(shown))
    each = {part: (32 * time / workers).m_as("ms") for part, time in shown.items()} | {"compute": step.m_as("ms")}
    scale = 330 / max(each.values())
    bars = "".join(bar(i, part, cost, found.evidence[part].m_as("ms"), scale)
                   for i, (part, cost) in enumerate(each.items()))
    said = found.summary
    told = ", ".join(f"{part} costs {cost:.1f} ms" for part, cost in each.items())
    return Drawing(svg.frame(bars, height=180, title=said, description=told), said, found.headers, found.rows)

# %%
explore(draw, after="ladder-culprit", decode=(Q_("0 ms"), Q_("8 ms")), transform=(Q_("0 ms"), Q_("8 ms")),
        workers=[1, 2, 3, 4], step=(Q_("10 ms"), Q_("200 ms")))

# %% [markdown]
# ## A published ladder
#
# Rand's article trains a small network on one A10G with 4 virtual CPUs, 4 workers and batches of 256. The images are
# random numbers of 1024 x 1024 pixels, so that *reading* one means generating it; there is nothing to decode. It
# measured these steps a second:

# %%
article = {"nothing": Q_("0.89 / s"), "raw sample": Q_("1.72 / s"), "processed sample": Q_("3.23 / s"),
           "host batch": Q_("3.33 / s"), "device batch": Q_("3.45 / s")}
rates = list(article.values())
table(["cached", "steps a second", "time between batches", "times the rate of the row above"],
      [[name, f"{rate.m_as('1/s'):.2f}", (1 / rate).to("ms"), before and f"{(rate / before).m_as(''):.2f}"]
       for (name, rate), before in zip(article.items(), [None, *rates], strict=False)])
diagnose(article)

# %% [markdown]
# (What it says to try is the usual list against reading. It does not fit here: reading means generating numbers, and no
# storage takes part.)
#
# As ratios, the two large steps look alike. As times, one is twice the other. **Ratios mislead because they depend on
# where you stand**: 1 ms more is a tenth of 10 ms and a hundredth of 100 ms, and costs the same. Times add up to the
# whole; ratios do not.
#
# The article next made the transforms faster. With a raw sample cached the rate then rose from 1.72 to 3.23, which is
# as fast as with a processed one. Reading was left as it was.

# %%
predict("ladder-fix", choices=["it stays at 0.89", "it rises, to less than 2", "it rises to 3.23 as well"],
        question="With nothing cached, the rate was 0.89 steps a second. What becomes of it after this fix?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# The same four workers read *and* transform. How long would they take for a batch if the transforms took no time at
# all?
#
# </details>
#
# ## Exercise 3.3: solve for the costs (6 points, in parts)
#
# With nothing cached and with a raw sample cached, the workers cannot keep up: they set the pace, and the
# accelerator's time is hidden behind theirs. With a processed sample cached, the accelerator sets it. How long does
# one worker take to *read* one image, and how long to *transform* it? Neglect collating.
#
# <details><summary>Hint 1</summary>
#
# With a raw sample cached, what do the workers still do, and for how long does a batch keep them all?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# If four workers need 100 ms for 8 images, each has 2 images in these 100 ms: 50 ms an image. You do not need all
# three rates.
#
# </details>

# %% role="answer" id="solve-costs"
def solve_costs(rates, batch_size, workers):
    """Times [time] of one worker to read and to transform an image; `rates` is {what is cached: [1/time]}."""
    ### BEGIN SOLUTION
    share = workers / batch_size
    return share * (1 / rates["nothing"] - 1 / rates["raw sample"]), share / rates["raw sample"]
    ### END SOLUTION

# %% role="test" id="solve-costs-test" points=6
credit, easy = Credit(6), ({"nothing": Q_("0.8 / s"), "raw sample": Q_("2 / s"), "processed sample": Q_("4 / s")}, 100, 5)
credit.part(2, "reading", lambda: check(solve_costs(*easy)[0], Q_("37.5 ms"), what="The time to read", mistakes={
    "That is what the part adds to a whole batch with all five workers; what does one image cost one worker?": Q_("750 ms"),
    "With nothing cached a worker reads and transforms: take the transforms away.": Q_("62.5 ms"),
    "A batch has 100 images.": Q_("3.75 s"),
    "Five workers share the batch, so each image keeps one of them for longer than that.": Q_("7.5 ms")}))
credit.part(2, "transforms", lambda: check(solve_costs(*easy)[1], Q_("25 ms"), what="The time to transform", mistakes={
    "That is what the part adds to a whole batch with all five workers; what does one image cost one worker?": Q_("250 ms"),
    "That is what transforms add. The rest of what they cost hides behind the accelerator.": Q_("12.5 ms"),
    "A batch has 100 images, not one.": Q_("2.5 s"),
    "Five workers share the batch: in the time of a batch each has only its share of the images.": Q_("5 ms")}))
### BEGIN HIDDEN TESTS
real = {"nothing": Q_("0.89 / s"), "raw sample": Q_("1.72 / s"), "processed sample": Q_("3.23 / s")}, 256, 4
read_cost = Q_((1 / 0.89 - 1 / 1.72) * 1000 * 4 / 256, "ms")
work = Q_(1000 * 4 / 256 / 1.72, "ms")
credit.part(1, "the article's reading", lambda: check(solve_costs(*real)[0], read_cost, what="The time to read"))
credit.part(1, "the article's transforms", lambda: check(solve_costs(*real)[1], work, what="The time to transform"))
### END HIDDEN TESTS
credit.total()

# %% [markdown]
# ## Exercise 3.4: predict the rate (6 points)
#
# Now the other way round: from what an image costs to read and to transform, predict the steps a second. Use the rule
# of the first assignment: *stages on one resource add, stages on different resources overlap*. Reading and
# transforming share the workers; the accelerator is another resource.
#
# <details><summary>Hint</summary>
#
# How long do the workers take for a batch, and how long the accelerator? The longer one is the time between batches.
#
# </details>

# %% role="answer" id="predict-rate"
def steps_per_second(read, transform, batch_size, workers, accelerator_step):
    """Steps a second [1/time]; `read` and `transform` [time] are one worker's for one image."""
    ### BEGIN SOLUTION
    workers_time = (read + transform) * batch_size / workers
    return (1 / max(workers_time, accelerator_step)).to("1/s")
    ### END SOLUTION

# %% role="test" id="predict-rate-test" points=6
busy = steps_per_second(Q_("4 ms"), Q_("6 ms"), 100, 5, Q_("110 ms"))
check(busy, Q_("5 / s"), what="the rate behind slow workers", mistakes={
    "That takes the slowest of three. Reading and transforming share the workers, so they add.": Q_(1 / 0.12, "1/s"),
    "You added the accelerator's time, and it overlaps with the workers'.": Q_(1 / 0.31, "1/s"),
    "The slower side sets the pace, not the faster.": Q_(1 / 0.11, "1/s"),
    "Five workers share the batch.": Q_("1 / s"),
    "That is images a second, not steps.": Q_("500 / s"),
})
idle = steps_per_second(Q_("1 ms"), Q_("2 ms"), 100, 5, Q_("0.1 s"))
check(idle, Q_("10 / s"), what="the rate of quick workers", mistakes={
    "However quick the workers are, the accelerator needs its time.": Q_(1 / 0.06, "1/s"),
})
### BEGIN HIDDEN TESTS
load, mended = 1000 / 0.89 - 1000 / 1.72, 1000 / 1.28 - 1000 / 0.89 + 1000 / 1.72
images = [Q_(time / 64, "ms") for time in (load, mended, load / 16)]
step = Q_(1000 / 3.23, "ms")
check(steps_per_second(images[0], images[1], 256, 4, step), Q_("1.28 / s"), what="the rate after faster transforms")
check(steps_per_second(Q_("0 ms"), images[1], 256, 4, step), Q_("3.23 / s"), what="the rate with a raw sample cached")
check(steps_per_second(images[2], images[1], 256, 4, step), Q_("3.23 / s"), what="the rate with small raw images")
### END HIDDEN TESTS

# %% [markdown]
# ## The article's table, solved
#
# Eight measured rates, six unknown times: compute, copy, the loader's overhead for a batch, reading, the transforms,
# the faster transforms. Six rows fix them. The last two were not used and are *predicted*, by the same `Pipeline` as in
# the first assignment: after the faster transforms, the raw images are also made 16 times smaller. (Both come out at
# the accelerator's own pace, a rate that went in with another row. So they test less than they seem: only that the
# workers are fast enough there.)

# %%
def apart(without, with_it):
    """What comes in between two rates of steps a second, in ms."""
    return 1000 / with_it - 1000 / without


copy, overhead = apart(3.45, 3.33), apart(3.33, 3.23)
read, transform = apart(1.72, 0.89), 1000 / 1.72
faster = 1000 / 1.28 - read

# %%
def steps(after_compute, by_workers):
    """Steps a second [a number] of the model; both are [ms] of a batch, the second what all workers take for it."""
    model = Pipeline(model=None, hardware=None, batch_size=256, workers=4, cores=4,
                     accelerator_rate=Q_(256 * 3.45, "img/s"), step_overhead=Q_(after_compute, "ms"),
                     cpu_time=Q_(by_workers * 4 / 256, "ms"))
    return model.solve().throughput.m_as("img/s") / 256

# %%
def eight_rows():
    rows = [["device batch", 3.45, steps(0, 0.01), "compute"], ["host batch", 3.33, steps(copy, 0.01), "copy"]]
    rows += [[name, measured, steps(copy + overhead, work), use] for name, measured, work, use in (
        ("processed sample", 3.23, 0.01, "overhead"), ("raw sample", 1.72, transform, "transform"),
        ("nothing", 0.89, transform + read, "read"),
        ("nothing, faster transforms", 1.28, faster + read, "faster transform"),
        ("raw sample, faster transforms", 3.23, faster, "predicted"),
        ("nothing, both, small images", 3.23, faster + read / 16, "predicted"))]
    table(["cached", "measured", "model", "used to find"], [[a, f"{b:.2f}", f"{c:.2f}", d] for a, b, c, d in rows])

# %%
def show_solved():
    eight_rows()
    batch = {"compute": 1000 / 3.45, "copy": copy, "overhead": overhead}
    image = {"read": read / 64, "transform": transform / 64, "faster transform": faster / 64}
    for each, headers in ((batch, ["for a batch", "in all"]), (image, ["for an image", "in one worker"])):
        print()
        table(headers, [[part, Q_(time, "ms")] for part, time in each.items()])
    say("The transforms cost more than reading, although the ladder says that reading adds twice as much.")

# %%
after_fix = steps(copy + overhead, faster + read)
below = {"it stays at 0.89": 0.9, "it rises, to less than 2": 2, "it rises to 3.23 as well": 4}
reveal("ladder-fix", next(said for said, most in below.items() if after_fix < most), then=show_solved)

# %% [markdown]
# The model is one line: *the longer of compute + copy + overhead, and of what the workers do*. The copy stands with
# compute because here both wait in one queue on the GPU, and so they add.
#
# Two other models are tempting. **The slowest stage sets the pace**, each stage by itself: then reading alone must
# explain the rate with nothing cached. **Everything adds**: then each difference is the cost of one stage. What do
# they say of the rate after the fix?

# %%
def show_others():
    before, gpu = 1000 / 0.89, 1000 / 3.23
    table(["model", "reading", "after the fix"], [
        ["the slowest stage", Q_(before, "ms"), "0.89 steps/s: faster transforms change nothing"],
        ["everything adds", Q_(read, "ms"), f"at most {1000 / (read + gpu):.2f} steps/s, even with free transforms"],
        ["workers add, accelerator overlaps", Q_(read, "ms"), f"1.28 steps/s with transforms of {faster:.0f} ms"]])
    say(f"Measured were 1.28. To get there, a model in which everything adds needs transforms of "
        f"{1000 / 1.28 - read - gpu:.1f} ms: a negative time.")


reveal("ladder-fix", then=show_others)

# %% [markdown]
# And the hidden stage: after the fix, with a raw sample cached, the transforms added *nothing*, since the accelerator
# took longer. With nothing cached they still cost all four workers a good part of each batch. **Hidden is not free: a
# stage behind a slower one shows when that one is mended**, or when something else comes to share its resource.
#
# ## On your own machine
#
# Now a real pipeline: JPEGs of about 100 KB, decoded and augmented by two worker threads, a storage of 30 MB/s, an
# accelerator that needs 6 ms for a batch of 4 (the last two are simulated, and only take time). Somebody added a
# stage that asks a slow service about each image.

# %%
from time import sleep


def ask_service(image):
    """Nothing but waiting: 12 ms for each image."""
    sleep(0.012)
    return image

# %%
usual = photo_transforms()
decode, *transforms = usual
live = InputPipeline(samples=photos("100 KB"), transforms=[decode, Transform("ask service", ask_service), *transforms],
                     batch_size=4, workers=2, storage=VirtualStorage(bandwidth="30 MB/s"),
                     accelerator=VirtualAccelerator(step_time="6 ms"))
found = diagnose(live, budget="8 s")
found

# %% [markdown]
# Rungs measured one after the other would each have their own luck: while one is measured, another program may want
# the CPU. So `diagnose` keeps one loader running and changes what is cached every few batches, in random order, round
# after round. Each rung meets the same troubles, and what counts is the median.
#
# What it names comes with levers, each with its reason:

# %%
table(["lever", "why it works"], [[lever.name, lever.why] for lever in found.levers[:3]])

# %% [markdown]
# The list is the usual one against transforms. This stage waits instead of computing, so more workers help even past
# the cores; the ladder cannot see that, CPU use can.
#
# Take the planted stage out and look again. Which part leads now, and did it get slower, or was it there all the
# time?

# %%
mended = diagnose(live.replace(transforms=usual), budget="6 s")
table(["part", "with the planted stage", "without"],
      [[part, found.evidence[part], mended.evidence[part]] for part in found.evidence])
say(mended.summary)

# %% [markdown]
# ## When not to believe it
#
# A diagnosis that is not certain says so: `confident` is `False`, and `reason` says why. (Some words in it: a *block* is a
# short stretch on one rung, a *round* is one block on each rung, and a *window* is a stretch between two looks at the
# clock, here a block.) The reasons: other programs used much of the CPU, the windows of a rung differ too much, too few
# windows or too few rounds fitted into the time, or the bottleneck leads the runner-up by less than the noise. Give it too
# little time on purpose:

# %%
hasty = diagnose(live, budget="0.5 s", progress=False)
print("confident:", hasty.confident)
say(hasty.reason)

# %% [markdown]
# It still names a part, and the name may even be right; you just cannot tell by this. What to do: close what else is
# running, give it a longer budget, take smaller batches (more of them fit into the same time), and repeat it: two
# that agree are a better sign than one.
#
# ## Exercise 3.5: a lead, or noise? (4 points)
#
# Two parts add `first` and `second` to each batch, each known up to its standard error. Does the first one lead? The
# rule of `diagnose`: the lead must be *more than twice* the standard error of the difference, which for independent
# errors is $\sqrt{e_1^2 + e_2^2}$.
#
# <details><summary>Hint</summary>
#
# `(a**2 + b**2) ** 0.5` works on quantities. Who leads if the second one is larger?
#
# </details>

# %% role="answer" id="leads"
def leads(first, first_error, second, second_error):
    """Whether the first part adds more than the second, beyond the noise [True or False]; all arguments are [time]."""
    ### BEGIN SOLUTION
    error = (first_error**2 + second_error**2) ** 0.5
    return bool(first - second > 2 * error)
    ### END SOLUTION

# %% role="test" id="leads-test" points=4
first, second, other = Q_("30 ms"), Q_("3 ms"), Q_("4 ms")
check(leads(first, second, Q_("19 ms"), other), True, what="30 ± 3 ms against 19 ± 4 ms", mistakes={
    "The lead is 11 ms. Did you add the errors as they are? Take the root of the sum of their squares.": False,
})
check(leads(first, second, Q_("22 ms"), other), False, what="30 ± 3 ms against 22 ± 4 ms", mistakes={
    "It is ahead, but not by more than twice the error of the difference.": True,
})
check(leads(Q_("19 ms"), second, first, other), False, what="19 ± 3 ms against 30 ± 4 ms", mistakes={
    "There is a lead, and it is the other one's.": True,
})
### BEGIN HIDDEN TESTS
check(leads(Q_("30 ms"), Q_("1 ms"), Q_("25 ms"), Q_("3 ms")), False, what="30 ± 1 ms against 25 ± 3 ms")
check(leads(Q_("30 ms"), Q_("3 ms"), Q_("21 ms"), Q_("4 ms")), False, what="30 ± 3 ms against 21 ± 4 ms")
check(leads(Q_("30 ms"), Q_("3 ms"), Q_("23 ms"), Q_("1 ms")), True, what="30 ± 3 ms against 23 ± 1 ms")
check(leads(Q_("0.05 s"), Q_("1 ms"), Q_("20 ms"), Q_("0.001 s")), True, what="0.05 s against 20 ms")
### END HIDDEN TESTS

# %% [markdown]
# ## What a ladder cannot tell
#
# **A drop may come from a stage that only tipped the balance.** Here the transforms take 46.4 ms of each 50 ms that
# the accelerator needs, and decoding 6.4 ms. Alone, either hides. Together they do not:

# %%
tipped = diagnose(pipe, clock=SimulatedClock({"decode": "0.4 ms", "transform": "2.9 ms"}))
quicker = diagnose(pipe, clock=SimulatedClock({"decode": "0.4 ms", "transform": "2.3 ms"}))
say(tipped.summary)
print(f"With transforms a fifth cheaper the accelerator waits {100 * quicker.stall:.1f} % of the time.")

# %% [markdown]
# Decoding takes the blame, as it comes in last. The workers were nearly full before, and the transforms that filled
# them are the better place to start. Rand's article warns of this, and of two more:
#
# - **One cached sample is not representative.** If sizes vary, a ladder climbed on a small image promises too much.
#   `diagnose` keeps several samples of each rung; how many do justice to your data is for you to judge.
# - **Work may depend on the data.** A model that skips padding, or one with routing between experts, computes
#   differently on one batch over and over than on all the data. Then the last rung is no upper bound.
#
# And one of our own: **a rung that is cached takes memory, and memory is a resource too.** A cache that does not fit
# makes a ladder of swapping.
#
# ## In your own words
#
# A colleague's profiler says that 80 % of the time goes into `next()`, and with `num_workers=0` that augmentation is
# the largest part. They are about to rewrite the augmentation. What do you ask them to measure first, and how would
# its result change your advice? Three sentences. Nobody marks this.

# %% [markdown]
# *Double-click here and write.*

# %% [markdown]
# ## Take away
#
# - A wait in `next()` says that the loop starves, not why; `num_workers=0` changes what is measured.
# - Cache one part after the other, leave all else running, and subtract times between batches. Never compare ratios.
# - What a part adds is what sticks out above the accelerator; what it costs may be more. Workers' parts add, the
#   accelerator overlaps.
# - Hidden is not free: after each fix, climb again.
# - A bottleneck needs a lead beyond the noise; without it the honest answer is "not certain".
#
# **Next:** the bottleneck has a name. What do you do about it? [Notebook 4](04_pull_the_levers.ipynb): pull the levers.
