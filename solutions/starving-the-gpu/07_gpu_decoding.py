# %% [markdown]
# # 7. Decoding on the GPU, and a real workload
#
# **What does it cost to move work to where it seems to be free?** In about MINUTES minutes you know, and you question a claim. The
# GPU trains.
#
# KiTS19 has CT scans, called volumes, of 146.6 MB on average. A 3D U-Net on an A100 takes 7 of them in a training step of 0.636 s,
# and one worker needs about 184 ms to prepare one (MLPerf Storage, unet3d_a100; Lotus, Table II). Here they are read from one SATA
# SSD.

# %% role="setup" id="setup-07"
from contextlib import suppress
from math import ceil, floor  # noqa: F401 (for your answers)

from starvelab import (PUBLISHED, Datasets, Hardware, Models, OnDevice, Pipeline, Q_,
                       Samples, Storage, Workers)
from starvelab.checks import Credit, check, hint
from starvelab.show import stage_bars, table
from starvelab.tables import cell
from starvelab.widgets import explore, finish, lock_predictions, play, predict
from starvelab.widgets import progress, reveal

pipe = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8,
                phase="training")
kits = Pipeline(
    model=Models.UNet3D, hardware=Hardware.Cloud.A100, batch_size=7, phase="training",
    dataset=Samples(size=Datasets.KiTS19.sample_size), storage=Storage.SATA_SSD,
    workers=Workers(8, rate=Q_(1 / 0.184, "img/s")), assumptions=PUBLISHED,
)
CALLED = {"CPU": "The workers", "accelerator": "The GPU", "storage": "The drive",
          "decoder": "The decoder"}


def show_cases():
    steps = {name: case.solve() for name, case in cases.items()}
    table(["one NVMe drive, a batch of 512", "step", "throughput", "binds", "GPU busy",
           "GPU in the model"], [
        [name, s.step_time, s.throughput, CALLED[s.bottleneck],
         f"{100 * s.utilization:.0f} %",
         f"{100 * (s.stage_times['model'] / s.step_time).to('').magnitude:.0f} %"]
        for name, s in steps.items()
    ])


def why_dali():
    """What the verdict means, and what plausible mistakes predict."""
    times = dali.solve().resource_times
    supply, gpu = cell(times["CPU"]), cell(times["accelerator"])
    longer = (times["accelerator"] / times["CPU"]).m_as("")
    return {"meaning": f"The GPU takes {longer:.0f} times as long as the supply.",
            "mistakes": {
        f"Such a supply takes only {supply} for a batch.": "The workers",
        f"In a tie both take as long: {supply} and {gpu}.": "Neither: it is a tie"}}

# %%
stage_bars(kits.solve())

# %% [markdown]
# Eight workers are plenty here; the wall is the **drive**. A GPU that uses only eleven samples a second asks for 1.6 GB/s,
# because each sample is huge.
#
# ## Exercise 7.1: how many GPUs can share a drive? (3 points)
#
# Each GPU takes `batch_size` volumes in a training step of `step_time`. How many of them can one drive keep at full speed?
#
# <details><summary>Hint</summary>
#
# What does one GPU read in a second? How often does that fit into the drive's bandwidth? Round down with `floor`, which is
# imported.
#
# </details>

# %% role="answer" id="gpus-per-drive"
def gpus_per_drive(drive_bandwidth, volume_size, batch_size, step_time):
    """The largest number of GPUs [int] that a drive feeds; arguments are [data/time],
    [data], a number, [time]."""
    ### BEGIN SOLUTION
    demand = batch_size * volume_size / step_time
    return floor(round((drive_bandwidth / demand).to("").magnitude, 9))
    ### END SOLUTION

