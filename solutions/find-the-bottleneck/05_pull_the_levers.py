# %% [markdown]
# # 5. Pull the levers
#
# The ladder names the part that starves the accelerator. That does not say what to do: there are some twenty things to change,
# and most of them do nothing for *your* pipeline. **Which lever do you pull, how do you know that it is the one, and what does
# it uncover?**
#
# In about MINUTES minutes you will
#
# - see how far a loader can fall behind what it could deliver on average,
# - switch most levers on and off on one simulated training job, and watch its timeline,
# - write a function that finds the lever that gains most,
# - say what waiting costs, and what a lever may cost.

# %% role="setup" id="setup-levers"
import numpy as np  # noqa: F401 (for your answers too)

from starvelab import PUBLISHED, Accelerator, Drive, Handover, Hardware, Jitter
from starvelab import Link, Models, Pipeline, Q_, Samples, Workers
from starvelab.checks import Credit, check
from starvelab.measure import Transform, photo_transforms, photos
from starvelab.show import loader_timeline, svg, table
from starvelab.tables import percent
from starvelab.widgets import Drawing, explore, predict, progress, reveal

# %% [markdown]
# ## Predict
#
# One sample in a hundred takes 0.4 s longer than the others: a slow disk, a huge image, a retry over the network. Two workers
# prepare batches of 8, each with two batches ordered ahead; the accelerator computes for 20 ms on each. The workers' average
# is not quite enough: by average times the accelerator would be busy 88.4 % of the time.

