# %% [markdown]
# # 1. The compute baseline: how fast could this GPU be?
#
# You start training ResNet-50 on an A100. You expected the GPU to be busy 95 % of the time, and `nvidia-smi` says 40 %.
# Before you blame anything, find out what the GPU could do if every batch were already waiting for it. That is the
# **compute baseline**: the ceiling that everything else in this lab is measured against.
#
# In about MINUTES minutes you will
#
# - predict the baseline of ResNet-50 on an A100, then compute it,
# - see what one step is made of: arithmetic, memory traffic, and fixed overhead,
# - write the formula yourself,
# - find out why this particular baseline is far too good to be true.
#
# This lab grew out of a web tutorial, [Starving the GPU](https://github.com/harvard-edge/cs249r_book/blob/ea6dae3053823dfeee97d93d0f370501b514e001/mlsysim/docs/tutorials/04_starving_the_gpu.qmd).
# We call it *the walkthrough*: you follow its steps, and find out where it is right and where it is not.
#
# Gray cells marked `[ ]` run with Shift+Enter. Run them from top to bottom. When you come back on another day, choose
# Run > Run All Cells: the boxes appear again, and what you locked is still there. It passes by what is not answered yet, and
# the last line says with what to go on.

# %% role="setup" id="setup-01"
from starvelab import TUTORIAL, Hardware, Models, Pipeline, Q_, Samples, SingleNodeModel
from starvelab import StarvelabError
from starvelab.model.rates import measured_rate, measured_rates
from starvelab.checks import Credit, check
from starvelab.show import info, roofline, say, svg, table
from starvelab.widgets import Drawing, explore, play, predict, progress, reveal

# %%
play(Pipeline(hardware="20 ms", dataset=Samples(cpu_time="2 ms", size="300 KB"),
              batch_size=64, workers=4, storage="1 GB/s", link="10 GB/s"),
     workers=range(1, 13))

# %% [markdown]
# Each of them works at its own pace, and the slowest one sets the pace of all. We say that it **binds**. This notebook is about
# the last of them alone; the next ones add the others.
#
# ## What you have
#
# Every figure in this lab comes with its source. Look at the two things we start from: the GPU (the model calls it the
# *accelerator*, since the same holds for every other kind) and the network.

# %%
Hardware.Cloud.A100

# %%
Models.ResNet50

# %% [markdown]
# ## Predict
#
# Take ResNet-50 in half precision, 4.1 G operations an image, and assume that the A100 reaches half of its peak of
# 312 TFLOP/s. There is also some fixed overhead in every step: launching the kernels of 50 layers costs about 0.1 ms each.
#
# **Commit to a number before you read on.** A prediction you have locked teaches you something whether it is right or
# wrong; it counts for having been made, not for being right.

# %%
predict("baseline", unit="img/s",
        question="How many images per second does the model say that this A100 "
                 "processes at a batch size of 256?")

# %% [markdown]
# <details><summary>Hint: how would I estimate it?</summary>
#
# Half of 312 TFLOP/s is 156 TFLOP/s. Divide by 4.1 GFLOP an image for the rate without overhead. Then think about what
# 50 layers times 0.1 ms add to the time of a step of 256 images.
#
# </details>
#
# ## Compute it
#
# `SingleNodeModel` knows one thing: how long a step takes when its input is at hand.

# %%
baseline = SingleNodeModel().solve(
    model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256,
    precision="fp16"
)


def show_baseline():
    info("ResNet-50 on an A100, batch 256", step_time=baseline.latency,
         throughput=baseline.throughput, bottleneck=baseline.bottleneck)


reveal("baseline", baseline.throughput, then=show_baseline)

# %% [markdown]
# ## What a step is made of
#
# Two things overlap inside a step: the arithmetic units compute while memory traffic goes on, so the longer of the two
# counts. Overhead does not overlap. The CPU has to launch every kernel, and nothing hides that here:
#
# $$\text{step} = \max(\text{arithmetic},\ \text{memory traffic}) + \text{overhead}$$
#
# Move the batch size. When does the arithmetic take over from the overhead?

# %%
def draw_step(batch_size=256):
    """Draw the parts of one step."""
    step = SingleNodeModel().solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100,
                                   batch_size=batch_size)
    return Drawing(svg.step_parts(step),
                   f"Most of this step is {step.cause}. Of the peak, "
                   f"{100 * step.mfu:.1f} % is used.")


explore(draw_step, after="baseline", batch_size=[1, 2, 4, 8, 16, 32, 64, 128, 191, 256,
    512, 1024])

# %% [markdown]
# Below a batch of 191 more than half of the step is overhead. The usual name for what binds a GPU is "compute" or
# "memory"; here a third cause is at least as common, and buying a faster GPU does nothing about it.
#
# The same steps under the **roofline**. A step further to the right does more arithmetic for each byte that it moves. On
# the slope of the roof the memory cannot deliver faster, on its flat part the arithmetic cannot go faster. How far a point lies below
# the roof is what overhead and imperfect kernels cost.

