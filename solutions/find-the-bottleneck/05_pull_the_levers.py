# %% [markdown]
# # 5. Pull the levers
#
# The ladder names the part that starves the GPU. **Which lever do you pull, and what does it uncover?**
# In about MINUTES minutes you pull most of them on one simulated job.

# %% role="setup" id="setup-levers"
import numpy as np  # noqa: F401 (for your answers too)
from IPython.display import HTML

from starvelab import PUBLISHED, Accelerator, Drive, Handover, Hardware, Jitter, Link
from starvelab import Models, Pipeline, Q_, Requests, Samples, Workers
from starvelab.checks import Credit, check, one_of
from starvelab.measure import PARTS
from starvelab.model.resources import levers_for
from starvelab.show import loader_timeline, svg, table
from starvelab.tables import cell, percent, to_html
from starvelab.widgets import Drawing, explore, finish, predict, progress, reveal


def why_slow():
    """What the share means, and what plausible mistakes predict."""
    nap = naps.slow_share * Q_(naps.slow_time)
    mean = slow.replace({"dataset.cpu_time": slow.dataset.cpu_time + nap}).solve()
    lost = percent(mean.utilization - busy)
    return {"meaning": f"Late batches cost it {lost} of the time.",
            "mistakes": {"That is by average times: a late batch holds others up.":
                         Q_(100 * mean.utilization, "%"),
                         "Perhaps that is the share of late batches.":
                         Q_(100 - 100 * (1 - naps.slow_share) ** 8, "%")}}


def show_late():
    return loader_timeline(slow.simulate(seed=11, **once), batches=40)


def why_gap():
    """What the share means, and what plausible mistakes predict."""
    gap = short.epochs(samples=32 * many["epoch_batches"]).boundary
    return {"meaning": f"Each epoch loses {cell(gap)}.", "mistakes": {
        "Perhaps you left out that the workers start anew.":
            Q_(100 * short.solve().utilization, "%"),
        "Perhaps you took the share that waits.":
            Q_(100 * short.simulate(**many).stall, "%")}}

# %% [markdown]
# ## One slow sample
#
# One sample in a hundred takes 0.4 s longer than the others. Two workers prepare batches of 8, each with two
# batches ordered ahead; the GPU computes for 20 ms on each. By average times the GPU would be busy 88.4 % of
# the time.

# %%
predict("slow-samples", unit="%", question="How much of the time is the GPU "
                                           "busy, in percent?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Batches arrive in the order in which they were asked for. What happens to the finished batches behind a late
# one?
#
# </details>

# %%
naps = Jitter(slow_share=0.01, slow_time="400 ms")
slow = Pipeline(dataset=Samples(cpu_time=Q_(13.25 / 8, "ms"), jitter=naps),
                hardware="20 ms", batch_size=8, workers=Workers(2, prefetch=2))

# %% tags=["folded"]
LEVERS = {"as it is": {}, "deeper queue (8 each)": {"workers.prefetch": 8},
          "no fixed order": {"workers.in_order": False},
          "both": {"workers.prefetch": 8, "workers.in_order": False}}
busy = slow.simulate(batches=400, replicas=200, warm_up=0).utilization
once = {"batches": 200, "replicas": 1, "warm_up": 0}


def show_levers():
    sims = {name: slow.replace(made).simulate(batches=400, replicas=200, warm_up=0)
            for name, made in LEVERS.items()}
    table(["lever", "busy", "throughput"],
          [[name, percent(s.utilization), s.throughput] for name, s in sims.items()])

# %%
reveal("slow-samples", Q_(100 * busy, "%"), why=why_slow,
       then=show_late)

# %% [markdown]
# The cross-hatched batches are *finished*, and held back because an earlier one is missing. Two levers
# help, and neither makes anything faster: a **deeper queue** (`prefetch_factor`), and **no fixed order**
# (`in_order=False`), which lets the other worker's batches pass.

# %%
reveal("slow-samples", then=show_levers)

# %% [markdown]
# ## Exercise 5.1: how many batches are late? (3 points)
#
# A batch is late as soon as *one* of its samples is slow. What share of the batches is that?
#
# <details><summary>Hint</summary>
#
# What share has *no* slow sample? A sample is fast with probability `1 - share`, whatever the others are.
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
}, means="So rare slow samples can make most large batches late.")
### BEGIN HIDDEN TESTS
check(late_batches(8, 0.01), 0.0772553, what="the share of late batches of 8")
check(late_batches(1, 0.3), 0.3, what="the share of late batches of a single sample")
check(late_batches(64, 0.0), 0.0, what="the share of late batches without slow samples")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("late-batches", late_batches, final=False)
### BEGIN ENDING
ending = 3, "shares", lambda draw: (draw.randint(1, 300), draw.randint(1, 90) / 1000)
### END ENDING

