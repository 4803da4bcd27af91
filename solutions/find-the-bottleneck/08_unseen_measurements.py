# %% [markdown]
# # 8. The model against measurements
#
# **How far off is the model with published figures, and what may it decide?**
# In about MINUTES minutes you compare it with eight published measurements, and audit a claim.

# %% role="setup" id="setup-unseen"
from statistics import median  # for your answers too

from starvelab import (PUBLISHED, Accelerator, Datasets, Framework, Hardware, Links,
                       Models, Pipeline, Q_, Samples, Storage, Workers, show)
from starvelab.checks import Credit, check, one_of
from starvelab.model.analysis import extrapolate_rate
from starvelab.tables import cell
from starvelab.widgets import explore, finish, predict, progress, reveal

a100, resnet = Hardware.Cloud.A100, Models.ResNet50
# without what several GPUs lose to each other, which is a question below
assumed = PUBLISHED.replace(accelerators_time=1)


def why_drive():
    """What the share means, and what plausible mistakes predict."""
    one, all_ = (kits.solve({"hardware.count": n}) for n in (1, 8))
    return {"meaning": f"They ask for {cell(all_.demand_at_ceiling)}.", "mistakes": {
        "That is one alone: eight share the drive.": Q_(100 * one.utilization, "%"),
        "Perhaps you gave each an eighth of the time.":
            Q_(100 * one.utilization / 8, "%")}}


def why_error():
    """What the error means, and what plausible mistakes predict."""
    return {"meaning": "What differs by less, the model cannot decide.", "mistakes": {
        "That is the worst row.": Q_(100 * max(off), "%"),
        "That is the best row.": Q_(100 * min(off), "%")}}

# %% [markdown]
# ## One drive, several GPUs
#
# KiTS19 has medical scans of 146.6 MB on average. An A100 takes 7 of them in a step of 0.636 s, an H100 in
# 0.323 s, and a worker needs about 184 ms for one. The host has 64 workers on 128 cores, one NVMe drive of 7 GB/s.
#
# <details><summary>Sources</summary>
#
# Steps: MLPerf Storage, mlcommons/storage. Workers: Lotus, Table II.
#
# </details>