# %%
roofline(model=Models.ResNet50, hardware=Hardware.Cloud.A100,
         batches=[1, 8, 32, 128, 512], assumptions=TUTORIAL)

# %% [markdown]
# Look where the slope meets the dotted line, the half of the peak that is reached here. Only a batch of one lies to the left
# of that, so only there memory traffic takes longer than arithmetic. That is why you may leave it out now.
#
# ## Exercise 1.1: the step time (4 points)
#
# Write the formula. Use these figures, which are the ones behind the baseline above:
#
# - 4.1 GFLOP of arithmetic for each image; the GPU reaches 50 % of 312 TFLOP/s,
# - 50 layers with an overhead of 0.1 ms each, and 0.015 ms to dispatch the step.
#
# Leave out the memory traffic. Return a quantity, for example
# `Q_("5 ms")`; quantities can be added, multiplied and divided, and their units come out right.
#
# <details><summary>Hint 1</summary>
#
# Work per image times images, divided by a rate, is a time: `Q_("4.1 GFLOP") * batch_size / Q_("156 TFLOP/s")`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Overhead is paid once a step, however many images are in it. It is a sum of two times.
#
# </details>

# %% role="answer" id="step-time"
def step_time(batch_size):
    """Time of one forward step for a batch [time]."""
    ### BEGIN SOLUTION
    compute = Q_("4.1 GFLOP") * batch_size / (0.5 * Q_("312 TFLOP/s"))
    overhead = 50 * Q_("0.1 ms") + Q_("0.015 ms")
    return (compute + overhead).to("ms")
    ### END SOLUTION

# %% role="test" id="step-time-test" points=4
check(step_time(1000), Q_("31.297 ms"), what="step_time(1000)", within=2e-4, mistakes={
    "Only half of the peak is reached.": Q_("18.156 ms"),
    "The fixed overhead is missing: it comes on top of the arithmetic.":
        Q_("26.282 ms"),
    "The dispatch of the step is missing.": Q_("31.282 ms"),
    "The overhead is paid once for each of the 50 layers.": Q_("26.397 ms"),
    "Overhead is paid once a step, not once an image.": Q_("5041.28 ms"),
    "That is the step of 256 images: use the batch size that is passed in.":
        Q_("11.743 ms"),
    "Check the prefix: milli, not full seconds.": Q_("31.297 s"),
})
### BEGIN HIDDEN TESTS
for batch in (2, 64, 256, 4096):
    single = SingleNodeModel().solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=batch)
    check(step_time(batch), single.latency, what=f"step_time({batch})", within=2e-4)
### END HIDDEN TESTS

# %% [markdown]
# ## Exercise 1.2: throughput (1.5 points)
#
# From a step time to images per second. `Q_("1 img")` is one image.
#
# <details><summary>Hint</summary>
#
# A whole batch is done in one step, so divide the images of a batch by the time of a step.
#
# </details>

# %% role="answer" id="throughput"
def throughput(batch_size, step):
    """Images per second [sample/time] when a batch takes `step` [time]."""
    ### BEGIN SOLUTION
    return (batch_size * Q_("1 img") / step).to("img/s")
    ### END SOLUTION

# %% role="test" id="throughput-test" points=1.5
check(throughput(100, Q_("20 ms")), Q_("5000 img/s"), what="throughput(100, 20 ms)",
      mistakes={
    "That is steps per second: a step holds a whole batch.": Q_("50 img/s"),
    "Milliseconds were taken for seconds.": Q_("5 img/s"),
})
### BEGIN HIDDEN TESTS
check(throughput(256, Q_("11.743205 ms")), Q_("21799.84 img/s"), what="throughput(256, 11.74 ms)")
check(throughput(1, Q_("2 s")), Q_("0.5 img/s"), what="throughput(1, 2 s)")
### END HIDDEN TESTS

# %% [markdown]
# ## Now the bad news
#
# The number you have just computed is what the walkthrough prints, to the last digit. Somebody has measured the same model on
# the same GPU:

# %%
def show_published():
    """Print published rates of ResNet-50 training on one A100."""
    rows = [["this model, forward pass", baseline.throughput, "computed above"]]
    for rate in measured_rates():
        if (rate.hardware, rate.model, rate.precision) == ("Cloud.A100", "ResNet50",
            "fp16"):
            rows.append([f"measured, {rate.framework}", rate.fact.value,
                         rate.fact.source.split(",")[0]])
    table(["what", "rate", "source"], rows)

# %%
measured = measured_rate(hardware=Hardware.Cloud.A100, model=Models.ResNet50,
                         precision="fp16", phase="training", framework="PyTorch")
reveal("baseline", measured=measured.fact.value, then=show_published)