# %% [markdown]
# ## Most levers on one board
#
# A made-up job with every fault at once, on 8 cores: small files on network storage, decoded and blurred
# whole, float32 from pageable memory, `loss.item()` in every step. Get to more than 2,000 img/s with as few
# changes as you can. After each, ask what **binds** *now*, that is, sets the pace of all.

# %% tags=["folded"]
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


RARE = Jitter(slow_share=0.001, slow_time="400 ms")


def job(workers=4, prefetch=2, batch_size=64, in_order=True, loss_item_each_step=True,
        pinned_memory=False, copy_stream=False, **switches):
    cost = costs(batch_size, pinned_memory=pinned_memory, **switches)
    samples = Samples(cpu_time=cost["worker"], transfer=cost["sent"], jitter=RARE)
    loop = Accelerator(rate=cost["step"], in_flight=1 if loss_item_each_step else 2)
    return Pipeline(
        dataset=samples, batch_size=batch_size, hardware=loop,
        storage=Drive(requests=Requests(cost["wait"])),
        workers=Workers(workers, prefetch=prefetch, in_order=in_order, cores=8,
                        handover=Handover(loop="6 ms")),
        link=Link(cost["link"], overlaps=pinned_memory and copy_stream))

# %% tags=["folded"]
def draw(workers=4, prefetch=2, batch_size=64, **switches):
    pipe = job(workers, prefetch, batch_size, **switches)
    trace = pipe.simulate(batches=100, replicas=1, warm_up=0).trace().after(20)
    late = batch_size * RARE.slow_share * Q_(RARE.slow_time).m_as("ms")
    own = workers * pipe.solve().resource_times["CPU"].m_as("ms") + late
    copy = (batch_size * pipe.transferred / pipe.link.of).to("ms")
    rows = [["a worker's batch", Q_(own, "ms")],
            ["... shared by all workers", Q_(own / workers, "ms")], ["copy", copy],
            ["step", pipe.hardware.rate], ["the loop itself", "6 ms"]]
    fast = trace.throughput > Q_("2000 img/s")
    said = (f"{'✓ ' * fast}{trace.throughput.m_as('img/s'):,.0f} img/s; the GPU is "
            f"busy {percent(trace.utilization)} of the time.")
    return Drawing(svg.loader_lanes(trace), said, ["for a batch", "time"], rows)

# %%
explore(draw, after="slow-samples", workers=[1, 2, 4, 8, 12], prefetch=[1, 2, 4],
        batch_size=[32, 64, 128, 256], in_order=True, packed_in_shards=False,
        decoded_offline=False, crop_before_blur=False, send_uint8=False,
        pinned_memory=False, copy_stream=False, loss_item_each_step=True,
        mixed_precision=False)

# %% [markdown]
# What each lever gains alone, and as the last one:

# %% tags=["folded"]
GOOD = {"workers": 8, "prefetch": 4, "in_order": False, "packed_in_shards": True,
        "decoded_offline": True,
        "crop_before_blur": True, "send_uint8": True, "pinned_memory": True,
        "copy_stream": True, "loss_item_each_step": False,
        "mixed_precision": True}


def rate(**switches):
    found = job(**switches).simulate(batches=200, replicas=200, warm_up=20)
    return found.throughput.m_as("img/s")


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

# %%
reveal("slow-samples", then=show_alone_and_last)

# %% [markdown]
# Mixed precision gains nothing alone, and 2.37 times the rate as the last lever. These are all
# levers, by the part that the ladder names:

# %% tags=["folded"]
def levers_of(part):
    rows = [[lever.name, lever.diagnose, lever.change, lever.why]
            for lever in levers_for(part)]
    body = to_html(["lever", "how to tell", "what to change", "why it works"], rows)
    return f"<details><summary><b>{part}</b> ({len(rows)})</summary>{body}</details>"


HTML("".join(map(levers_of, PARTS)))

# %% [markdown]
# ## Exercise 5.2: the best lever (5 points)
#
# Find the lever that gains most when it is pulled alone. `levers` names the changes, such as `{"a deeper
# queue": {"workers.prefetch": 8}}`; `pipeline.replace(changes)` applies one.
#
# <details><summary>Hint</summary>
#
# You want more `pipeline.simulate().throughput`. `max(levers, key=...)` finds a name; the key is a
# function of a name. Then compare with the pipeline as it was.
#
# </details>

