# %% [markdown]
# # 7. Decoding on the GPU
#
# **What does it cost to move work to where it seems to be free?** In about MINUTES minutes you know, and you question a claim. The
# GPU trains.
#
# NVIDIA's DALI moves decoding to the GPU. The round numbers treat it as a CPU that prepares 50
# GB/s.

# %% role="setup" id="setup-07"
from contextlib import suppress

from starvelab import PUBLISHED, Hardware, Models, OnDevice, Pipeline, Q_, Samples
from starvelab import Storage
from starvelab.checks import Credit, check
from starvelab.show import stage_bars, table
from starvelab.tables import cell
from starvelab.widgets import explore, finish, lock_predictions, play, predict
from starvelab.widgets import progress, reveal

pipe = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8,
                phase="training")
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
# This DALI costs the GPU nothing. Real decoding costs it time:
#
# - Some GPUs, such as A100 and H100, have a **decoder** of their own for baseline JPEGs. It works while the kernels
#   train, so it is one more resource, and its time **overlaps**.
# - On other GPUs **kernels** decode. They run where the model runs, so their time **adds**.
#
# <details><summary>How long both take, with sources</summary>
#
# On an A100 the decoder took 127.65 ms for 1000 images of 551 x 676 pixels on average (pytorch/vision, pull request 8496). NVIDIA
# says that it is 4 to 8 times as fast as the kernels of a V100; take 4.
#
# </details>

# %%
play({name: cases[f"training, {name}"] for name in ("a decoder", "kernels decode")},
     batch_size=[64, 128, 256, 512, 1024], find="batch_size", after="dali")

# %% [markdown]
# With a decoder the GPU trains for 85 % of the time by the round numbers, and for 100 % by the measured ones, with which it is
# slower. Where kernels decode, the GPU is *busy* all the time and *training* for 17 or 44 % of it. When does the decoder bind,
# and when the drive?

# %%
explore(own_hardware.replace(storage="7 GB/s"),
        {"dataset.on_device.decoder_time": (Q_("0.05 ms"), Q_("0.3 ms"))}, after="dali",
        phase=["training", "forward"], batch_size=[64, 128, 256, 512],
        storage=(Q_("2 GB/s"), Q_("20 GB/s")))

# %% [markdown]
# ## Exercise 7.1: the share that trains (4 points)
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
check(training_share(Q_("20 ms"), Q_("0.03 s"), Q_("10 ms"), decoder=False), 0.25,
      what="the share at 20, 30 and 10 ms where kernels decode", mistakes={
    "Kernels of decoding and of the model share one GPU: their times add.": 10 / 30,
    "The drive is another resource: its time overlaps.": 10 / 60,
    "Decoding keeps the GPU busy, but it trains nothing.": 1.0,
    "That is a percentage; return a share from 0 to 1.": 25.0,
    "Units do not cancel by themselves: write `.to(\"\").magnitude`.": 250.0,
    "Convert all times to the same unit first.": 0.5,
})
check(training_share(Q_("20 ms"), Q_("30 ms"), Q_("10 ms"), decoder=True), 10 / 30,
      what="the share at 20, 30 and 10 ms with a decoder", within=5e-4, mistakes={
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
# behind eight workers, with measured numbers:

# %%
stage_bars(pipe.replace(batch_size=256, assumptions=PUBLISHED).solve())

# %% [markdown]
# The GPU is busy about as much as in the story, though nothing is broken: it waits for more than half of each step. That does not prove
# the story: published rates of workers and GPUs allow anything from 22 to 98 %.

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Busy is not the same as training.
#
# **Next:** the drive is far away. [Notebook 8](08_object_storage.ipynb): can you train from S3?