# %% [markdown]
# If you predicted a rate near 2,470, you missed what the model says, and you were right about the GPU: the score card
# counts it as a hit.
#
# The computed baseline is about nine times the 2,470 img/s that NVIDIA publishes for PyTorch. Two mistakes make a factor of
# six of that; most of the rest is the assumed half of the peak, of which 19.4 % were reached in that measurement. A third
# mistake hides the other two. You will meet all of them in papers, blog posts and meetings:
#
# 1. **It is called a training step, and it times the forward pass only.** Training also runs backward: gradients with
#    respect to the inputs and with respect to the weights, about one forward pass of work each. Training costs about
#    **three times** the forward pass.
# 2. **It takes multiply-accumulates for FLOPs.** The 4.1 G of ResNet-50 counts multiply-accumulates (4.089 G by
#    [torchvision](https://pytorch.org/vision/stable/models/generated/torchvision.models.resnet50.html)'s own count).
#    Each is a multiplication *and* an addition: **two** FLOPs. Together with the first mistake that makes a factor of six.
# 3. **The headline does not belong to the tables.** The walkthrough opens with 5,300 img/s for the GPU and 850 img/s
#    for the pipeline, and its tables say 21,800 and 4,000. The headline is the one close to reality; the code is not.
#
# None of this makes the method wrong. A model with wrong constants gives wrong answers with great precision, so we name
# the constants, and keep two sets of them: `TUTORIAL` reproduces the walkthrough, `PUBLISHED` holds what was measured.
# Notebook 5 shows which constant moves which answer.
#
# ## Exercise 1.3: the real work of a training step (2 points)
#
# Papers list multiply-accumulates (MACs). Turn them into the floating-point operations of one image's *training* step.
#
# <details><summary>Hint 1</summary>
#
# Two factors are missing: from MACs to FLOPs, and from the forward pass to a whole training step.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A multiply-accumulate is two operations. The backward pass costs about twice the forward pass, and training needs both.
#
# </details>

# %% role="answer" id="training-work"
def training_work(forward_macs):
    """GFLOP [compute] of one training step of one image; `forward_macs` is a plain
    number of giga-MACs."""
    ### BEGIN SOLUTION
    return Q_(2 * forward_macs * 3, "GFLOP")
    ### END SOLUTION

# %% role="test" id="training-work-test" points=2
credit = Credit(2)
credit.part(1, "ResNet-18, 1.814 GMAC", lambda: check(training_work(1.814),
    Q_("10.884 GFLOP"), what="The work", mistakes={
    "That is the forward pass alone.": Q_("3.628 GFLOP"),
    "A multiply-accumulate is two operations.": Q_("5.442 GFLOP"),
    "That is the backward pass alone: training runs forward too.": Q_("7.256 GFLOP"),
    "Two things are missing: a MAC is two operations, and training also runs backward.":
        Q_("1.814 GFLOP"),
}))
### BEGIN HIDDEN TESTS
credit.part(0.5, "ResNet-50", lambda: check(training_work(4.089), Q_("24.534 GFLOP"), what="The work"))
credit.part(0.5, "20 GMAC", lambda: check(training_work(20.0), Q_("120 GFLOP"), what="The work"))
### END HIDDEN TESTS
credit.total()

# %% [markdown]
# For ResNet-50 that makes 24.5 GFLOP an image, which is the figure to use.
#
# ## What the model refuses
#
# One more lesson about models: a good one does not answer nonsense. The walkthrough's code gave a utilization of 100 %
# for a negative batch, 0 % for a batch that is not a number, and read `Gb` as a unit of magnetism. Each of these is an
# error here. Try your own.

# %%
attempts = {
    "a negative batch": lambda: step_of(-64),
    "half an image": lambda: step_of(0.5),
    "gigabits or gigabytes?": lambda: Q_("2 Gb/s"),
    "bytes plus hertz": lambda: Q_("2 GB/s") + Q_("3 GHz"),
}


def step_of(batch_size):
    """One step of ResNet-50 on an A100."""
    return SingleNodeModel().solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100,
                                   batch_size=batch_size)

# %%
for name, attempt in attempts.items():
    try:
        attempt()
    except (StarvelabError, ValueError, TypeError) as error:
        say(f"{name}: {error}")

# %% [markdown]
# ## In your own words
#
# What would you say to somebody who quotes 21,800 images a second for one A100? Two or three sentences. Nobody marks this; writing it is how you notice what you have not understood yet.

# %% [markdown]
# *Double-click here and write.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - The compute baseline is the rate with the input at hand: the ceiling, not the forecast.
# - A step is the longer of arithmetic and memory traffic, **plus** fixed overhead. At small batches overhead is the cause.
# - Forward is not training (a factor of 3), and a MAC is not a FLOP (a factor of 2).
# - Ask of every rate: measured or computed, which phase, which precision, whose source?
#
# **Next:** this GPU asks for thousands of images each second. [Notebook 2](02_storage_check.ipynb): can the drive
# deliver them?