# %% role="setup" id="setup-levers-cases"
starved = Pipeline(dataset=Samples(cpu_time="2.5 ms"), batch_size=32, workers=2,
                   hardware="20 ms")
to_try = {"one worker": {"workers": 1}, "full precision": {"hardware": "70 ms"},
          "three workers": {"workers": 3}, "four workers": {"workers": 4},
          "a faster GPU": {"hardware": "5 ms"}}
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
check(best_lever(starved, to_try), "four workers",
      what="the best lever behind slow workers", among=to_try, mistakes={
    "It keeps the GPU busiest, and trains more slowly: compare throughputs.":
        "full precision",
    "That one is the worst: is the comparison the right way round?": "one worker",
    "The GPU waits already; making it faster gains nothing.":
        "a faster GPU",
    "That one gains, and another one gains more.": "three workers",
})
check(best_lever(late, against_late), "no fixed order, deep queue",
      what="the best lever against slow samples", mistakes={
    "By average times, yes. But the order of events matters here: simulate it.":
        "faster decoding",
})
check(best_lever(starved, little), None, what="the best lever where none gains",
      means="So the busiest GPU is not always the one that trains most.")
### BEGIN HIDDEN TESTS
copies = Pipeline(dataset=Samples(cpu_time="1 ms", transfer="600 KB"), batch_size=30, workers=4, link=Link("1 GB/s", overlaps=False), hardware="20 ms")
choice = {"twice the workers": {"workers": 8}, "pinned copies": {"link.overlaps": True}, "a deeper queue": {"workers.prefetch": 8}}
check(best_lever(copies, choice), "pinned copies", what="the best lever where copies take turns")
check(best_lever(copies, {"full precision": {"hardware": "60 ms"}, "one worker": {"workers": 1}}), None,
      what="the best lever where all make it worse")
check(best_lever(starved.replace(workers=16), to_try), "a faster GPU", what="the best lever in front of a slow GPU")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("best-lever", best_lever, final=False)
### BEGIN ENDING
def some_levers(draw):
    kind, scale = draw.choice(("late", "workers", "GPU", "nothing")), draw.randint(5, 40) / 10

    def ms(time):
        return Q_(scale * time, "ms")

    late = Jitter(slow_share=0.01, slow_time=ms(400)) if kind == "late" else Jitter()
    samples = Samples(cpu_time=ms({"late": 5.5, "GPU": 2.5}.get(kind, 10)), jitter=late)
    levers = {"one worker": {"workers": 1}, "full precision": {"hardware": ms(70)},
              "a faster GPU": {"hardware": ms(5)}}
    if kind == "late":
        levers = {"faster decoding": {"dataset.cpu_time": ms(5)},
                  "no fixed order, deep queue": {"workers.in_order": False, "workers.prefetch": 16}}
    elif kind != "nothing":
        levers |= {"a third worker": {"workers": 3}, "twice the workers": {"workers": 4}}
    names = draw.sample([*levers], len(levers))
    return (Pipeline(dataset=samples, batch_size=8, workers=2, hardware=ms(20)),
            {name: levers[name] for name in names})


ending = 5, "pipelines", some_levers
### END ENDING

# %% [markdown]
# ## Between two epochs
#
# Four workers prepare a batch in 64 ms each and the GPU steps for 20 ms, so inside an epoch of 100
# batches it never waits. But a `DataLoader` starts its workers anew for each epoch, and here that takes 1 s.

# %%
predict("epoch-gap", unit="%", question="How busy is the GPU over many epochs, "
                                        "in percent?")

# %%
short = Pipeline(dataset=Samples(cpu_time="2 ms"), batch_size=32, hardware="20 ms",
                 workers=Workers(4, start_up="1 s"))
many = {"batches": 1000, "epoch_batches": 100, "replicas": 1, "warm_up": 100}

# %% tags=["folded"]
def draw_epochs(persistent_workers=False, epoch_batches=100, start_up_s=1.0):
    made = short.replace(workers=Workers(4, start_up=Q_(start_up_s, "s"),
                                         persistent=persistent_workers))
    found = made.simulate(**many | {"epoch_batches": epoch_batches})
    lost = made.epochs(samples=32 * epoch_batches).boundary
    said = (f"The GPU is busy {percent(found.utilization)} of the time; each "
            f"epoch loses {lost.m_as('s'):.3g} s.")
    shares = {"busy": found.utilization, "waits": found.stall}
    return Drawing(svg.share_bars(shares, title=said), said, ["accelerator", "share"],
                   [[name, percent(share)] for name, share in shares.items()])


