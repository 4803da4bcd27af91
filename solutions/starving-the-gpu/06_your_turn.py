# %% [markdown]
# # 6. Your turn
#
# You have the ceiling, the drive, the CPU, the crossing and the workers. Now use them together on three cases: a batch of
# 64, medical images, and decoding on the GPU. In each of them the obvious answer is only the beginning.
#
# **The phase.** Notebooks 1 to 5 timed the forward pass, as the walkthrough does. In this notebook the GPU trains: each
# question and each exercise is about a training step, unless it says otherwise.
#
# This takes about 20 minutes. The exercises stand on their own: a wrong answer in one does not spoil another.

# %% role="setup" id="setup-06"
from contextlib import suppress
from math import ceil, floor

from starvelab import PUBLISHED, Datasets, Hardware, Models, Pipeline, Q_, Storage
from starvelab import crossover, explain, sweep, workers_needed
from starvelab.checks import check, hint
from starvelab.show import say, stage_bars, table
from starvelab.widgets import explore, predict, predictions, reveal, scorecard

forward = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8)
pipe = forward.replace(phase="training")

# %% [markdown]
# ## Case 1: a batch of 64
#
# Eight workers, images of 500 KB, a batch of 64. In the walkthrough this exercise asks what binds, and the answer
# stands in a table just above it: the CPU, at 41.9 %. That table times the forward pass. In a training step the
# arithmetic and the overhead of the layers are three times as much, and the workers' time stays what it was.

# %%
predict("batch-64", choices=["The CPU", "The GPU", "Neither: it is a tie"],
        question="A training step at a batch of 64 behind eight workers: what binds?")

# %%
def show_flip():
    steps = {"forward": forward.solve(batch_size=64), "training": pipe.solve(batch_size=64)}
    table(["phase", "CPU", "GPU", "binds", "GPU busy"], [
        [name, s.resource_times["CPU"], s.resource_times["accelerator"], s.bottleneck, f"{100 * s.utilization:.1f} %"]
        for name, s in steps.items()
    ])


CALLED = {"CPU": "The CPU", "accelerator": "The GPU", "storage": "The drive"}
reveal("batch-64", CALLED[pipe.solve(batch_size=64).bottleneck], then=show_flip)

# %% [markdown]
# The same pipeline, the same GPU, the opposite verdict. A model that times the wrong phase does not merely get a number
# wrong; it sends you to fix the wrong thing.
#
# ### Exercise 6.1: the training step (4 points)
#
# Arithmetic: 4.1 GFLOP an image in the forward pass, at half of 312 TFLOP/s. Overhead: 50 layers of 0.1 ms in the forward
# pass. Both triple. The dispatch of 0.015 ms is paid once for the whole step.
#
# <details><summary>Hint 1</summary>
#
# Three terms: arithmetic, overhead of the layers, dispatch. Which of them triple?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Start from exercise 1.1 and multiply two of its three terms by three.
#
# </details>

# %% role="answer" id="training-step"
def training_step(batch_size):
    """Time of one training step [time]."""
    ### BEGIN SOLUTION
    compute = Q_("4.1 GFLOP") * batch_size / (0.5 * Q_("312 TFLOP/s"))
    return (3 * compute + 3 * 50 * Q_("0.1 ms") + Q_("0.015 ms")).to("ms")
    ### END SOLUTION

# %% role="test" id="training-step-test" points=4
check(training_step(100), Q_("22.8996 ms"), what="training_step(100)", within=2e-4, mistakes={
    "That is the forward pass alone.": Q_("7.6432 ms"),
    "The dispatch is paid once.": Q_("22.9296 ms"),
    "The overhead of the layers triples as well.": Q_("12.8996 ms"),
    "The arithmetic triples as well.": Q_("17.6432 ms"),
    "That is the backward pass alone; training runs forward too.": Q_("15.2714 ms"),
    "Take the 4.1 GFLOP as they are given: only the factor of three is asked for.": Q_("30.7842 ms"),
})
### BEGIN HIDDEN TESTS
for batch in (8, 64, 512):
    expected = pipe.solve(batch_size=batch).resource_times["accelerator"]
    check(training_step(batch), expected, what=f"training_step({batch})", within=2e-4)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 6.2: what binds? (3 points)