# %%
predict("slow-samples", unit="%", question="How much of the time is the accelerator "
                                           "busy, in percent?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Batches arrive in the order in which they were asked for. What happens to the finished batches behind a late one? How many
# steps of 20 ms can the accelerator do meanwhile?
#
# </details>
#
# ## See it

# %%
naps = Jitter(slow_share=0.01, slow_time="400 ms")
slow = Pipeline(dataset=Samples(cpu_time=Q_(13.25 / 8, "ms"), jitter=naps),
                batch_size=8, workers=Workers(2, prefetch=2), hardware="20 ms")
TWO = {"as it is": {}, "deeper queue (8 each)": {"workers.prefetch": 8},
       "no fixed order": {"workers.in_order": False},
       "both": {"workers.prefetch": 8, "workers.in_order": False}}
busy = slow.simulate(batches=400, replicas=200, warm_up=0).utilization
once = {"batches": 200, "replicas": 1, "warm_up": 0}
reveal("slow-samples", Q_(100 * busy, "%"),
       then=lambda: loader_timeline(slow.simulate(seed=11, **once), batches=40))

# %% [markdown]
# (The picture is one run of 40 batches, in which the accelerator may be busier or less busy than in the average of 200 runs.)
#
# The cross-hatched blue in the middle lane is the reason: batches that are *finished*, and held back, because an earlier one
# is missing. While it is missing the other worker fills its queue and then stops, too. Nobody computes, nobody prepares.
#
# Two levers, and neither makes anything faster. A **deeper queue** (`prefetch_factor`) covers a delay as long as what is in
# it: it has to be filled first, so the workers must be faster than the accelerator between two delays. **No fixed order**
# (`in_order=False`) lets the other worker's batches pass.

# %%
def show_levers():
    sims = {name: slow.replace(changes).simulate(batches=400, replicas=200, warm_up=0)
            for name, changes in TWO.items()}
    table(["lever", "busy", "throughput"],
          [[name, percent(s.utilization), s.throughput] for name, s in sims.items()])
    both = slow.replace(TWO["both"])
    return loader_timeline(both.simulate(seed=11, **once), batches=40)


reveal("slow-samples", then=show_levers)

# %% [markdown]
# Does the simulation match a real run? Here is one: two threads that decode real images, and at every hundredth sample fall
# asleep for 0.4 s. It takes about ten seconds. Your threads do not take the simulation's 13.25 ms, and their slow samples come in
# even steps instead of by chance, so look at the order of the two rather than at their digits.

# %%
from itertools import count
from time import sleep

samples_seen = count()


def nap(array):
    sleep(0.4 if next(samples_seen) % 100 == 99 else 0)
    return array

# %%
def show_measured():
    transforms = (*photo_transforms(send="uint8"), Transform("nap", nap))
    pipe = Pipeline(dataset=Samples(source=photos("100 KB"), transforms=transforms),
                    batch_size=8, hardware="20 ms", workers=Workers(2, kind="threads"))
    records = {name: pipe.replace(TWO[name]).measure(seconds="4 s", progress=False)
               for name in ("as it is", "both")}
    table(["measured here", "busy", "throughput"],
          [[n, percent(r.utilization), r.throughput] for n, r in records.items()])


reveal("slow-samples", then=show_measured)

# %% [markdown]
# ## Exercise 5.1: how many batches are late? (3 points)
#
# A batch is late as soon as *one* of its samples is slow. What share of the batches is that?
#
# <details><summary>Hint 1</summary>
#
# It is easier to say what share of the batches has no slow sample.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A sample is fast with probability `1 - share`, and the samples of a batch do not know of each other.
#
# </details>

# %% role="answer" id="late-batches"
def late_batches(batch_size, share):
    """The share [a plain number from 0 to 1] of batches with a slow sample; `share` is
    that of slow samples."""
    ### BEGIN SOLUTION
    return 1 - (1 - share) ** batch_size
    ### END SOLUTION

# %% role="test" id="late-batches-test" points=3
check(late_batches(20, 0.02), 1 - 0.98**20, what="the share of late batches", mistakes={
    "Shares do not add up: some batches have two slow samples, and with 100 samples it "
    "would be more than all.": 0.4,
    "That is the share of samples; one of them makes its whole batch late.": 0.02,
    "That is the share of batches that are on time.": 0.98**20,
    "Then every sample of the batch would be slow; one is enough.": 0.02**20,
    "That is a percentage; return a share from 0 to 1.": 100 - 100 * 0.98**20,
})
### BEGIN HIDDEN TESTS
check(late_batches(8, 0.01), 0.0772553, what="the share of late batches of 8")
check(late_batches(256, 0.01), 0.923691, what="the share of late batches of 256")
check(late_batches(1, 0.3), 0.3, what="the share of late batches of a single sample")
check(late_batches(64, 0.0), 0.0, what="the share of late batches without slow samples")
### END HIDDEN TESTS

# %% [markdown]
# In a large batch nearly always one sample is slow, and yet large batches suffer *less*: where all times grow with the batch, the
# delay of one sample weighs less, and the delays of many come near their average. So the share of late batches measures no
# harm. It says what remains to be cured: where every batch is late, being late is the average, and no queue covers an average.
#
# ## All the levers
#
# One list for each part of the pipeline, as the ladder names them; `diagnose(...)` picks its advice from here. Each says how to
# tell that this is the one, what to change, and why it works. Open a few; you need not learn them by heart.

# %%
from IPython.display import HTML

from starvelab.measure import PARTS
from starvelab.model.levers import levers_for
from starvelab.tables import to_html

# %%
def folded(part):
    rows = [[lever.name, lever.diagnose, lever.change, lever.why]
            for lever in levers_for(part)]
    body = to_html(["lever", "how to tell", "what to change", "why it works"], rows)
    return (f"<details><summary><b>{part}</b> ({len(rows)} "
            f"levers)</summary>{body}</details>")


HTML("".join(map(folded, PARTS)))

# %% [markdown]
# ## Most of them on one board
#
# A made-up training job with every fault at once, on a host with 8 cores. The numbers below are its costs: images as small
# files on network storage, decoded and blurred whole, float32 to the accelerator from pageable memory, and `loss.item()` in
# every step. One sample in a thousand is slow. From pinned memory a copy is faster; it runs *beside* the computing only if it
# also has a stream of its own.

# %%
def costs(batch_size, packed_in_shards=False, decoded_offline=False,
          crop_before_blur=False, send_uint8=False, pinned_memory=False,
          mixed_precision=False):
    """Of a sample, but for the step: 4 ms of it are the same whatever the batch."""
    worker = 1 + (0.2 if decoded_offline else 4) + (0.5 if crop_before_blur else 4)
    # MB, joined to a batch in a ms each
    sent = 3 * 224 * 224 * (1 if send_uint8 else 4) / 1e6
    return {"worker": Q_(worker + sent, "ms"), "sent": Q_(sent, "MB"),
            "wait": Q_(0.05 if packed_in_shards else 2, "ms"),
            "link": Q_(12 if pinned_memory else 3, "GB/s"),
            "step": Q_(4 + batch_size * (0.3 if mixed_precision else 0.8), "ms")}

# %%
RARE = Jitter(slow_share=0.001, slow_time="400 ms")

# %%
def job(workers=4, prefetch=2, batch_size=64, in_order=True, loss_item_each_step=True,
        pinned_memory=False, copy_stream=False, **switches):
    cost = costs(batch_size, pinned_memory=pinned_memory, **switches)
    samples = Samples(cpu_time=cost["worker"], transfer=cost["sent"], jitter=RARE)
    loop = Accelerator(rate=cost["step"], in_flight=1 if loss_item_each_step else 2)
    return Pipeline(
        dataset=samples, batch_size=batch_size, hardware=loop,
        storage=Drive(wait=cost["wait"]),
        workers=Workers(workers, prefetch=prefetch, in_order=in_order, cores=8,
                        handover=Handover(loop="6 ms")),
        link=Link(cost["link"], overlaps=pinned_memory and copy_stream))

# %% [markdown]
# The picture always shows 600 ms: more boxes in the lowest lane are more batches trained on, and
# where it is hatched the accelerator waits. The sentence beneath tells of 80
# batches.

# %%
def draw(workers=4, prefetch=2, batch_size=64, **switches):
    pipe = job(workers, prefetch, batch_size, **switches)
    trace = pipe.simulate(**{**once, "batches": 100}).trace().after(20)
    late = batch_size * RARE.slow_share * Q_(RARE.slow_time)
    shared = pipe.solve().resource_times["CPU"] + late / workers
    copy = (batch_size * pipe.transferred / pipe.link.of).to("ms")
    rows = [["a worker's batch", workers * shared],
            ["... shared by all workers", shared], ["copy", copy],
            ["step", pipe.hardware.rate], ["the loop itself", "6 ms"]]
    said = (f"{trace.throughput.m_as('img/s'):,.0f} img/s; the accelerator is busy "
            f"{percent(trace.utilization)} of the time.")
    return Drawing(svg.loader_lanes(trace), said, ["for a batch", "time"], rows)

# %%
explore(draw, after="slow-samples", workers=[1, 2, 4, 8, 12], prefetch=[1, 2, 4],
        batch_size=[32, 64, 128, 256], in_order=True, packed_in_shards=False,
        decoded_offline=False, crop_before_blur=False, send_uint8=False,
        pinned_memory=False, copy_stream=False, loss_item_each_step=True,
        mixed_precision=False)

# %% [markdown]
# Try to get from the start to more than 2,000 img/s with as few changes as you can. After each change ask what **binds**
# *now*, that is, sets the pace of all: workers without a gap between their boxes, a copy between any two steps, or the loop,
# which leaves a gap after every step. Twelve workers on 8 cores are worth a try, too.
#
# ## Alone, or last
#
# What each lever gains when it is the only one, and what it gains when all others are pulled already. (These are averages
# of 200 runs of 180 batches. The board shows 80 batches of one run, so its rate at the start is not exactly the same.)

# %%
GOOD = {"workers": 8, "prefetch": 4, "in_order": False, "packed_in_shards": True,
        "decoded_offline": True,
        "crop_before_blur": True, "send_uint8": True, "pinned_memory": True,
        "copy_stream": True, "loss_item_each_step": False,
        "mixed_precision": True}


def rate(**switches):
    found = job(**switches).simulate(batches=200, replicas=200, warm_up=20)
    return found.throughput.m_as("img/s")

# %%
def show_alone_and_last():
    start, end, rows = rate(), rate(**GOOD), []
    for names in [*([name] for name in GOOD), ["pinned_memory", "copy_stream"],
                  ["prefetch", "in_order"]]:
        others = {name: GOOD[name] for name in GOOD if name not in names}
        alone, last = rate(**{name: GOOD[name] for name in names}) / start, end / rate(
            **others)
        value = "both" if len(names) > 1 else GOOD[names[0]]
        rows.append([" and ".join(names).replace("_", " "), value, f"{alone:.2f}x",
                     f"{last:.2f}x"])
    table(["lever", "set to", "alone", "last"], rows)
    print(f"From {start:,.0f} to {end:,.0f} img/s with all of them.")

# %%
reveal("slow-samples", then=show_alone_and_last)

# %% [markdown]
# "I tried that, it did nothing" is a statement about the pipeline, not about the lever. A lever that does not touch what
# binds gains nothing, and the same lever may be worth more than any other once the rest is done. Nor do gains multiply: twice
# the workers bring 1.99 times the rate alone and 1.62 times at the end, mixed precision nothing alone and 2.37 times at the
# end. Now look at the last row: `prefetch` and `in order` cure the same fault, slow samples. At the start these are not what
# binds, so both levers gain next to nothing. At the end they would be, and still each of the two adds little, since the other
# is there already. Only with neither is the rate much lower, by a factor of 1.28.
# %% [markdown]
# ## Exercise 5.2: the best lever (5 points)
#
# Do what you did by hand: pull each lever alone, and keep the one that gains most. `levers` names the changes, such as
# `{"a deeper queue": {"workers.prefetch": 8}}`; `pipeline.replace(changes)` applies one.
#
# <details><summary>Hint 1</summary>
#
# `pipeline.simulate().throughput` is what you want more of. Is a busier accelerator the same?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `max(levers, key=...)` finds a name; the key is a function of a name that simulates. Then compare with the pipeline as it was.
#
# </details>

# %% role="setup" id="setup-levers-cases"
starved = Pipeline(dataset=Samples(cpu_time="2.5 ms"), batch_size=32, workers=2,
                   hardware="20 ms")
to_try = {"one worker": {"workers": 1}, "full precision": {"hardware": "70 ms"},
          "twice the workers": {"workers": 4},
          "a faster accelerator": {"hardware": "5 ms"}}
late = starved.replace(batch_size=8, dataset=Samples(
    cpu_time="5.5 ms", jitter=Jitter(slow_share=0.01, slow_time="400 ms")))
against_late = {"faster decoding": {"dataset.cpu_time": "5 ms"},
                "no fixed order, deep queue": {"workers.in_order": False,
                                               "workers.prefetch": 16}}
little = {"a deeper queue": {"workers.prefetch": 4}}

# %% role="answer" id="best-lever"
def best_lever(pipeline, levers):
    """The name [str] of the lever that raises the throughput most; None if none raises
    it by 5 % or more."""
    ### BEGIN SOLUTION
    rates = {name: pipeline.replace(changes).simulate().throughput for name, changes in levers.items()}
    best = max(rates, key=lambda name: rates[name])
    return best if rates[best] >= 1.05 * pipeline.simulate().throughput else None
    ### END SOLUTION

# %% role="test" id="best-lever-test" points=5
check(best_lever(starved, to_try), "twice the workers",
      what="the best lever behind slow workers", mistakes={
    "It keeps the accelerator busiest, and trains more slowly: compare throughputs.":
        "full precision",
    "That one is the worst: is the comparison the right way round?": "one worker",
    "The accelerator waits already; making it faster gains nothing.":
        "a faster accelerator",
})
check(best_lever(late, against_late), "no fixed order, deep queue",
      what="the best lever against slow samples", mistakes={
    "By average times, yes. But the order of events matters here: simulate it.":
        "faster decoding",
})
check(best_lever(starved, little), None, what="the best lever where none gains")
### BEGIN HIDDEN TESTS
copies = Pipeline(dataset=Samples(cpu_time="1 ms", transfer="600 KB"), batch_size=30, workers=4, link=Link("1 GB/s", overlaps=False),
                  hardware="20 ms")
choice = {"twice the workers": {"workers": 8}, "pinned copies": {"link.overlaps": True}, "a deeper queue": {"workers.prefetch": 8}}
check(best_lever(copies, choice), "pinned copies", what="the best lever where copies take turns")
check(best_lever(copies, {"full precision": {"hardware": "60 ms"}, "one worker": {"workers": 1}}), None,
      what="the best lever where all make it worse")
check(best_lever(starved.replace(workers=16), to_try), "a faster accelerator", what="the best lever in front of a slow accelerator")
### END HIDDEN TESTS

# %% [markdown]
# ## What a lever may cost
#
# A faster drive or a host with more cores costs money, and so does an accelerator that waits: it is paid for by the hour. Eight
# workers feed an A100 that trains ResNet-50, at 2 dollars an hour:

# %%
here = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8,
                assumptions=PUBLISHED)
