# %% [markdown]
# # 1. The compute baseline: how fast could this GPU be?
#
# You train ResNet-50 on an A100. You expect it to be busy 95 % of the time, and `nvidia-smi` says 40 %. **The fastest GPU can
# starve.** In about MINUTES minutes you find out how fast it would be if every batch were already there.
#
# Run every cell with Shift+Enter; arrow keys skip folded ones. By keyboard, Shift+Tab goes back to the buttons above, Escape
# leaves them, and Enter starts to write. On another day choose Run > Run All Cells: your locked answers are still there. If you
# have one afternoon, [a path](https://starvelab.github.io/starvelab/afternoon.html) of 100 minutes leads through the lab.

# %% role="setup" id="setup-01"
from starvelab import Hardware, Models, Pipeline, Q_, Samples, SingleNodeModel
from starvelab import TUTORIAL
from starvelab.model.rates import measured_rate, measured_rates
from starvelab.checks import check
from starvelab.show import fold, svg, table
from starvelab.widgets import Drawing, beside_lab, explore, finish, play, predict
from starvelab.widgets import progress, reveal

measured = measured_rate(hardware=Hardware.Cloud.A100, model=Models.ResNet50,
                         precision="fp16", phase="training",
                         framework="PyTorch").fact.value


def show_published():
    """Show the computed rate above published rates of one A100."""
    rows = [["round numbers, a forward pass", baseline.throughput, "computed above"]]
    for rate in measured_rates():
        if (rate.hardware, rate.model, rate.precision) == ("Cloud.A100", "ResNet50",
            "fp16"):
            what = "a forward pass" if rate.phase == "forward" else rate.phase
            rows.append([f"{what}, measured with {rate.framework}", rate.fact.value,
                         rate.fact.source.split(",")[0]])
    table(["what", "rate", "source"], rows)


def draw_step(batch_size=256, assumptions=TUTORIAL):
    """Draw the parts of one step."""
    step = SingleNodeModel(assumptions).solve(
        model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=batch_size)
    longer = "✓ " if step.compute_time > step.overhead_time else ""
    return Drawing(svg.step_parts(step),
                   f"{longer}Most of this step is {step.cause}. Of the peak, "
                   f"{100 * step.mfu:.1f} % is used.")


def why_baseline():
    """What the rate means, and what plausible mistakes predict."""
    bare = TUTORIAL.replace(overhead_per_layer="0 ms", overhead_per_step="0 ms")
    rate = {name: SingleNodeModel(one).solve(model=Models.ResNet50, batch_size=256,
                                             hardware=Hardware.Cloud.A100).throughput
            for name, one in {"bare": bare, "half": TUTORIAL.replace(efficiency=1),
                              "both": bare.replace(efficiency=1)}.items()}
    times = (baseline.throughput / measured).m_as("")
    return {"meaning": f"It is {times:.0f} times what NVIDIA measured in training.",
            "mistakes": {
        "Perhaps the launches are missing: they add to every step.": rate["bare"],
        "Perhaps half of the peak is missing.": rate["half"],
        "Perhaps half of the peak and the launches are missing.": rate["both"],
        "Perhaps you added the launches to each image: a step has them once.":
            Q_(1, "img") / (baseline.overhead_time + baseline.compute_time / 256)}}

# %%
play(Pipeline(hardware="20 ms", dataset=Samples(cpu_time="6.25 ms", size="300 KB"),
              batch_size=64, workers=8, storage="1 GB/s", link="10 GB/s"),
     workers=range(1, 33), find="workers")

# %% [markdown]
# Samples travel from a drive through the workers and over the link into the GPU. Each part has
# its own pace, and the slowest one sets the pace of all: it **binds**. Move the slider.
#
# ## Predict
#
# Take the GPU alone. We start from *round numbers*, those of [the
# walkthrough](https://github.com/harvard-edge/cs249r_book/blob/ea6dae3053823dfeee97d93d0f370501b514e001/mlsysim/docs/tutorials/04_starving_the_gpu.qmd)
# behind this lab: a forward pass at half of the peak, and cheap decoding.
#
# The peak of an A100 is 312 TFLOP/s in half precision. ResNet-50 takes 4.1 G operations an image. In every step the kernels of
# 50 layers are launched: 0.1 ms a layer.

