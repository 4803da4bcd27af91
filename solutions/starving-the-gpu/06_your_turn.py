# %% [markdown]
# # 6. Your turn
#
# So far the GPU only ran forward, with round numbers. Now it trains, also on medical images, and in about MINUTES minutes you
# choose a GPU and a host.
#
# Two verdicts so far, at a batch of 256: one NVMe drive is too slow for this GPU, and eight workers are too few.

# %% role="setup" id="setup-06"
from math import ceil, floor

from starvelab import PUBLISHED, Datasets, Hardware, Models, Pipeline, Q_, Samples
from starvelab import Workers
from starvelab.checks import Credit, check, one_of
from starvelab.show import say, table
from starvelab.tables import cell
from starvelab.widgets import explore, finish, my_model, play, predict, progress
from starvelab.widgets import reveal

forward = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8)
pipe = forward.replace(phase="training")


def both_sets():
    """One step with round numbers, forward, and one measured, in training."""
    drive = forward.replace(batch_size=256, storage=Hardware.Cloud.A100)
    return drive.solve(), drive.solve(phase="training", assumptions=PUBLISHED)


def changed():
    """The verdict that changes, among the choices."""
    drive, workers = ([one(s) for s in both_sets()]
                      for one in (lambda s: s.demand_at_ceiling > Q_("7 GB/s"),
                                  lambda s: s.bottleneck == "CPU"))
    if drive[0] != drive[1]:
        return "Both change" if workers[0] != workers[1] else "The drive is too slow"
    return "Eight workers are too few"


def show_both():
    names = "round numbers, forward", "measured numbers, training"
    table(["", "asked of the drive", "7 GB/s are", "eight workers bring", "GPU busy"], [
        [name, s.demand_at_ceiling,
         "too slow" if s.demand_at_ceiling > Q_("7 GB/s") else "fast enough",
         s.throughput, f"{100 * s.utilization:.0f} %"]
        for name, s in zip(names, both_sets())])


def show_batches():
    return medical.sweep(batch_size=[*range(1, 10), 32, 128, 512])


def show_faster():
    behind = pipe.replace(batch_size=256, assumptions=PUBLISHED,
                          workers=Workers(8, cores=16))
    rows = []
    for name in ("A100", "H100", "B200"):
        here = behind.replace(hardware=getattr(Hardware.Cloud, name))
        step = here.solve()
        rows.append([name, here.solve(workers="1e9 img/s").throughput, step.throughput,
                     f"{100 * step.utilization:.0f} %"])
    table(["GPU", "alone", "behind eight workers", "busy"], rows)


my = my_model()  # your functions, and the lab's where one is missing
gpus = {name: pipe.replace(batch_size=256, workers=Workers(8, cores=16),
                           assumptions=PUBLISHED,
                           hardware=getattr(Hardware.Cloud, name))
        for name in ("A100", "B200")}


def why_training():
    """What the verdict means, and what plausible mistakes predict."""
    round_, measured = both_sets()
    slower = [(a / b).m_as("") for a, b in (
        (s.resource_times[name] for s in (measured, round_))
        for name in ("CPU", "accelerator"))]
    asked = cell(measured.demand_at_ceiling)
    return {"meaning": f"In training the drive must deliver {asked}.",
            "mistakes": {
        f"The workers get slower too, {slower[0]:.1f} times: they are still too few.":
            "Both change",
        f"The GPU gets {slower[1]:.1f} times as slow, and the workers "
        f"{slower[0]:.1f} times: they are still too few.": "Eight workers are too few"}}


def why_medical():
    """What the batch size means, and what plausible mistakes predict."""
    forward_too = medical.replace(phase="forward").crossover().starves_from
    return {"meaning": "Practically every batch starves it.", "mistakes": {
        "Perhaps you kept the images of 500 KB.": pipe.crossover().starves_from,
        "Perhaps you kept the forward pass.": forward_too}}