here.bill(price="2 USD/h", samples=1_281_167)

# %% [markdown]
# More than half of the money is paid for waiting. The GPU draws less power meanwhile, so a smaller share of its energy is wasted.
# Is it worth it to rent more cores? Say that each worker needs one, for 5 cents an hour. What counts is not the price of an
# hour but that of an epoch:

# %%
table(["workers", "an hour", "throughput", "an epoch of ImageNet"], [
    [workers, price, rate, (price * Q_("1281167 img") / rate).to("USD")]
    for workers in (4, 8, 16, 24, 32)
    for price in [Q_(2 + 0.05 * workers, "USD/h")]
    for rate in [here.solve(workers=Workers(workers, cores=workers)).throughput]
])

# %% [markdown]
# Here each core that shortens the waiting saves more than it costs. From the number on at which the accelerator binds, a
# further core only costs.
#
# ## Exercise 5.3: dollars an hour (5 points, in parts)
#
# A machine costs `price` in an hour, its accelerator is busy for a share of the time, and it trains at `rate`. Which part of
# the price is burned by waiting? With some change it would train at `better_rate`. How much may the change add to the price of
# an hour at most, so that the same training costs no more than before? Return both, first what is burned.
#
# <details><summary>Hint 1</summary>
#
# What do a million samples cost at the old rate, and at the new one? The whole hour is paid for, not only the busy part.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# At the limit, `(price + added) / better_rate` is `price / rate`. Solve that for `added`.
#
# </details>

