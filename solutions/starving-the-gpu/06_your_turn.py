# %% [markdown]
# # 6. Your turn
#
# You have the ceiling, the drive, the CPU, the crossing and the workers. Now use them together on two cases: a batch of
# 64, and medical images. In both of them the obvious answer is only the beginning.
#
# **The phase.** Notebooks 1 to 5 timed the forward pass, as [the walkthrough](https://github.com/harvard-edge/cs249r_book/blob/ea6dae3053823dfeee97d93d0f370501b514e001/mlsysim/docs/tutorials/04_starving_the_gpu.qmd)
# does. In this notebook the GPU trains: each
# question and each exercise is about a training step, unless it says otherwise.
#
# In about MINUTES minutes you will
#
# - find out which phase decides what binds,
# - compute a crossing and a number of workers that nobody rounded,
# - see why a number of workers is not yet a plan.
#
# The exercises stand on their own: a wrong answer in one does not spoil another.

# %% role="setup" id="setup-06"
from math import ceil, floor  # noqa: F401 (for your answers)

from starvelab import Datasets, Hardware, Models, Pipeline, Q_, Samples
from starvelab.checks import check
from starvelab.show import say, table
from starvelab.widgets import explore, predict, progress, reveal

forward = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8)
pipe = forward.replace(phase="training")

# %% [markdown]
# ## Case 1: a batch of 64
#
# Eight workers, images of 500 KB, a batch of 64, and a GPU that trains.

# %%
predict("batch-64", choices=["The CPU", "The GPU", "Neither: it is a tie"],
        question="A training step at a batch of 64 behind eight workers: what binds?")

# %%
CALLED = {"CPU": "The CPU", "accelerator": "The GPU"}


def show_flip():
    steps = {"forward": forward.solve(batch_size=64),
             "training": pipe.solve(batch_size=64)}
    table(["phase", "CPU", "GPU", "binds", "GPU busy"], [
        [name, s.resource_times["CPU"], s.resource_times["accelerator"],
         CALLED[s.bottleneck], f"{100 * s.utilization:.1f} %"]
        for name, s in steps.items()
    ])

# %%
reveal("batch-64", CALLED[pipe.solve(batch_size=64).bottleneck], then=show_flip)

# %% [markdown]
# The same pipeline, the same GPU, the opposite verdict of the walkthrough's, in whose table the CPU binds at this batch: it
# times the forward pass. In a training step the arithmetic and the overhead of the layers
# are three times as much, and the workers' time stays what it was. A model that times the wrong phase does not merely get a number
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
check(training_step(100), Q_("22.8996 ms"), what="training_step(100)", within=2e-4,
      mistakes={
    "That is the forward pass alone.": Q_("7.6432 ms"),
    "The dispatch is paid once.": Q_("22.9296 ms"),
    "The overhead of the layers triples as well.": Q_("12.8996 ms"),
    "The arithmetic triples as well.": Q_("17.6432 ms"),
    "Only half of the peak is reached.": Q_("18.9573 ms"),
    "That is the backward pass alone; training runs forward too.": Q_("15.2714 ms"),
    "Take the 4.1 GFLOP as they are given: only the factor of three is asked for.":
        Q_("30.7842 ms"),
})
### BEGIN HIDDEN TESTS
for batch in (8, 64, 512):
    expected = pipe.solve(batch_size=batch).resource_times["accelerator"]
    check(training_step(batch), expected, what=f"training_step({batch})", within=2e-4)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 6.2: what binds? (1.5 points)
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