# %% role="test" id="gpus-per-drive-test" points=3
check(gpus_per_drive(Q_("43 GB/s"), Q_("100 MB"), 4, Q_("0.1 s")), 10,
      what="the number of GPUs on a 43 GB/s store", mistakes={
    "The last of these would have to wait: round down.": 11,
    "Each GPU reads a whole batch in a step.": 43,
    "Bits and bytes are mixed up: all of these numbers are in bytes.": 1,
    "Not even one? Convert to the same units, and check what is above the fraction "
    "bar.": 0,
})
check(gpus_per_drive(Q_("600 MB/s"), Q_("100 MB"), 4, Q_("0.5 s")), 0,
      what="the number of GPUs on a slow drive", mistakes={
    "This drive is too slow for even one GPU: none runs at full speed.": 1,
}, means="So a drive feeds only so many GPUs, however many a host has.")
### BEGIN HIDDEN TESTS
kits19 = Datasets.KiTS19.sample_size
check(gpus_per_drive(Q_("7 GB/s"), kits19, 7, Q_("0.636 s")), 4, what="the number of A100s on an NVMe drive")
check(gpus_per_drive(Q_("7 GB/s"), kits19, 7, Q_("323 ms")), 2, what="the number of H100s on an NVMe drive")
check(gpus_per_drive(Q_("530 MB/s"), kits19, 7, Q_("0.636 s")), 0, what="the number of A100s on a SATA SSD")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("gpus-per-drive", gpus_per_drive, final=False)
### BEGIN ENDING
def a_drive(draw):
    batch, size, step = draw.randint(1, 16), draw.randint(20, 900), draw.randint(50, 900)
    bandwidth = (draw.randint(0, 12) + 0.6) * batch * size / step
    return Q_(bandwidth, "GB/s"), Q_(size, "MB"), batch, Q_(step, "ms")


ending = 3, "drives", a_drive
### END ENDING

# %% [markdown]
# ## Decode on the GPU
#
# NVIDIA's DALI moves decoding to the GPU. In the round numbers it is cheap decoding: a CPU that prepares 50 GB/s.

# %%
predict("dali", choices=["The workers", "The GPU", "Neither: it is a tie"],
        question="Training with DALI as a supply of 50 GB/s, images of 500 KB, a batch "
                 "of 512: what binds?")

# %%
dali = pipe.replace(batch_size=512, workers="50 GB/s")
free = dali.replace(storage=Storage.NVMe_Gen4)
own_hardware = free.replace(
    dataset=Samples(on_device=OnDevice(decoder_time="0.12765 ms")))
cases = {
    "forward, DALI for free": free.replace(phase="forward"),
    "training, DALI for free": free,
    "training, a decoder": own_hardware,
    "training, kernels decode": free.replace(
        dataset=Samples(on_device=OnDevice("0.5106 ms")))}
cases |= {f"{name}, measured": case.replace(assumptions=PUBLISHED)
          for name, case in cases.items() if name.startswith("training")}

# %%
reveal("dali", CALLED[dali.solve().bottleneck], then=show_cases, why=why_dali)

# %% [markdown]
# This DALI costs the GPU nothing. A real one has a cost:
#
# - Some GPUs, such as A100 and H100, have a **decoder**, hardware of its own for baseline JPEGs. It works while the kernels
#   train, so it is one more resource, and its time **overlaps**. On an A100 it took 127.65 ms for 1000 images of 551 x 676
#   pixels on average (pytorch/vision, pull request 8496).
# - On other GPUs **kernels** decode. They run where the model runs, so their time **adds**. NVIDIA says that the decoder is 4 to 8
#   times as fast as the kernels of a V100; take 4.

# %%
play({name: cases[f"training, {name}"] for name in ("a decoder", "kernels decode")},
     batch_size=[64, 128, 256, 512], after="dali")

# %% [markdown]
# With a decoder the GPU trains for 85 % of the time by the round numbers, and for 100 % by the measured ones, where it is slower.
# Where kernels decode, it is *busy* all the time and *training* for 17 or 44 % of it. When does the decoder bind, and when the drive?