# %% role="setup" id="setup-levers-dollars"
night = Q_("4 USD/h"), 0.25, Q_("1000 img/s"), Q_("1500 img/s")


def one_of_two(answer, which):
    if not (isinstance(answer, tuple | list) and len(answer) == 2):
        raise AssertionError(f"Return two values, first what is burned: return burned, "
                             f"added. Got {answer!r:.60}.")
    return answer[which]

# %% role="answer" id="dollars-an-hour"
def dollars(price, busy, rate, better_rate):
    """What waiting burns in an hour, and the most that a change may add to the price of
    an hour, both [money/time].

    `busy` is the accelerator's share [0 to 1]; the rates are [sample/time].
    """
    ### BEGIN SOLUTION
    return price * (1 - busy), price * (better_rate / rate - 1)
    ### END SOLUTION

# %% role="test" id="dollars-an-hour-test" points=5
credit = Credit(5)
credit.part(1, "what waiting burns", lambda: check(one_of_two(dollars(*night), 0),
    Q_("3 USD/h"), what="What is burned", mistakes={
    "That is what the busy time costs.": Q_("1 USD/h"),
    "That is the whole price: some of the time it works.": Q_("4 USD/h")}))
credit.part(2, "what may be added", lambda: check(one_of_two(dollars(*night), 1),
    Q_("2 USD/h"), what="What may be added", mistakes={
    "That is the price of the hour with the change: what is added to the old one?":
        Q_("6 USD/h"),
    "All of the hour is paid for, also the time in which it works.": Q_("1.5 USD/h"),
    "That is what the same samples would save; the larger machine is paid for a "
    "shorter time, too.": Q_(4 / 3, "USD/h"),
    "That is what waiting burns: a change may bring more than that, or less.":
        Q_("3 USD/h")}))