# %%
predict("baseline", unit="img/s",
        question="By these numbers, how many images per second does this A100 "
                 "process at a batch size of 256?")

# %% [markdown]
# Lock your prediction before you go on: it counts, right or wrong.
#
# <details><summary>Hint</summary>
#
# Half of 312 TFLOP/s is 156 TFLOP/s. Divide by 4.1 GFLOP an image. What do 50 layers times 0.1 ms add to a step of 256 images?
#
# </details>

# %%
baseline = SingleNodeModel().solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100,
                                   batch_size=256, precision="fp16")
reveal("baseline", baseline.throughput, measured=measured, then=show_published,
       why=why_baseline)

# %% [markdown]
# Three things make the difference between the round numbers and training:
#
# 1. Training also runs backward: it costs about **three times** the forward pass.
# 2. The 4.1 G count multiply-accumulates (MACs). Each is **two** operations (FLOPs).
# 3. With launches, the measured run reached 19.4 % of the peak, and the round numbers reach 28.6 %.

# %%
fold("Each number of this GPU, with its source", Hardware.Cloud.A100)

# %% [markdown]
# ## What a step is made of
#
# Arithmetic and memory traffic overlap, so the longer of the two counts. Overhead comes on top:
#
# $$\text{step} = \max(\text{arithmetic},\ \text{memory traffic}) + \text{overhead}$$
#
# Move the batch size. When is the arithmetic longer than the overhead?

# %%
explore(draw_step, after="baseline", batch_size=[1, 2, 4, 8, 16, 32, 64, 128, 191, 256,
    512, 1024])

# %% [markdown]
# Below a batch of 191 more than half of the step is overhead. There a GPU that computes faster helps little.
#
# ## Exercise 1.1: the step time (4 points)
#
# Write the formula with the round numbers above, and with 0.015 ms to dispatch each step. Leave out the memory traffic, which is
# longer than the arithmetic only at a batch of one. Return a quantity, such as `Q_("5 ms")`.
# PACKAGES
#
# <details><summary>Hint 1</summary>
#
# Work divided by a rate is a time: `Q_("4.1 GFLOP") * batch_size / Q_("156 TFLOP/s")`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Overhead is paid once a step, however many images are in it.
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
check(step_time(1000), Q_("31.297 ms"), what="step_time(1000)", within=1e-5, mistakes={
    "Only half of the peak is reached.": Q_("18.156 ms"),
    "Only half of the peak is reached, and the fixed overhead is missing.":
        Q_("13.141 ms"),
    "The fixed overhead is missing: it comes on top of the arithmetic.":
        Q_("26.282 ms"),
    "The dispatch of the step is missing.": Q_("31.282 ms"),
    "The overhead is paid once for each of the 50 layers.": Q_("26.397 ms"),
    "Overhead is paid once a step, not once an image.": Q_("5041.28 ms"),
    "That is the step of 256 images: use the batch size that is passed in.":
        Q_("11.7432 ms"),
    "Take the 4.1 G operations as they are: the round numbers do not double them.":
        Q_("57.579 ms"),
    "Check the unit: milliseconds, not seconds.": Q_("31.297 s"),
}, means="So a small batch pays mostly for its launches.")
### BEGIN HIDDEN TESTS
for batch in (2, 64, 256, 4096):
    single = SingleNodeModel().solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=batch)
    check(step_time(batch), single.latency, what=f"step_time({batch})", within=2e-4)
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("step-time", step_time, final=False)
### BEGIN ENDING
ending = 4, "batches", lambda draw: (draw.randint(2, 400),)
### END ENDING

# %% [markdown]
# ## Your model
#
# A function that passes its check is saved in `my_model.py` beside this notebook: you can read, change and run it. Here it plays
# above the lab's model:

# %%
beside_lab(after="baseline")

# %% [markdown]
# ## In your own words
#
# Somebody claims 21,800 images a second for one A100. What do you say? Not graded.

# %% [markdown]
# *Write here.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Ask of every rate: measured or computed, forward or training?
#
# **Next:** this GPU asks for thousands of images each second. [Notebook 2](02_storage_check.ipynb): can the drive deliver them?