def show_gap():
    return loader_timeline(short.simulate(**many).trace().after(95), batches=12)

# %%
reveal("epoch-gap", Q_(100 * short.simulate(**many).utilization, "%"), then=show_gap,
       why=why_gap)

# %%
explore(draw_epochs, after="epoch-gap", persistent_workers=False,
        epoch_batches=[20, 50, 100, 200, 500], start_up_s=(0.0, 4.0, 0.5))

# %% [markdown]
# With `persistent_workers=True` the GPU waits only for the first batch of an epoch.
#
# ## Exercise 5.3: dollars an hour (5 points, in parts)
#
# Eight workers feed an A100 that trains ResNet-50, at 2 dollars an hour:

# %%
here = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8,
                assumptions=PUBLISHED)
here.bill(price="2 USD/h", samples=1_281_167)

# %% [markdown]
# Which part of an hour's `price` is burned by waiting? A change raises the rate to `better_rate`. How much may it add
# to the price before the same training costs more than now? Return both, the burned part first.
#
# <details><summary>Hint</summary>
#
# You pay for the whole hour, not only for the busy part. At the limit, `(price + added) /
# better_rate` is `price / rate`. Solve that for `added`.
#
# </details>

# %% role="setup" id="setup-levers-dollars"
night = Q_("4 USD/h"), 0.25, Q_("1000 img/s"), Q_("1500 img/s")

returned = "burned, added"

# %% role="answer" id="dollars-an-hour"
def dollars(price, busy, rate, better_rate):
    """What waiting burns in an hour, and the most that a change may add to the price of
    an hour, both [money/time].

    `busy` is the GPU's share [0 to 1]; the rates are [sample/time].
    """
    ### BEGIN SOLUTION
    return price * (1 - busy), price * (better_rate / rate - 1)
    ### END SOLUTION

# %% role="test" id="dollars-an-hour-test" points=5
credit = Credit(5)
credit.part(1, "what waiting burns", lambda: check(
    one_of(dollars(*night), 0, returned), Q_("3 USD/h"), what="What is burned",
    mistakes={
    "That is what the busy time costs.": Q_("1 USD/h"),
    "That is the whole price: some of the time it works.": Q_("4 USD/h")}))
credit.part(2, "what may be added", lambda: check(
    one_of(dollars(*night), 1, returned), Q_("2 USD/h"), what="What may be added",
    mistakes={
    "That is the price of the hour with the change: what is added to the old one?":
        Q_("6 USD/h"),
    "All of the hour is paid for, also the time in which it works.": Q_("1.5 USD/h"),
    "That is what the same samples would save; the larger machine is paid for a "
    "shorter time, too.": Q_(4 / 3, "USD/h"),
    "That is what waiting burns: a change may bring more than that, or less.":
        Q_("3 USD/h")}))
### BEGIN HIDDEN TESTS
credit.part(1, "other numbers", lambda: (
    check(one_of(dollars(Q_("2.05 USD/h"), 0.441, Q_("1090 img/s"), Q_("65400 img/min")), 0, returned), Q_(1.14595, "USD/h"),
          what="What is burned on an A100"),
    check(one_of(dollars(Q_("2.05 USD/h"), 0.441, Q_("1090 img/s"), Q_("121862 img/min")), 1, returned), Q_(1.76984, "USD/h"),
          what="What may be added on an A100")))
credit.part(1, "a GPU that never waits", lambda: check(
    one_of(dollars(Q_("4 USD/h"), 1.0, Q_("1000 img/s"), Q_("3000 img/s")), 1, returned), Q_("8 USD/h"), what="What three times the rate may add"))
### END HIDDEN TESTS
credit.total("So what a change may cost depends on the rate it brings, not on what "
             "waiting burns.")

# %% tags=["learning-alone"]
finish("dollars-an-hour", dollars, final=False)
### BEGIN ENDING
def a_machine(draw):
    rate = draw.randint(100, 3000)
    return (Q_(draw.randint(30, 900) / 100, "USD/h"), draw.randint(1, 99) / 100, Q_(rate, "img/s"),
            Q_(rate + draw.randint(10, 3000), "img/s"))


ending = 2, "machines", a_machine
### END ENDING

# %% [markdown]
# ## In your own words
#
# "I doubled the workers, and the rate stayed. Workers are no use." Which two things do you look at before you agree? Not graded.

# %% [markdown]
# *Write here.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - A lever gains only if it touches what binds. Pull one, measure, ask again.
#
# **Next:** the levers that make [the work itself less](06_less_work.ipynb).