### BEGIN HIDDEN TESTS
credit.part(1, "other numbers", lambda: (
    check(one_of_two(dollars(Q_("2.05 USD/h"), 0.441, Q_("1090 img/s"), Q_("65400 img/min")), 0), Q_(1.14595, "USD/h"),
          what="What is burned on an A100"),
    check(one_of_two(dollars(Q_("2.05 USD/h"), 0.441, Q_("1090 img/s"), Q_("121862 img/min")), 1), Q_(1.76984, "USD/h"),
          what="What may be added on an A100")))
credit.part(1, "an accelerator that never waits", lambda: check(
    one_of_two(dollars(Q_("4 USD/h"), 1.0, Q_("1000 img/s"), Q_("3000 img/s")), 1), Q_("8 USD/h"), what="What three times the rate may add"))
### END HIDDEN TESTS
credit.total()

# %% [markdown]
# ## The same levers, other names
#
# TensorFlow's `tf.data` writes a pipeline as a chain of methods. Each link is a lever you know:
#
# | `tf.data` | here |
# |---|---|
# | `interleave(..., num_parallel_calls=n)` over TFRecord files | more requests at once, many samples in one file |
# | `map(f, num_parallel_calls=n)` | `workers` |
# | `cache()` | a cache in memory; stands *before* `shuffle` and whatever is random |
# | `shuffle(buffer)`, `batch(b)` | the sampler, `batch_size` |
# | `prefetch(n)` | `prefetch`: the loop and the preparation overlap |
# | `deterministic=False` in the options | `in_order=False` |
# | `AUTOTUNE` in the place of a number | raise what helps until it stops helping |
#
# Link by link, for 10 ms of work a sample, of which decoding takes 6 ms, batches of 32, a step of 30 ms and 8 cores. (A parallel
# `map` also prepares a few samples ahead, one for each call. That is left out here, and makes its two rows a little too low.)