#
# For any two times of a training step: return `"CPU"` or `"GPU"`. Nobody waits in a tie, so a tie is not the CPU's fault.
#
# <details><summary>Hint</summary>
#
# Which comparison is right when both are equal: `>` or `>=`?
#
# </details>

# %% role="answer" id="what-binds"
def what_binds(cpu_time, gpu_time):
    """What sets the step, "CPU" or "GPU" [str]; both arguments are [time]."""
    ### BEGIN SOLUTION
    return "CPU" if cpu_time > gpu_time else "GPU"
    ### END SOLUTION

# %% role="test" id="what-binds-test" points=3
check(what_binds(Q_("16 ms"), Q_("7 ms")), "CPU", what="what binds at 16 and 7 ms", mistakes={
    "The one that takes longer sets the step.": "GPU",
})
check(what_binds(Q_("20 ms"), Q_("20 ms")), "GPU", what="what binds in a tie", mistakes={
    "In a tie the GPU never waits.": "CPU",
    "It is called GPU here.": "accelerator",
})
### BEGIN HIDDEN TESTS
check(what_binds(Q_("16 ms"), Q_("20.06 ms")), "GPU", what="what binds at 16 and 20.06 ms")
check(what_binds(Q_("0.03 s"), Q_("29 ms")), "CPU", what="what binds at 0.03 s and 29 ms")
### END HIDDEN TESTS

# %% [markdown]
# ## Case 2: medical images
#
# Now each image has 5 MB instead of 500 KB. The model, the GPU, the eight workers and the phase stay: it trains.

# %%
medical = pipe.replace(sample_size=Datasets.Medical5MB.sample_size)
predict("medical", question="Training on these images: what is the smallest batch size at which the GPU has to wait?")

# %%
def show_medical():
    say(crossover(medical))
    return sweep(medical, batch_size=[1, 2, 3, 8, 32, 64, 128, 256, 512, 1024])


reveal("medical", crossover(medical).starves_from, then=show_medical)

# %% [markdown]
# The walkthrough asks for this crossing and sweeps from 32 again, so its own table cannot answer its own question. (For
# the forward pass, which it times, the answer is 3.)
#
# ### Exercise 6.3: the crossing (4 points)
#
# Give the exact batch size, not rounded, at which preparing takes as long as training. The GPU's training step takes
# 41/520 ms for each image and 15.015 ms of overhead: three times the forward pass, with the dispatch paid once.
#
# <details><summary>Hint 1</summary>
#
# The workers need `sample_size / cpu_throughput` for each image. Convert it to milliseconds.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Write both times as lines in the batch size b and set them equal. Solve for b; the slopes are subtracted.
#
# </details>

# %% role="answer" id="crossing"
def crossing(sample_size, cpu_throughput):
    """Batch size [a plain number] at which both take equally long; arguments are [data] and [data/time]."""
    ### BEGIN SOLUTION
    cpu_per_image = (sample_size / cpu_throughput).to("ms").magnitude
    return 15.015 / (cpu_per_image - 41 / 520)
    ### END SOLUTION