# %%
predict("in-training", choices=["The drive is too slow", "Eight workers are too few",
                                "Both change"],
        question="Let the GPU train, with measured numbers: which verdict changes?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Training takes three times the work. Measured, the GPU is slower than half of its peak, images are smaller than 500 KB, and a
# worker prepares fewer of them.
#
# </details>

# %%
reveal("in-training", changed(), then=show_both, why=why_training)

# %% [markdown]
# ImageNet's images have 114.66 KB on average, and the GPU takes 2,470 img/s. A measured worker prepares 145.6 img/s in place
# of 500.
#
# ## Exercise 6.1: the training step (4 points)
#
# From here on the GPU trains, with the round numbers. Arithmetic: 4.1 GFLOP an image in the forward pass, at half of
# 312 TFLOP/s. Overhead: 50 layers of 0.1 ms. Both triple. The dispatch of 0.015 ms is paid once for the whole step.
#
# <details><summary>Hint</summary>
#
# Start from exercise 1.1 and multiply two of its three terms by three.
#
# </details>

# %% role="answer" id="training-step"
def training_step(batch_size):
    """Time of one training step [time]."""
    # Your model has the forward step: my.step_time(batch_size)
    ### BEGIN SOLUTION
    compute = Q_("4.1 GFLOP") * batch_size / (0.5 * Q_("312 TFLOP/s"))
    return (3 * compute + 3 * 50 * Q_("0.1 ms") + Q_("0.015 ms")).to("ms")
    ### END SOLUTION

# %% role="test" id="training-step-test" points=4
check(training_step(100), Q_("22.8996 ms"), what="training_step(100)", within=1e-5,
      mistakes={
    "That is the forward pass alone.": Q_("7.6432 ms"),
    "The dispatch is paid once.": Q_("22.9296 ms"),
    "The dispatch of the step is missing.": Q_("22.8846 ms"),
    "The overhead of the layers triples as well.": Q_("12.8996 ms"),
    "The arithmetic triples as well.": Q_("17.6432 ms"),
    "Only half of the peak is reached.": Q_("18.9573 ms"),
    "That is the backward pass alone; training runs forward too.": Q_("15.2714 ms"),
    "Take the 4.1 GFLOP as they are given: only the factor of three is asked for.":
        Q_("30.7842 ms"),
}, means="So a training step takes nearly three forward passes.")
### BEGIN HIDDEN TESTS
for batch in (8, 64, 512):
    expected = pipe.solve(batch_size=batch).resource_times["accelerator"]
    check(training_step(batch), expected, what=f"training_step({batch})", within=2e-4)
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("training-step", training_step, final=False)
### BEGIN ENDING
ending = 4, "batches", lambda draw: (draw.randint(2, 400),)
### END ENDING

# %% [markdown]
# ## Medical images
#
# Now each image has 5 MB instead of 500 KB. The GPU and the eight workers stay.

# %%
medical = pipe.replace(dataset=Samples(size=Datasets.Medical5MB.sample_size))
predict("medical", between=(1, None), whole=True,
        question="Training on these images: what is the smallest batch size at which "
                 "the GPU has to wait?")

# %%
reveal("medical", medical.crossover().starves_from, why=why_medical,
       then=show_batches)

# %%
explore(medical, after="medical", advice=False,
        batch_size=[1, 2, 4, 6, 7, 8, 12, 13, 16, 32, 64, 128, 256],
        workers=[2, 4, 8, 16, 32])

# %% [markdown]
# ## Exercise 6.2: the crossing (4 points)
#
# Give the exact batch size, not rounded, at which preparing takes as long as training. The training step takes 41/520 ms for
# each image and 15.015 ms of overhead.
#
# <details><summary>Hint</summary>
#
# The workers need `sample_size / cpu_throughput` for each image; convert it to milliseconds. Write both times as lines in the
# batch size and set them equal.
#
# </details>

# %% role="answer" id="crossing"
def crossing(sample_size, cpu_throughput):
    """Batch size [a plain number] at which both take equally long; arguments are [data]
    and [data/time]."""
    # An image's time, by your model: my.cpu_time(1, sample_size, 1, cpu_throughput)
    ### BEGIN SOLUTION
    cpu_per_image = (sample_size / cpu_throughput).to("ms").magnitude
    return 15.015 / (cpu_per_image - 41 / 520)
    ### END SOLUTION

# %% role="test" id="crossing-test" points=4
check(crossing(Q_("1000 KB"), Q_("2 GB/s")), 35.6521,
      what="the crossing of images of 1000 KB", mistakes={
    "Convert the workers' time to milliseconds first.": 15.015 / (500 - 41 / 520),
    "Give it unrounded: this one is rounded down.": 35.0,
    "Give it unrounded: this one is rounded up.": 36.0,
    "The GPU's time grows with the batch as well.": 30.03,
    "Times per image that overlap are subtracted here, not added.": 25.9395,
    "Check the units: the GPU's times are in milliseconds.": 15.015
    / (0.0005 - 41 / 520),
    "That is where the forward pass crosses: this pipeline trains.": 10.5865,
}, means="So larger images starve a GPU from smaller batches on.")
### BEGIN HIDDEN TESTS
check(crossing(Q_("5 MB"), Q_("2 GB/s")), 6.201589, what="the crossing of 5 MB images")
check(crossing(Q_("500 KB"), Q_("2 GB/s")), 87.728090, what="the crossing of 500 KB images")
check(crossing(Q_("5 MB"), Q_("50 GB/s")), 709.8, what="the crossing of 5 MB images at 50 GB/s")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("crossing", crossing, final=False)
### BEGIN ENDING
ending = 4, "images", lambda draw: (Q_(draw.randint(100, 900), "KB"), Q_(draw.randint(200, 900), "MB/s"))
### END ENDING

# %% [markdown]
# ## Exercise 6.3: workers for medical images (3 points)
#
# How many workers of 250 MB/s does it take until a GPU that trains never waits? Compute the training step in your function,
# and do not round it.
#
# <details><summary>Hint</summary>
#
# First the training step: 41/520 ms for each image and 15.015 ms. Then the formula of notebook 5, rounded up once:
# `ceil` is imported.
#
# </details>

# %% role="answer" id="medical-workers"
def medical_workers(batch_size, sample_size):
    """The smallest number of workers [int]; `sample_size` is [data]."""
    # Your model has my.how_many_workers(batch_size, sample_size, rate, gpu_step)
    ### BEGIN SOLUTION
    gpu_step = Q_(41 / 520 * batch_size + 15.015, "ms")
    return ceil(round((batch_size * sample_size / (Q_("250 MB/s") * gpu_step)).to("").magnitude, 9))
    ### END SOLUTION

# %% role="test" id="medical-workers-test" points=3
check(medical_workers(270, Q_("4 MB")), 119,
      what="the number of workers for 270 images of 4 MB", mistakes={
    "One fewer is enough: round once, at the end, and not the GPU's step.": 120,
    "With that many the GPU still waits a little: round up.": 118,
    "The overhead of the GPU's step is missing.": 203,
    "The GPU's step grows with the batch: that one is for 256 images.": 123,
    "That is an eighth: 250 MB/s are one worker's, and 2 GB/s are those of eight.": 15,
    "That is for the forward pass: this pipeline trains.": 357,
})
check(medical_workers(64, Q_("3 MB")), 39,
      what="the number of workers for 64 images of 3 MB", mistakes={
    "With that many the GPU still waits a little: `round` may round down.": 38,
}, means="So the number of workers grows with the bytes of an image.")
### BEGIN HIDDEN TESTS
check(medical_workers(256, Q_("5 MB")), 146, what="the number of workers for 256 images of 5 MB")
check(medical_workers(1024, Q_("500 KB")), 22, what="the number of workers for 1024 images of 500 KB")
check(medical_workers(520, Q_("11203 KB")), 416, what="the number of workers in a tie")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("medical-workers", medical_workers, final=False)
### BEGIN ENDING
ending = 3, "batches", lambda draw: draw.choice((
    (draw.randint(1, 500), Q_(draw.randint(5, 90), "MB")), (520, Q_("11203 KB"))))
### END ENDING

# %% [markdown]
# Such workers need cores and a drive:

# %%
say(medical.workers_needed(batch_size=256))

# %% [markdown]
# ## The fastest GPU
#
# ResNet-50 in training, with measured numbers, behind the same eight workers:

# %%
show_faster()

# %% [markdown]
# Alone the B200 is four times as fast as the A100. Behind these workers it is no faster:

# %%
play(gpus, workers=range(1, 65), find="workers", after="in-training")

# %% [markdown]
# ## Exercise 6.4: which GPU do you rent? (5 points)
#
# `offers` has, for each GPU, its rate alone (in img/s) and its price (in dollars an hour), such as `{"A100": (2470, 2.0)}`. Drive
# and workers deliver `supply` img/s. Return the name of the GPU that trains the most images for a dollar, among those that really
# train at least `needed` img/s. If none does, return `None`.
#
# <details><summary>Hint 1</summary>
#
# What does a GPU really train, if it could take more than `supply`?
#
# </details>
# <details><summary>Hint 2</summary>
#
# If `supply` is half of the A100's rate, how many images a second does a dollar an hour buy?
#
# </details>

# %% role="answer" id="which-gpu"
def which_gpu(offers, supply, needed):
    """Name of the GPU to rent [str], or None; rates are plain numbers of img/s."""
    # Your model has a GPU's busy share, exact but for rounding:
    # my.utilization(Q_(1 / supply, "s"), Q_(1 / rate, "s"))
    ### BEGIN SOLUTION
    images = {name: min(rate, supply) / price for name, (rate, price) in offers.items()
              if min(rate, supply) >= needed}
    return max(images, key=lambda name: images[name], default=None)
    ### END SOLUTION

# %% role="test" id="which-gpu-test" points=5
offers = {"L4": (400, 0.3), "A100": (2400, 2.0), "H100": (4500, 3.9),
          "B200": (10000, 5.5)}
check(which_gpu(dict(offers), 2600, 1000), "A100", what="the GPU behind 2600 img/s",
      among=offers, mistakes={
    "Alone that one trains the most, and here it waits most of the time.": "B200",
    "It trains a few images more, and costs far more: count the images for a dollar.":
        "H100",
    "It is cheap, and it does not train as many images as are needed.": "L4",
})
check(which_gpu(dict(offers), 900, 1000), None,
      what="the GPU behind 900 img/s where 1000 are needed")
check(which_gpu(dict(offers), 20000, 1000), "B200", what="the GPU behind 20000 img/s",
      among=offers, mistakes={
    "Nothing waits here: compare the images for a dollar, not the price of an hour.":
        "A100",
}, means="So which GPU is the best buy depends on what feeds it.")
### BEGIN HIDDEN TESTS
two = {"fast": (9000, 6.0), "slow": (1500, 1.0)}
check(which_gpu(dict(two), 1800, 1400), "slow", what="the GPU of two offers")
check(which_gpu(dict(two), 1800, 1600), "fast", what="the GPU of two offers that are asked for more")
check(which_gpu(dict(two), 1200, 1200), "slow", what="the GPU where the need is just met")
check(which_gpu(dict(two), 1000, 1200), None, what="the GPU where the supply is too small")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("which-gpu", which_gpu, final=False)
### BEGIN ENDING
def some_offers(draw):
    rates, prices = draw.sample(range(300, 12_000), 4), draw.sample(range(5, 70), 4)
    offers = {f"GPU {n}": (rate, price / 10) for n, (rate, price) in enumerate(zip(rates, prices))}
    supply = draw.randint(500, 9000)
    # Often somebody has exactly what is needed.
    return offers, supply, draw.choice((draw.randint(100, 4000), min(rates[0], supply)))


ending = 5, "offers", some_offers
### END ENDING

# %% [markdown]
# ## Exercise 6.5: how many GPUs does a host feed? (5 points, in parts)
#
# Every sample is read from the drive and prepared by a core. How many GPUs does the host keep at full speed, and which of the two
# binds: `"cores"` or `"drive"`? Return both, the number first: `return 3, "cores"`.
#
# <details><summary>Hint</summary>
#
# Reading and preparing overlap, so the slower of them decides. How often does one GPU's rate fit into that? Round down:
# `floor` is imported.
#
# </details>

# %% role="setup" id="setup-06-host"
rates = Q_("120 img/s"), Q_("5.6 img/ms"), Q_("1000 img/s")

returned = 'number, "cores"'

# %% role="answer" id="gpus-per-host"
def gpus_per_host(cores, core_rate, drive_rate, gpu_rate):
    """The largest number of GPUs [int] at full speed, and what binds ["cores" or
    "drive"].

    The rates are [sample/time]: what one core prepares while all are busy, what the
    drive reads, what one GPU takes.
    """
    # Your model has the busy share of n GPUs behind a supply [sample/time]:
    # my.utilization(Q_("1 img") / supply, Q_("1 img") / (n * gpu_rate))
    ### BEGIN SOLUTION
    prepared = cores * core_rate
    fed = floor(round((min(prepared, drive_rate) / gpu_rate).to("").magnitude, 9))
    return fed, "cores" if prepared < drive_rate else "drive"
    ### END SOLUTION

# %% role="test" id="gpus-per-host-test" points=5
credit = Credit(5)
credit.part(2, "32 cores", lambda: check(
    one_of(gpus_per_host(32, *rates), 0, returned), 3, what="The number of GPUs",
    mistakes={
    "The last of these would have to wait: round down.": 4,
    "That is what the drive alone would feed: each sample also passes a core.": 5,
    "Cores and drive do not add: each sample needs both.": 9,
    "That is what one core feeds; or a fraction is upside down, or units are mixed.": 0,
    "These are samples a second: how many of them does one GPU take?": 3840,
}))
credit.part(1, "what binds at 32 cores", lambda: check(
    one_of(gpus_per_host(32, *rates), 1, returned), "cores", what="What binds",
    among=("cores", "drive"), mistakes={
        "The drive would feed more GPUs than these cores: which of the two is slower?":
            "drive"}))
credit.part(1, "64 cores", lambda: (
    check(one_of(gpus_per_host(64, *rates), 0, returned), 5,
          what="The number of GPUs behind 64 cores", mistakes={
        "The drive reads for all GPUs, too, and it is slower here.": 7,
        "Units do not cancel by themselves: write `.to(\"\").magnitude`.": 0}),
    check(one_of(gpus_per_host(64, *rates), 1, returned), "drive",
          what="What binds behind 64 cores")))
### BEGIN HIDDEN TESTS
credit.part(1, "other units", lambda: (
    check(one_of(gpus_per_host(16, Q_("9000 img/min"), Q_("9e6 img/h"), Q_("0.5 img/ms")), 0, returned), 4,
          what="The number of GPUs in other units"),
    check(one_of(gpus_per_host(8, *rates), 0, returned), 0, what="The number of GPUs behind too few cores"),
    check(one_of(gpus_per_host(16, Q_("9000 img/min"), Q_("2e6 img/h"), Q_("0.5 img/ms")), 1, returned), "drive", what="What binds in other units")))
### END HIDDEN TESTS
credit.total("So while the cores bind, a faster drive feeds no more GPUs.")

# %% tags=["learning-alone"]
finish("gpus-per-host", gpus_per_host, final=False)
### BEGIN ENDING
def a_host(draw):
    cores, gpu = draw.randint(1, 128), draw.randint(50, 3000)
    enough = (draw.choice((0, draw.randint(1, 12))) + 0.4) * gpu
    prepared, read = draw.choice(((enough, 1.7 * enough), (1.7 * enough, enough)))
    return cores, Q_(prepared / cores, "img/s"), Q_(read, "img/s"), Q_(gpu, "img/s")


ending = 1, "hosts", a_host
### END ENDING

# %% [markdown]
# ## In your own words
#
# Somebody says which resource binds. What do you ask before you believe it? Not graded.

# %% [markdown]
# *Write here.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - A faster GPU behind the same supply waits more.
#
# **Next:** a GPU that decodes its own images. [Notebook 7](07_gpu_decoding.ipynb).