# %% role="test" id="what-binds-test" points=1.5
check(what_binds(Q_("16 ms"), Q_("7 ms")), "CPU", what="what binds at 16 and 7 ms",
      among=("CPU", "GPU"), mistakes={
    "The one that takes longer sets the step.": "GPU",
})
check(what_binds(Q_("20 ms"), Q_("20 ms")), "GPU", what="what binds in a tie",
      among=("CPU", "GPU"), mistakes={
    "In a tie the GPU never waits.": "CPU",
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
medical = pipe.replace(dataset=Samples(size=Datasets.Medical5MB.sample_size))
predict("medical", between=(1, None), whole=True,
        question="Training on these images: what is the smallest batch size at which "
                 "the GPU has to wait?")

# %%
def show_medical():
    say(medical.crossover())
    return medical.sweep(batch_size=[1, 2, 3, 6, 7, 8, 32, 64, 128, 256, 512, 1024])


reveal("medical", medical.crossover().starves_from, then=show_medical)

# %% [markdown]
# The walkthrough asks for this crossing and sweeps from 32 again, so its own table cannot answer its own question. (For
# the forward pass, which it times, the answer is 3.) Move the workers. Which batch sizes starve behind twice as many?

# %%
explore(medical, after="medical", advice=False,
        batch_size=[1, 2, 4, 6, 7, 8, 12, 13, 16, 32, 64, 128, 256],
        workers=[2, 4, 8, 16, 32])

# %% [markdown]
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
    """Batch size [a plain number] at which both take equally long; arguments are [data]
    and [data/time]."""
    ### BEGIN SOLUTION
    cpu_per_image = (sample_size / cpu_throughput).to("ms").magnitude
    return 15.015 / (cpu_per_image - 41 / 520)
    ### END SOLUTION

# %% role="test" id="crossing-test" points=4
check(crossing(Q_("1 MB"), Q_("2 GB/s")), 35.6521, what="the crossing of 1 MB images",
      mistakes={
    "Give it unrounded: this one is rounded down.": 35.0,
    "Give it unrounded: this one is rounded up.": 36.0,
    "The GPU's time grows with the batch as well.": 30.03,
    "Times per image that overlap are subtracted here, not added.": 25.9395,
    "Check the units: the GPU's figures are in milliseconds.": 15.015
    / (0.0005 - 41 / 520),
    "That is where the forward pass crosses: this pipeline trains.": 10.5865,
})
### BEGIN HIDDEN TESTS
check(crossing(Q_("5 MB"), Q_("2 GB/s")), 6.201589, what="the crossing of 5 MB images")
check(crossing(Q_("500 KB"), Q_("2 GB/s")), 87.728090, what="the crossing of 500 KB images")
check(crossing(Q_("5 MB"), Q_("50 GB/s")), 709.8, what="the crossing of 5 MB images at 50 GB/s")
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 6.4: workers for medical images (3 points)
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

# %% role="test" id="medical-workers-test" points=3
check(medical_workers(270, Q_("4 MB")), 119,
      what="the number of workers for 270 images of 4 MB", mistakes={
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
say(medical.workers_needed(batch_size=256))

# %% [markdown]
# So it is not feasible, by far and for several reasons. Sometimes no number of workers is enough.
#
# ### Exercise 6.5: the narrowest place (1.5 points)
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
    """Name of the resource that limits a pipeline [str]; `rates` maps names to plain
    numbers."""
    ### BEGIN SOLUTION
    return min(rates, key=rates.get)
    ### END SOLUTION

# %% role="test" id="narrowest-test" points=1.5
check(narrowest({"drive": 1400, "CPU": 87200, "link": 6400, "GPU": 21800}), "drive",
      what="the narrowest place", mistakes={
    "That is the widest place: it waits for all the others.": "CPU",
    "Look at all of them, not only at those next to the GPU.": "link",
    "The GPU could do more than it gets here.": "GPU",
})
check(narrowest({"CPU": 4000, "GPU": 2470, "link": 170000, "drive": 61000}), "GPU",
      what="the narrowest place of another pipeline", mistakes={
    "The drive is not always the narrowest place: compare the rates.": "drive",
    "The order of the names says nothing: compare the rates.": "CPU",
})
### BEGIN HIDDEN TESTS
check(narrowest({"CPU": 10, "drive": 9.5, "link": 11}), "drive", what="the narrowest of three")
check(narrowest({"b": 5, "a": 7}), "b", what="the narrowest of two")
### END HIDDEN TESTS

# %% [markdown]
# ## In your own words
#
# Somebody shows you a table of utilizations and says which resource binds. What do you ask before you believe it? Two or
# three sentences. Nobody marks this; writing it is how you notice what you have not understood yet.

# %% [markdown]
# *Double-click here and write.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Name the phase. Forward and training give opposite verdicts on the same pipeline.
# - Write both times as lines in the batch size: where they cross, the verdict turns.
# - Before you plan for a number of workers, check the cores, the drive and the link.
#
# **Next:** volumes so large that the drive decides, and a GPU that decodes its own images. [Notebook 7](07_gpu_decoding.ipynb).