# %% role="test" id="crossing-test" points=4
check(crossing(Q_("1 MB"), Q_("2 GB/s")), 35.6521, what="the crossing of 1 MB images", mistakes={
    "Give it unrounded: this one is rounded down.": 35.0,
    "Give it unrounded: this one is rounded up.": 36.0,
    "The GPU's time grows with the batch as well.": 30.03,
    "Times per image that overlap are subtracted here, not added.": 25.9395,
    "Check the units: the GPU's figures are in milliseconds.": 15.015 / (0.0005 - 41 / 520),
    "That is where the forward pass crosses: this pipeline trains.": 10.5865,
})
### BEGIN HIDDEN TESTS
check(crossing(Q_("5 MB"), Q_("2 GB/s")), 6.201589, what="the crossing of 5 MB images")
check(crossing(Q_("500 KB"), Q_("2 GB/s")), 87.728090, what="the crossing of 500 KB images")
check(crossing(Q_("5 MB"), Q_("50 GB/s")), 709.8, what="the crossing of 5 MB images at 50 GB/s")
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 6.4: workers for medical images (4 points)
#
# How many workers of 250 MB/s does it take until a GPU that trains never waits? Work out the GPU's training step inside,
# with the values from above, and beware of rounding it.
#
# <details><summary>Hint 1</summary>
#
# First the GPU's training step for this batch, unrounded: 41/520 ms for each image and 15.015 ms.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Then the formula of notebook 5, rounded up once at the end.
#
# </details>

# %% role="answer" id="medical-workers"
def medical_workers(batch_size, sample_size):
    """The smallest number of workers [int]; `sample_size` is [data]."""
    ### BEGIN SOLUTION
    gpu_step = Q_(41 / 520 * batch_size + 15.015, "ms")
    return ceil((batch_size * sample_size / (Q_("250 MB/s") * gpu_step)).to("").magnitude)
    ### END SOLUTION

# %% role="test" id="medical-workers-test" points=4
check(medical_workers(270, Q_("4 MB")), 119, what="the number of workers for 270 images of 4 MB", mistakes={
    "You rounded the GPU's step before dividing: round once, at the end.": 120,
    "With that many the GPU still waits a little: round up.": 118,
    "The overhead of the GPU's step is missing.": 203,
    "The GPU's step grows with the batch: that one is for 256 images.": 123,
    "That is eight times too few: did bits slip in?": 15,
    "That is for the forward pass: this pipeline trains.": 357,
})
### BEGIN HIDDEN TESTS
check(medical_workers(256, Q_("5 MB")), 146, what="the number of workers for 256 images of 5 MB")
check(medical_workers(32, Q_("5 MB")), 37, what="the number of workers for 32 images of 5 MB")
check(medical_workers(1024, Q_("500 KB")), 22, what="the number of workers for 1024 images of 500 KB")
### END HIDDEN TESTS

# %% [markdown]
# ### Is that feasible?
#
# The walkthrough stops at the number (for the forward pass, 436). A number is not a plan: somebody has to run these
# workers, read what they prepare, and carry it to the GPU.

# %%
say(workers_needed(medical, batch_size=256))

# %% [markdown]
# So it is not feasible, by far and for several reasons. Sometimes no number of workers is enough.
#
# ### Exercise 6.5: the narrowest place (3 points)
#
# `rates` says how many images per second each resource could handle alone, for example `{"drive": 1400, "CPU": 4000}`.
# Return the name of the one that limits the pipeline.
#
# <details><summary>Hint</summary>
#
# `min` takes a `key=`; over a dictionary it looks at the names.
#
# </details>

# %% role="answer" id="narrowest"
def narrowest(rates):
    """Name of the resource that limits a pipeline [str]; `rates` maps names to plain numbers."""
    ### BEGIN SOLUTION
    return min(rates, key=rates.get)
    ### END SOLUTION

# %% role="test" id="narrowest-test" points=3
check(narrowest({"drive": 1400, "CPU": 87200, "link": 6400, "GPU": 21800}), "drive", what="the narrowest place", mistakes={
    "That is the widest place: it waits for all the others.": "CPU",
    "Look at all of them, not only at those next to the GPU.": "link",
    "The GPU could do more than it gets here.": "GPU",
})
### BEGIN HIDDEN TESTS
check(narrowest({"GPU": 2470, "link": 170000, "CPU": 4000, "drive": 61000}), "GPU", what="the narrowest of four")
check(narrowest({"CPU": 10, "drive": 9.5, "link": 11}), "drive", what="the narrowest of three")
check(narrowest({"b": 5, "a": 7}), "b", what="the narrowest of two")
### END HIDDEN TESTS