# %%
def autotune(pipe, cores=8, worth=1.05):
    for workers in range(pipe.workers.count + 1, cores + 1):
        more = pipe.replace(workers=workers)
        now, then = (one.simulate(**once).throughput for one in (pipe, more))
        if then < worth * now:
            break
        pipe = more
    return pipe

# %%
def each(cpu_time):
    return Samples(cpu_time=cpu_time)


chain = Pipeline(dataset=each("10 ms"), batch_size=32, workers=0,
                 hardware=Accelerator(rate="30 ms", in_flight=1))
cached = chain.replace(dataset=each("4 ms"))
tuned = autotune(cached.replace(workers=1))

# %%
links = [["map, batch", 1, chain],
         ["... with 8 parallel calls", 8, chain.replace(dataset=each("1.25 ms"))],
         ["... and cache after decoding", 8, chain.replace(dataset=each("0.5 ms"))],
         ["... and prefetch", 8, cached.replace(workers=8)],
         ["... calls left to AUTOTUNE", tuned.workers.count, tuned]]
table(["chain", "parallel calls", "busy", "throughput"],
      [[name, calls, percent(s.utilization), s.throughput]
       for name, calls, pipe in links for s in [pipe.simulate(**once)]])

# %% [markdown]
# ## In your own words
#
# A colleague has doubled the workers, and the rate stayed as it was. "Workers are no use", they say. Which two or three things
# would you look at before you agree, and what would each of them tell you? Three sentences. Nobody marks this.

# %% [markdown]
# *Double-click here and write.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Fast enough on average is not fast enough: a late batch holds up the ones behind it. A deeper queue, and no fixed order.
# - A lever gains only if it touches what binds. Pull one, measure, ask again.
# - Compare throughput. Utilization also rises when the accelerator gets slower.
# - What counts is the price of a sample. An accelerator that waits costs as much as one that works.
#
# **Next:** the levers that make the work itself less, on your own machine. [Notebook 6](06_less_work.ipynb).