# %%
kits = Pipeline(
    model=Models.UNet3D, hardware=a100, batch_size=7, storage=Storage.NVMe_Gen4,
    dataset=Samples(size=Datasets.KiTS19.sample_size,
                    cpu_time=Datasets.KiTS19.preparation_time),
    workers=Workers(64, cores=128), assumptions=assumed,
)
predict("shared-drive", unit="%", question="Eight A100s share that drive. How busy is "
                                           "each of them, in percent?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Eight GPUs need eight batches of 7 volumes in 0.636 s. How long does the drive need for these?
#
# </details>

# %% tags=["folded"]
def show_sharing():
    show.table(["GPUs", "A100s would read", "busy", "binds", "H100s would read", "busy",
                "binds"], [
        [n, *(x for one in (a100, Hardware.Cloud.H100)
              for s in [kits.solve({"hardware.count": n}, hardware=one)]
              for x in (s.demand_at_ceiling, f"{100 * s.utilization:.0f} %",
                        s.labels[s.bottleneck]))]
        for n in range(1, 9)
    ])

# %%
reveal("shared-drive", Q_(100 * kits.solve({"hardware.count": 8}).utilization, "%"),
       then=show_sharing, why=why_drive)

# %% [markdown]
# MLPerf Storage requires each GPU to be busy for 90 % of the time. One drive does that for four
# A100s, and for two H100s.

# %%
explore(kits.replace({"hardware.count": 8}, storage=Q_("7 GB/s")),
        {"hardware.count": (1, 8)}, after="shared-drive", workers=[4, 8, 16, 32, 64],
        hardware={"A100": a100, "H100": Hardware.Cloud.H100},
        storage=(Q_("1 GB/s"), Q_("30 GB/s")))

# %% [markdown]
# In this model each epoch reads the drive. KiTS19 has 168 volumes for training: 24.6 GB. A host with more
# memory keeps them after the first epoch.
#
# ## The model against the world
#
# Eight published measurements, of GPUs, a loader and a link. For two of them a rate is extrapolated from an older
# GPU.

# %%
predict("typical-error", unit="%", between=(0, None),
        question="How large is the model's typical (median) error on these eight, in "
                 "percent?")

# %% tags=["folded"]
def eight(hardware, batch_size, workers, **qualified):
    """Eight GPUs on one host; DALI's threads, 10 for each A100 and 8 for each
    V100, share its cores."""
    host = Accelerator(hardware, count=8, **qualified)
    return Pipeline(model=resnet, hardware=host, batch_size=batch_size, workers=workers,
                    assumptions=assumed).solve()


def on_h100(rate, model):
    """What an H100 does, from what an A100 was measured to do."""
    found = extrapolate_rate(rate, model=model, measured_on=a100,
                             to=Hardware.Cloud.H100)
    return Pipeline(hardware=found, batch_size=7, workers="1e9 img/s",
                    assumptions=assumed)


v100, threads = Hardware.Cloud.V100, Workers(64, kind="pool")
# which decodes on the GPU
mxnet = eight(a100, 512, "1e9 img/s", rate=Framework("MXNet"))
rows = [
    ["PyTorch AMP, 8 A100", Q_("16621 img/s"),
     eight(a100, 256, Workers(80, kind="pool")).throughput],
    ["PyTorch AMP, 8 V100", Q_("8322 img/s"), eight(v100, 256, threads).throughput],
    ["PyTorch FP32, 8 V100", Q_("2855 img/s"),
     eight(v100, 112, threads, precision="fp32").throughput],
    ["MXNet AMP, 8 A100", Q_("26673.72 img/s"), mxnet.throughput],
]
rows = [[f"ResNet-50, {what}", *values, "NVIDIA/DeepLearningExamples"]
        for what, *values in rows]
mlperf = on_h100(Q_("27170 img/s") / 8, resnet).solve({"hardware.count": 8})
unet = on_h100(Q_("7 img") / Q_("0.636 s"), Models.UNet3D).solve()
# only a loader, or a link: nothing waits for it
alone = Pipeline(hardware="1e9 img/s", assumptions=PUBLISHED)
loader = alone.solve(batch_size=128, workers=Workers(64, cores=32))
copy = alone.solve(batch_size=1, dataset=Samples(transfer="1 MB"), link=Links.PCIe4_x16)
rows += [
    ["ResNet-50, MLPerf, 8 H100", Q_("56050 img/s"), mlperf.throughput,
     "MLPerf Training v3.0"],
    ["3D U-Net, step on an H100", Q_("0.323 s"), unet.step_time, "mlcommons/storage"],
    ["PyTorch loader, 64 vCPU", Q_("6015 img/s"), loader.throughput,
     "tf.data, PVLDB 14, Table 6"],
    ["A100's link, by others", Q_("25 GB/s"), Q_("1 MB") / copy.stage_times["copy"],
     "ZaidQureshi/bam, issue 54"],
]


def show_rows():
    errors = [100 * ((predicted / measured).m_as("") - 1)
              for _, measured, predicted, _ in rows]
    show.table(["what", "measured", "predicted", "error", "source"], [
        [what, measured, predicted.to(measured.units), f"{error:+.1f} %", source]
        for (what, measured, predicted, source), error in zip(rows, errors)])
    spread = (f"Typical (median) size of an error {median(map(abs, errors)):.1f} %, "
              f"from {min(errors):+.1f} to {max(errors):+.1f} %.")
    return show.labeled_bars([row[0] for row in rows], errors,
                             [f"{error:+.1f} %" for error in errors],
                             axis="error of the prediction (%)", caption=spread)


off = [abs((predicted / measured).m_as("") - 1) for _, measured, predicted, _ in rows]

# %%
reveal("typical-error", Q_(100 * median(off), "%"), then=show_rows, why=why_error)

# %% [markdown]
# The worst prediction is that for eight V100s in mixed precision, 15 % too fast. An obvious excuse:
# they *synchronize*. A step of eight takes 33 ms longer than a step of one. The same model, and as
# many gradients:

# %% tags=["folded"]
def lost(one, eight, batch_size):
    """What a step of eight takes longer than a step of one."""
    return (8 * Q_(batch_size, "img") / Q_(eight) - Q_(batch_size, "img") / Q_(one)).to(
        "ms")


show.table(["eight of them", "lost in each step"], [
    ["V100, PyTorch, mixed precision", lost("1200 img/s", "8322 img/s", 256)],
    ["V100, PyTorch, full precision", lost("367 img/s", "2855 img/s", 112)],
    ["A100, PyTorch, TF32", lost("938 img/s", "7248 img/s", 256)],
    ["V100, MXNet, mixed precision", lost("1376 img/s", "10723 img/s", 192)],
])

# %% [markdown]
# <details><summary>What the table says of the excuse</summary>
#
# In full precision the same V100s lose 9 ms. With MXNet, which decodes on the GPU, they lose 4 ms. So most of
# the 33 ms is not synchronization: the GPUs *waited for images*.
#
# </details>
#
# A verdict survives such an error if one resource is slower than all others by more than the error.
# [All errors](https://github.com/starvelab/starvelab/blob/main/docs/how-right.md).
#
# ## Exercise 8.1: an honest summary (6 points, in parts)
#
# `pairs` is a list of `(predicted, measured)`. Return the most negative error, the typical error, and the
# most positive one. An error is *relative to what was measured*, and negative where the prediction was too
# low. Typical is the **median of the sizes**, without their signs. Give all three as shares: 0.1, not 10
# %.
#
# <details><summary>Hint</summary>
#
# One error is `(predicted - measured) / measured`; its size is `abs(...)` of that. `median` is imported.
#
# </details>

# %% role="answer" id="honest-summary"
def summary(pairs):
    """The lowest error, the median size of an error, the highest error [three plain
    numbers, shares]."""
    ### BEGIN SOLUTION
    errors = [(predicted - measured) / measured for predicted, measured in pairs]
    return min(errors), median(abs(error) for error in errors), max(errors)
    ### END SOLUTION

# %% role="test" id="honest-summary-test" points=6
credit, pairs = Credit(6), [(90, 100), (150, 200), (69, 60), (260, 200), (400, 320)]
three = "lowest, typical, highest"
credit.part(1, "the lowest and the highest error", lambda: (check(
    one_of(summary(list(pairs)), 0, three), -0.25, what="the lowest error", mistakes={
    "An error is relative to what was *measured*.": -1 / 3,
    "It has a sign: a prediction that is too low has a negative error.": 0.1,
    "The sign is the other way round: too low is negative.": -0.3,
    "That is a percentage; return a share.": -25.0,
}), check(one_of(summary(list(pairs)), 2, three), 0.3, what="the highest error")))
credit.part(2, "the typical error", lambda: check(
    one_of(summary(list(pairs)), 1, three), 0.25, what="the typical error", mistakes={
    "That is the mean: one bad row pulls it up or down. The median does not care.":
        0.21,
    "Each size is relative to what was *measured*.": 0.2,
    "Here positive and negative errors cancel: take the sizes before the median.": 0.15,
}))
### BEGIN HIDDEN TESTS
credit.part(1, "all are too low", lambda: check(
    one_of(summary([(80, 100), (90, 100)]), 2, three), -0.1, what="the highest error where all are too low"))
even = [(1.002, 1.0), (0.9, 1.0), (0.3673, 0.323), (1165, 1090), (2329, 2487), (14898, 11974)]
credit.part(2, "an even number of rows", lambda: (
    check(one_of(summary(list(even)), 1, three), 0.084404, what="the typical error of six rows", mistakes={
        "With an even number of rows the median lies between the two in the middle.": 0.1,
    }),
    check(one_of(summary([(3, 4)]), 1, three), 0.25, what="the typical error of one row")))
### END HIDDEN TESTS
credit.total("So these three say how far off the model was, and in which direction.")

# %% tags=["learning-alone"]
finish("honest-summary", summary, final=False)
### BEGIN ENDING
ending = 3, "rows", lambda draw: (
    [(draw.randint(50, 900), draw.randint(50, 900)) for _ in range(draw.randint(1, 8))],)
### END ENDING

# %% [markdown]
# ## Exercise 8.2: audit a claim (6 points, read by a person)
#
# *"Our host with eight A100s trains ResNet-50 on ImageNet at 27,000 images a second. 64 PyTorch workers
# prepare them, and the one NVMe drive is what holds us back."* Audit this, or a claim of your own choosing
# (with its source), in six to ten sentences: what does it leave unsaid, what do the published figures and the
# model say to each part, how large is the gap beside the model's own error, and which one measurement would
# settle it? With round numbers the model even agrees that the drive binds:

# %%
claim = Pipeline(hardware=Accelerator(rate="3375 img/s", count=8), batch_size=256,
                 workers=64, storage=Storage.NVMe_Gen4)
claim.solve()

# %% [markdown] role="essay" id="audit-a-claim" points=6
# The claim does not say in which framework and precision the GPUs train, at what batch, how large the stored images
# are, whether they are decoded by the workers or on the GPU, or whether the drive is read at all once the images are in memory. The rate itself
# is possible: MLPerf has 27,170 img/s for eight A100s, with MXNet and input that was tuned for it. NVIDIA's figure for
# PyTorch is 16,621. The workers are the weak part. A measured PyTorch worker prepares 145.6 img/s (Lotus), so 64 of
# them make at most 9,318 even if they scale in a straight line, and with that the GPUs would be busy about a third of the time. The
# drive is not: 27,000 images of 114.66 KB are 3.1 GB/s, and it gives 7. So either the images are smaller or prepared
# elsewhere, or the rate was measured with synthetic data. A gap of nearly three times is far above the model's typical error
# of less than a tenth, so I would stand by the verdict: with such workers the workers bind and not the drive. I
# would ask for the rate of the loader alone, with the GPUs left out: 27,000 or 9,000 decides it.
#
# ### BEGIN MARK SCHEME
# For the claim given or one of the student's own (which needs a source).
#
# - 2 points: names conditions that the claim leaves unsaid and that matter (framework, precision, phase, size of the images, rate
#   of a worker, cache in memory). One point each, at most 2.
# - 2 points: sets figures beside its parts, with their origin, and says what would bind (here 64 workers of about 146 img/s
#   against 27,000, and 3.1 GB/s against 7 for the drive). One point if figures come without their assumptions.
# - 1 point: compares the gap with the model's own error and draws the conclusion from that, not from the model's last digit.
# - 1 point: one measurement that would settle it, and which outcome would mean what.
# ### END MARK SCHEME

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Never test a model on what it was fitted to.
#
# **Next:** does [a job that you have](09_your_own_job.ipynb) wait for its data?