# %%
explore(own_hardware.replace(storage="7 GB/s"),
        {"dataset.on_device.decoder_time": (Q_("0.05 ms"), Q_("0.3 ms"))}, after="dali",
        phase=["training", "forward"], batch_size=[64, 128, 256, 512],
        storage=(Q_("2 GB/s"), Q_("20 GB/s")))

# %% [markdown]
# ## Exercise 7.2: the share that trains (4 points)
#
# The GPU decodes: by a decoder of its own, or by kernels. Reading on the drive overlaps with both. Which share of a training
# step does the GPU spend in the *model*?
#
# <details><summary>Hint</summary>
#
# Stages on one resource add. With a decoder three resources work side by side. With kernels there are two, and one of them does
# two things.
#
# </details>

# %% role="answer" id="training-share"
def training_share(read_time, decode_time, model_time, decoder):
    """Share of a step [a number from 0 to 1] spent in the model; the [time] for one
    batch, and `decoder`: False where kernels decode."""
    ### BEGIN SOLUTION
    kernels = model_time if decoder else decode_time + model_time
    step = max(read_time, decode_time, kernels)
    return (model_time / step).to("").magnitude
    ### END SOLUTION

# %% role="test" id="training-share-test" points=4
check(training_share(Q_("20 ms"), Q_("30 ms"), Q_("10 ms"), decoder=False), 0.25,
      what="the share at 20, 30 and 10 ms where kernels decode", mistakes={
    "Kernels of decoding and of the model share one GPU: their times add.": 10 / 30,
    "The drive is another resource: its time overlaps.": 10 / 60,
    "Decoding keeps the GPU busy, but it trains nothing.": 1.0,
})
check(training_share(Q_("20 ms"), Q_("30 ms"), Q_("10 ms"), decoder=True), 10 / 30,
      what="the share at 20, 30 and 10 ms with a decoder", mistakes={
    "A decoder works beside the kernels: the two do not add.": 0.25,
    "The decoder is a resource, too, and here it is the slowest.": 10 / 20,
})
check(training_share(Q_("80 ms"), Q_("30 ms"), Q_("10 ms"), decoder=False), 0.125,
      what="the share behind a slow drive", mistakes={
    "Reading takes longer than everything on the GPU here.": 0.25,
}, means="So a GPU may be busy all the time and train for a part of it.")
### BEGIN HIDDEN TESTS
free = training_share(Q_("1 ms"), Q_("0 ms"), Q_("55.38 ms"), decoder=False)
check(free, 1.0, what="the share if decoding were free")
check(training_share(Q_("36.571 ms"), Q_("261.4 ms"), Q_("55.384 ms"), decoder=False), 0.174824, what="the share at a batch of 512, by kernels")
check(training_share(Q_("36.571 ms"), Q_("65.357 ms"), Q_("55.384 ms"), decoder=True), 0.847407, what="the share at a batch of 512, by a decoder")
check(training_share(Q_("0.4 s"), Q_("65.357 ms"), Q_("55.384 ms"), decoder=True), 0.13846, what="the share behind a SATA SSD")
check(training_share(Q_("2 ms"), Q_("6 ms"), Q_("9 ms"), decoder=True), 1.0, what="the share where the model takes longest")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("training-share", training_share, final=False)
### BEGIN ENDING
ending = 4, "steps", lambda draw: (
    *(Q_(draw.randint(1, 90), "ms") for _ in range(3)), draw.choice((True, False)))
### END ENDING

# %% [markdown]
# ## Self-check (1 point)
#
# The GPU trains on a batch in 20 ms, and the workers need 35 ms for it; they overlap. How busy is the GPU? Assign a
# share from 0 to 1 to `gpu_busy`, as an expression if you like (`gpu_busy = 10 / 40`).

# %% role="answer" id="self-check"
### BEGIN SOLUTION
gpu_busy = 20 / max(20, 35)
### END SOLUTION