# %% [markdown]
# ### A real medical workload
#
# Real ones look different again. KiTS19, the kidney tumor data of the MLPerf benchmarks, has volumes of 146.6 MB on
# average. A 3D U-Net on an A100 takes 7 of them in a training step of 0.636 s, and one worker needs about 184 ms to
# prepare one (MLPerf Storage, unet3d_a100; Lotus, Table II). Here they are read from one SATA SSD.

# %%
kits = Pipeline(
    model=Models.UNet3D, hardware=Hardware.Cloud.A100, batch_size=7, workers=8,
    sample_size=Datasets.KiTS19.sample_size, worker_rate=Q_(1 / 0.184, "img/s"),
    storage=Storage.SATA_SSD, assumptions=PUBLISHED, phase="training",
)
say(explain(kits))
stage_bars(kits.solve())

# %% [markdown]
# Eight workers are plenty here; the wall is the **drive**. A GPU that uses only eleven samples a second asks for 1.6 GB/s,
# because each sample is huge. Which resource binds depends on the workload, and no rule of thumb replaces the check.
#
# ### Exercise 6.6: how many GPUs can share a drive? (3 points)
#
# Each GPU takes `batch_size` volumes in a training step of `step_time`. How many of them can one drive keep at full speed?
#
# <details><summary>Hint 1</summary>
#
# What does one GPU read in a second? Bytes of a batch over the time of a step.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# How often does that fit into the drive's bandwidth? Half a GPU is not kept at full speed.
#
# </details>

# %% role="answer" id="gpus-per-drive"
def gpus_per_drive(drive_bandwidth, volume_size, batch_size, step_time):
    """The largest number of GPUs [int] that a drive feeds; arguments are [data/time], [data], a number, [time]."""
    ### BEGIN SOLUTION
    demand = batch_size * volume_size / step_time
    return floor((drive_bandwidth / demand).to("").magnitude)
    ### END SOLUTION

# %% role="test" id="gpus-per-drive-test" points=3
check(gpus_per_drive(Q_("43 GB/s"), Q_("100 MB"), 4, Q_("0.1 s")), 10, what="the number of GPUs on a 43 GB/s store", mistakes={
    "The last of these would have to wait: round down.": 11,
    "Each GPU reads a whole batch in a step.": 43,
    "Bits and bytes are mixed up: all of these figures are in bytes.": 1,
    "Not even one? Convert to the same units, and check what is above the fraction bar.": 0,
})
### BEGIN HIDDEN TESTS
kits19 = Datasets.KiTS19.sample_size
check(gpus_per_drive(Q_("7 GB/s"), kits19, 7, Q_("0.636 s")), 4, what="the number of A100s on an NVMe drive")
check(gpus_per_drive(Q_("7 GB/s"), kits19, 7, Q_("323 ms")), 2, what="the number of H100s on an NVMe drive")
check(gpus_per_drive(Q_("530 MB/s"), kits19, 7, Q_("0.636 s")), 0, what="the number of A100s on a SATA SSD")
### END HIDDEN TESTS

# %% [markdown]
# ## Case 3: decode on the GPU
#
# NVIDIA's DALI moves decoding and augmentation to the GPU. The walkthrough models it as a CPU with 50 GB/s, and leaves the
# drive out.

# %%
predict("dali", choices=["The CPU", "The GPU", "Neither: it is a tie"],
        question="Training with DALI as a supply of 50 GB/s, images of 500 KB, a batch of 512: what binds?")

# %%
dali = pipe.replace(batch_size=512, workers=1, cpu_throughput=Q_("50 GB/s"))


def show_dali():
    step = dali.solve()
    print(f"GPU busy {100 * step.utilization:.0f} %: preparing takes {step.resource_times['CPU']:~.3g}")


reveal("dali", CALLED[dali.solve().bottleneck], then=show_dali)

