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
# - tell a bottleneck from noise.

# %% role="setup" id="setup-ladder"
from starvelab import Pipeline, Q_, Samples
from starvelab.checks import check
from starvelab.measure import SimulatedClock, Transform, diagnose, photo_transforms
from starvelab.measure import photos
from starvelab.show import loader_timeline, say, svg, table
from starvelab.widgets import Drawing, explore, predict, progress, reveal

# %% [markdown]
# ## Predict
#
# Two workers prepare batches of 32. For each image a worker needs 1 ms to read, 4 ms to decode, 5 ms to transform and
# 0.1 ms to put it into the batch. The accelerator needs 50 ms for a batch. You climb a ladder of caches: first you keep
# what is read, then what is decoded, and so on. Each step up spares one part more, and the next batch comes sooner.

# %%
predict("ladder-culprit", choices=["read", "decode", "transform", "collate"],
        question="Which step up the ladder brings the largest single drop in the time "
                 "between batches?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two workers prepare batches side by side: on average one is ready for each 16 images that a worker prepares. Write down the time for a batch with nothing
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
pipe = Pipeline(batch_size=32, workers=2, hardware="50 ms")
seen = {name: pipe.measure(clock=clock) for name, clock in loaders.items()}
table(["pipeline", "time between batches", "accelerator busy", "loop waits in next()"],
      [[name, record.period, f"{100 * record.utilization:.1f} %",
        f"{100 * record.host_wait:.1f} %"]
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
        question="By how much does the time between batches fall in training, with "
                 "four workers?")

# %%
four = Pipeline(batch_size=40, workers=4, storage="100 MB/s", hardware="20 ms")
slow, fast = (SimulatedClock({"transform": time}, sample_size="100 KB")
              for time in ("2.5 ms", "1.25 ms"))

# %%
def try_both():
    better = four.replace(storage="200 MB/s")
    rows = [[n, *(one.replace(workers=n).measure(clock=clock).period
                  for one, clock in ((four, slow), (four, fast), (better, slow)))]
                  for n in (0, 4)]
    table(["workers", "as it is", "transforms twice as fast", "storage twice as fast"],
          rows)

# %%
def show_inline():
    try_both()
    return loader_timeline(four.measure(clock=slow).trace, batches=10)

# %%
saved = 1 - (four.measure(clock=fast).period / four.measure(clock=slow).period).m_as("")
answers = {"by about a third": 1 / 3, "by about a tenth": 1 / 10, "not at all": 0}
reveal("ladder-inline", min(answers, key=lambda said: abs(answers[said] - saved)),
       then=show_inline)

# %% [markdown]
# Four workers transform side by side, and read one after the other from the one storage: look at the picture. In one process
# nothing runs side by side, so the profile finds transforms the larger part, and they are not what sets the pace.
#
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
# (Towards Data Science, 2025), whose figures you will solve in the next notebook.
#
# ## Climb it by hand
#
# Back to the pipeline of your prediction. A cached part costs nothing, so it is left out.

# %%
def batch_time(**costs):
    """Time between batches [time] when a worker still has these parts to do for each
    image."""
    return pipe.measure(clock=SimulatedClock(costs)).period


rungs = {"nothing": batch_time(read="1 ms", decode="4 ms", transform="5 ms",
                               collate="0.1 ms"),
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
# ## Exercise 3.1: what a part adds (4 points)
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
})
### BEGIN HIDDEN TESTS
article_read = Q_(1000 / 0.89 - 1000 / 1.72, "ms")
check(added(Q_("0.89 / s"), Q_("1.72 / s")), article_read, what="what reading adds in the article")
check(added(Q_("60 / min"), Q_("2 / s")), Q_("500 ms"), what="what a part adds between two units", mistakes={
    "Convert both rates to the same unit first.": Q_("0 ms"),
})
### END HIDDEN TESTS

# %% [markdown]
# ## Exercise 3.2: the suspects in order (4 points)
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
    """Names of the parts that add something [list of str], the largest first;
    `evidence` is {name: time}."""
    ### BEGIN SOLUTION
    parts = [part for part, time in evidence.items() if part != "compute" and time > Q_("0 ms")]
    return sorted(parts, key=evidence.get, reverse=True)
    ### END SOLUTION

# %% role="test" id="suspects-test" points=4
times = {"read": 16, "decode": 0, "transform": 30, "copy": 4, "compute": 50}
evidence = {part: Q_(time, "ms") for part, time in times.items()}
check(" > ".join(suspects(evidence)), "transform > read > copy",
      what="the order of the suspects", mistakes={
    "The accelerator's own time is what should be left, so it is no suspect.":
        "compute > transform > read > copy",
    "Sorted, yes. But what the accelerator computes is no suspect, and nor is what "
    "adds nothing: choose the names first.":
        "compute > transform > read > copy > decode",
    "The largest comes first.": "copy > read > transform",
    "A part that adds nothing is no suspect.": "transform > read > copy > decode",
    "They stand in the order in which a sample meets them; sort by what they add.":
        "read > transform > copy",
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
             rungs["nothing"] - batch_time(**{other: t for other, t in costs.items()
                 if other != part})]
            for part, time in costs.items()]
    table(["part", "costs", "adds on the ladder", "gained if it alone were free"], rows)

# %%
def show_parts():
    compare_parts()
    say("Transforms cost the most, and mending them alone gains the most. On the "
        "ladder they show only what sticks "
        "out above the accelerator: with nothing else to prepare, its own 50 ms hide "
        "the rest of them.")


reveal("ladder-culprit", then=show_parts)

# %% [markdown]
# Keep two things in mind when you read a ladder. **It finds what starves the accelerator, climbing from the source: each
# difference is what you gain once everything before it is mended.** And the part next to the accelerator hides some
# of its cost behind it: parts on the same workers add up, while the accelerator overlaps with them. Where two CPU
# parts are near each other, solve for what they cost before you choose one. You do that in the next notebook.
#
# Move the sliders. The outline is what a part costs, the filled bar what it adds. Make the accelerator slower until a
# part vanishes from the ladder: it is hidden, not gone. What happens when you then make the accelerator faster?

# %%
start = {"decode": Q_("4 ms"), "transform": Q_("5 ms"), "step": Q_("50 ms")}

# %%
def draw(decode=start["decode"], transform=start["transform"], workers=2,
         step=start["step"]):
    shown = {"read": Q_("1 ms"), "decode": decode, "transform": transform,
             "collate": Q_("0.1 ms")}
    found = pipe.replace(workers=workers, hardware=step).diagnose(
        clock=SimulatedClock(shown))
    costs = {part: (32 * time / workers).m_as("ms") for part, time in shown.items()}
    costs["compute"] = step.m_as("ms")
    adds = {part: time.m_as("ms") for part, time in found.evidence.items()}
    return Drawing(svg.cost_bars(costs, adds, title=found.summary), found.summary,
                   found.headers, found.rows)

# %%
explore(draw, after="ladder-culprit", decode=(Q_("0 ms"), Q_("8 ms")),
        transform=(Q_("0 ms"), Q_("8 ms")), workers=[1, 2, 3, 4],
        step=(Q_("10 ms"), Q_("200 ms")))

# %% [markdown]
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
slowed = [decode, Transform("ask service", ask_service), *transforms]
live = Pipeline(dataset=Samples(source=photos("100 KB"), transforms=slowed),
                batch_size=4, workers=2, storage="30 MB/s", hardware="6 ms")
found = live.diagnose(budget="8 s")
found

# %% [markdown]
# Rungs measured one after the other would each have their own luck: while one is measured, another program may want
# the CPU. So `diagnose` keeps one loader running and changes what is cached every few batches, in random order, round
# after round. Each rung meets the same troubles, and what counts is the median.
#
# What it names comes with levers, each with its reason:

# %%
table(["lever", "why it works"], [[lever.name, lever.why]
                                  for lever in found.levers[:3]])

# %% [markdown]
# The list is the usual one against transforms. This stage waits instead of computing, so more workers help even past
# the cores; the ladder cannot see that, CPU use can.
#
# Take the planted stage out and look again. Which part leads now, and did it get slower, or was it there all the
# time?

# %%
mended = live.replace({"dataset.transforms": usual}).diagnose(budget="6 s")
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
hasty = live.diagnose(budget="0.5 s", progress=False)
print("confident:", hasty.confident)
say(hasty.reason)

# %% [markdown]
# It still names a part, and the name may even be right; you just cannot tell by this. What to do: close what else is
# running, give it a longer budget, take smaller batches (more of them fit into the same time), and repeat it: two
# that agree are a better sign than one.
#
# ## Exercise 3.3: a lead, or noise? (3 points)
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
check(leads(first, second, Q_("21 ms"), other), False,
      what="30 ± 3 ms against 21 ± 4 ms", mistakes={
    "It is ahead, but not by more than twice the error of the difference.": True,
})
check(leads(Q_("19 ms"), second, first, other), False,
      what="19 ± 3 ms against 30 ± 4 ms", mistakes={
    "There is a lead, and it is the other one's.": True,
})
### BEGIN HIDDEN TESTS
check(leads(Q_("30 ms"), Q_("1 ms"), Q_("25 ms"), Q_("3 ms")), False, what="30 ± 1 ms against 25 ± 3 ms")
check(leads(Q_("30 ms"), Q_("3 ms"), Q_("23 ms"), Q_("1 ms")), True, what="30 ± 3 ms against 23 ± 1 ms")
check(leads(Q_("0.05 s"), Q_("1 ms"), Q_("20 ms"), Q_("0.001 s")), True, what="0.05 s against 20 ms")
check(leads(Q_("21 ms"), Q_("3 ms"), Q_("19 ms"), Q_("4 ms")), False, what="21 ± 3 ms against 19 ± 4 ms")
check(leads(Q_("30 ms"), Q_("1 ms"), Q_("23 ms"), Q_("2 ms")), True, what="30 ± 1 ms against 23 ± 2 ms")
### END HIDDEN TESTS

# %% [markdown]
# ## What a ladder cannot tell
#
# **A drop may come from a stage that only tipped the balance.** Here the transforms take 46.4 ms of each 50 ms that
# the accelerator needs, and decoding 6.4 ms. Alone, either hides. Together they do not:

# %%
tipped = pipe.diagnose(clock=SimulatedClock(
    {"decode": "0.4 ms", "transform": "2.9 ms"}))
quicker = pipe.diagnose(clock=SimulatedClock(
    {"decode": "0.4 ms", "transform": "2.3 ms"}))
say(tipped.summary)
print(f"With transforms a fifth cheaper the accelerator waits "
      f"{100 * quicker.stall:.1f} % of the time.")

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

# %%
progress()

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
# **Next:** a ladder that somebody else has measured. [Notebook 4](04_published_ladder.ipynb): what does each part cost, and
# what will a change bring?