# %% role="test" id="self-check-test" points=1
hint(globals().get("gpu_busy"), like=0.5, between=(0, 1), what="gpu_busy", within=5e-3,
     mistakes={
    "You added the times, but the two overlap.": 20 / 55,
    "That is the share the GPU waits.": 15 / 35,
    "That is how busy the workers are.": 1.0,
})
check(gpu_busy, 20 / 35, what="gpu_busy", within=5e-3,
      means="So behind slower workers the share is the ratio of the two times.")
### BEGIN HIDDEN TESTS
check(gpu_busy, 20 / 35, what="gpu_busy", within=5e-3)
### END HIDDEN TESTS

# %% [markdown]
# ## Question a claim (4 points, read by a person)
#
# A blog post says: *"With 436 data loader workers our A100 reaches 21,800 images per second on 5 MB scans."* In four to
# six sentences: which of its numbers would you question, with which evidence from this lab, and what single measurement
# would you ask for?

# %% [markdown] role="essay" id="explain-audit" points=4
# 21,800 img/s is a forward pass with multiply-accumulates counted as FLOPs; training takes six times the work that figure
# assumed, and NVIDIA publishes 2,470 img/s for an A100. 436 workers is what the formula gives for the forward pass, but a host has about 16 cores for each GPU, and
# workers past the physical cores add less each. And 21,800 scans of 5 MB are 109 GB/s, which no drive of 7 GB/s reads. I would ask for the measured throughput of real training steps end to end, beside the same with one
# batch kept on the GPU: the difference is the starvation.
#
# ### BEGIN MARK SCHEME
# - 1 point for each number that is questioned with evidence (rate: forward against training, MAC against FLOP, or the
#   published rate; workers: cores, sub-linear scaling; the implied 109 GB/s against the drive). At most 3.
# - 1 point for a measurement that separates the GPU from its input (end to end against a cached batch, or alike).
# ### END MARK SCHEME

# %% [markdown]
# ## Your predictions (3 points)
#
# Each prediction that you locked before its reveal counts, right or wrong. If you could not use the widgets, return yours here,
# for example `{"dali": "The workers", "crossover": 100}`.

# %% role="answer" id="without-widgets"
def without_widgets():
    """Predictions by their keys, for whoever works without widgets [dict]."""
    ### BEGIN SOLUTION
    return {
        "baseline": Q_("20000 img/s"), "storage-check": "The drive is too slow", "cpu-wall": Q_("18 %"), "crossover": 22,
        "worker-fix": 44, "in-training": "The drive is too slow", "medical": 7, "dali": "The GPU",
    }
    ### END SOLUTION

# %% role="test" id="predictions-test" points=3
asked = {"baseline": "1", "storage-check": "2", "cpu-wall": "3", "crossover": "4",
         "worker-fix": "5", "in-training": "6", "medical": "6", "dali": "7"}
answers = {}
with suppress(NotImplementedError, NameError):
    answers = without_widgets()
share, credit = lock_predictions(answers, asked), Credit(3)
credit.share(3, "predictions", lambda: share)
credit.total()

# %% [markdown]
# ## Why 40 %?
#
# Notebook 1 began with an A100 that should be busy 95 % of the time, and `nvidia-smi` said 40 %. Here is ResNet-50 in training
# once more, behind eight workers, with measured numbers:

# %%
stage_bars(pipe.replace(batch_size=256, assumptions=PUBLISHED).solve())

# %% [markdown]
# Behind eight workers such a GPU is busy about as much as in the story, though nothing is broken: it waits for more than half of
# each step. That does not prove the story: published rates of workers and GPUs allow anything from 22 to 98 %.

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Busy is not the same as training: what kernels decode costs the GPU's time, what a decoder does overlaps.
# - Check every resource.
#
# **Next:** the drive is far away. [Notebook 8](08_object_storage.ipynb): can you train from S3?