# %% [markdown]
# 100 %, as in every row of the walkthrough's table, because its DALI is free. In reality decoding on the GPU takes **GPU
# time**, and two stages on one resource *add*. torchvision's GPU decoder was measured at 127.65 ms for a batch of 1000
# images on an A100 (pytorch/vision, pull request 8496), that is 0.128 ms an image. And the drive is still there.

# %%
on_gpu = dali.replace(device_input_time=Q_("0.12765 ms"), storage=Storage.NVMe_Gen4)
cases = {"forward, for free": dali.replace(phase="forward", storage=Storage.NVMe_Gen4),
         "training, for free": dali.replace(storage=Storage.NVMe_Gen4),
         "training, with its GPU time": on_gpu, "training, eight workers": pipe.replace(batch_size=512)}
table(["DALI, one NVMe drive", "step", "throughput", "binds", "GPU busy", "GPU in the model"], [
    [name, s.step_time, s.throughput, s.bottleneck, f"{100 * s.utilization:.0f} %",
     f"{100 * (s.stage_times['model'] / s.step_time).to('').magnitude:.0f} %"]
    for name, s in ((name, p.solve()) for name, p in cases.items())
])

# %% [markdown]
# Three things to see. In the forward pass even the "free" DALI does not reach 100 %: the drive holds it at half of that.
# In training the model's own step is three times as long, and the drive keeps up. And with its GPU time charged, the GPU
# is *busy* all the time and *training* less than half of it; `nvidia-smi` would call it fully busy. The rate is only
# 6 % above that of the eight workers in the last row. Decoding on the GPU may still be worth it, but it is not free.

# %%
explore(on_gpu.replace(storage=Q_("7 GB/s")), after="dali", phase=["training", "forward"], batch_size=[64, 128, 256, 512],
        storage=(Q_("2 GB/s"), Q_("20 GB/s")))

# %% [markdown]
# ### Exercise 6.7: the share that trains (4 points)
#
# Decoding runs on the GPU, and reading on the drive overlaps with it. Which share of a training step does the GPU spend
# in the *model*?
#
# <details><summary>Hint 1</summary>
#
# Which stages share a resource? Those add. Which do not? Those overlap.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The step is the longer of reading and of decoding plus model. Only the model's time is training.
#
# </details>

# %% role="answer" id="training-share"
def training_share(read_time, decode_time, model_time):
    """Share of a step [a number from 0 to 1] spent in the model; all arguments are the [time] for one batch."""
    ### BEGIN SOLUTION
    step = max(read_time, decode_time + model_time)
    return (model_time / step).to("").magnitude
    ### END SOLUTION

# %% role="test" id="training-share-test" points=4
check(training_share(Q_("20 ms"), Q_("30 ms"), Q_("10 ms")), 0.25, what="the share at 20, 30 and 10 ms", mistakes={
    "Decoding and the model share one GPU: their times add.": 10 / 30,
    "The drive is another resource: its time overlaps.": 10 / 60,
    "Decoding keeps the GPU busy, but it trains nothing.": 1.0,
})
check(training_share(Q_("80 ms"), Q_("30 ms"), Q_("10 ms")), 0.125, what="the share behind a slow drive", mistakes={
    "Reading takes longer than everything on the GPU here.": 0.25,
})
### BEGIN HIDDEN TESTS
free = training_share(Q_("1 ms"), Q_("0 ms"), Q_("55.38 ms"))
check(free, 1.0, what="the share if decoding were free")
check(training_share(Q_("36.571 ms"), Q_("65.357 ms"), Q_("55.384 ms")), 0.458702, what="the share at a batch of 512")
check(training_share(Q_("0.4 s"), Q_("65.357 ms"), Q_("55.384 ms")), 0.13846, what="the share behind a SATA SSD")
### END HIDDEN TESTS

# %% [markdown]
# ## Self-check (2 points)
#
# The GPU trains on a batch in 20 ms, and the CPU needs 35 ms for it; they overlap. How busy is the GPU? Assign it to `gpu_busy`: a share
# from 0 to 1, as an expression if you like (`gpu_busy = 10 / 40`).

# %% role="answer" id="self-check"
### BEGIN SOLUTION
gpu_busy = 20 / max(20, 35)
### END SOLUTION

# %% role="test" id="self-check-test" points=2
hint(globals().get("gpu_busy"), like=0.5, between=(0, 1), what="gpu_busy", within=5e-3, mistakes={
    "You added the times, but the two overlap.": 20 / 55,
    "That is the share the GPU waits.": 15 / 35,
    "That is how busy the CPU is.": 1.0,
})
### BEGIN HIDDEN TESTS
check(gpu_busy, 20 / 35, what="gpu_busy", within=5e-3)
### END HIDDEN TESTS

# %% [markdown]
# ## Audit a claim (4 points, read by a person)
#
# A blog post says: *"With 436 data loader workers our A100 reaches 21,800 images per second on 5 MB scans."* In four to
# six sentences: which two of its numbers would you question, with which evidence from this lab, and what single measurement
# would you ask for?

# %% [markdown] role="essay" id="explain-audit" points=4
# 21,800 img/s is a forward pass with multiply-accumulates counted as FLOPs; training takes six times the work that figure
# assumed, and NVIDIA publishes 2,470 img/s for an A100. 436 workers is what the formula gives for the forward pass, but a host has about 16 cores for each GPU, and
# workers past the physical cores add less each. And 21,800 scans of 5 MB are 109 GB/s, which neither a 7 GB/s drive nor a
# 32 GB/s link carries. I would ask for the measured throughput of real training steps end to end, beside the same with one
# batch kept on the GPU: the difference is the starvation.
#
# ### BEGIN MARK SCHEME
# - 1 point for each number that is questioned with evidence (rate: forward against training, MAC against FLOP, or the
#   published rate; workers: cores, sub-linear scaling; the implied 109 GB/s against drive or link). At most 3.
# - 1 point for a measurement that separates the GPU from its input (end to end against a cached batch, or alike).
# ### END MARK SCHEME

# %% [markdown]
# ## Your predictions (3 points)
#
# Each prediction you locked before its reveal counts, right or wrong. If you could not use the widgets, return your
# predictions here instead, for example `{"batch-64": "The CPU", "crossover": 100}`. Otherwise leave it as it is.

# %% role="answer" id="without-widgets"
def without_widgets():
    """Predictions by their keys, for whoever works without widgets [dict]."""
    ### BEGIN SOLUTION
    return {
        "baseline": Q_("20000 img/s"), "storage-check": "The drive is too slow", "cpu-wall": Q_("18 %"), "crossover": 22,
        "worker-fix": 44, "batch-64": "The GPU", "medical": 7, "dali": "The GPU",
    }
    ### END SOLUTION

# %% role="test" id="predictions-test" points=3
asked = ["baseline", "storage-check", "cpu-wall", "crossover", "worker-fix", "batch-64", "medical", "dali"]
with suppress(NotImplementedError, NameError):
    for key, answer in (without_widgets() or {}).items():
        predict(key, answer)
missing = [key for key in asked if key not in predictions()]
print(f"{len(asked) - len(missing)} of {len(asked)} predictions are locked. Missing: {', '.join(missing) or 'none'}.")
float(3 - 3 * len(missing) / len(asked))

# %% [markdown]
# ## How well do you know what you know?
#
# It helps to know *when* you are right, and you can train that.

# %%
scorecard()

# %% [markdown]
# ## Take away
#
# - Name the phase. Forward and training give opposite verdicts on the same pipeline.
# - Before you plan for a number of workers, check the cores, the drive and the link.
# - Moving work to the GPU costs GPU time: busy is not the same as training.
# - Check every resource, every time, with your own figures.
#
# **What comes next in this subject:** smaller numbers (quantization), keeping what was computed (the KV cache), and the
# question you can already ask: *more workers, or a faster GPU?*
