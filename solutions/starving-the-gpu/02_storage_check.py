# %% [markdown]
# # 2. The storage check: can the drive deliver?
#
# The baseline says what the GPU could use. Every image has to be read from somewhere first. Before anything else gets
# the blame: **is the drive fast enough?**
#
# In about MINUTES minutes you will
#
# - turn a rate of images into a rate of bytes, and predict whether a drive keeps up,
# - check drives from a hard disk to NVMe,
# - tell apart what the GPU *would* ask for and what is *really* read.

# %% role="setup" id="setup-02"
from math import ceil

from starvelab import DataModel, Datasets, Hardware, MissingValueError, Models, Pipeline
from starvelab import Q_
from starvelab import SingleNodeModel, Storage, TransferModel
from starvelab.checks import check
from starvelab.show import info, say, table
from starvelab.widgets import explore, predict, progress, reveal

baseline = SingleNodeModel().solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100,
                                   batch_size=256)

# %% [markdown]
# ## Predict
#
# [The walkthrough](https://github.com/harvard-edge/cs249r_book/blob/ea6dae3053823dfeee97d93d0f370501b514e001/mlsysim/docs/tutorials/04_starving_the_gpu.qmd)
# takes a JPEG of 500 KB, and the baseline of notebook 1 at a batch of 256. A typical host of an A100 has
# one NVMe drive on PCIe 4.0, good for 7 GB/s.

# %%
predict("storage-check", choices=["The drive keeps up easily", "It is just enough",
                                  "The drive is too slow"],
        question="Can one 7 GB/s NVMe drive feed that GPU at its ceiling?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# A rate of images times the size of an image is a rate of bytes. You computed the rate in notebook 1; a round
# 20,000 img/s is near enough. `KB` here means 1000 bytes.
#
# </details>
#
# ## Check it
#
# `DataModel` compares a demand with what a drive supplies. With `hardware=` it takes the local drive that the catalogue
# names for a typical host of that GPU.

# %%
demand = (baseline.throughput * Q_("500 KB/img")).to("GB/s")
supply = DataModel().solve(workload_data_rate=demand, hardware=Hardware.Cloud.A100)


def show_check():
    info("Storage check", demand=demand, supply=supply.supply_bw,
         utilization=f"{100 * supply.utilization:.1f} %", stalled=supply.is_stalled)


found = "The drive keeps up easily" if supply.utilization < 0.5 else "It is just enough"
reveal("storage-check", "The drive is too slow" if supply.is_stalled else found,
       then=show_check)

# %% [markdown]
# Note how the units did the work: `img/s` times `KB/img` leaves bytes per second. Had you divided instead, the units would
# have said so. They do not guard you against a wrong *size*: `Gbit/s` is what network sellers print and `GB/s` what drive
# sellers print, and a factor of eight lies between them. That is why `Gb` alone is refused here.
#
# ### What the walkthrough printed here
#
# Its catalogue had no figure for the drive. So it printed a supply of 0.00 GB/s, a utilization of `inf %`, "stalled", and
# drew the conclusion that *storage is fine*. A missing figure is not a zero, and it is no reason for optimism either.
# Here it is refused:

# %%
try:
    DataModel().solve(workload_data_rate=demand, hardware=Hardware.Cloud.T4)
except MissingValueError as error:
    say(error)

# %% [markdown]
# ## Exercise 2.1: the demand (2 points)
#
# Turn a rate of images and the size of one image into bytes per second.

# %% role="answer" id="data-demand"
def data_demand(throughput, sample_size):
    """Bytes per second [data/time] that `throughput` [sample/time] asks for;
    `sample_size` [data] is one image."""
    ### BEGIN SOLUTION
    return (throughput * sample_size / Q_("1 img")).to("GB/s")
    ### END SOLUTION

# %% [markdown]
# <details><summary>Hint</summary>
#
# `sample_size` is the size of one image, so `sample_size / Q_("1 img")` is the size *per* image. Convert the result with
# `.to("GB/s")`.
#
# </details>

# %% role="test" id="data-demand-test" points=2
check(data_demand(Q_("3000 img/s"), Q_("200 KB")), Q_("0.6 GB/s"),
      what="the demand of 3000 img/s of 200 KB", mistakes={
    "That counts bits: a byte has eight.": Q_("4.8 GB/s"),
    "You divided by eight, but these are bytes already.": Q_("0.075 GB/s"),
    "Check the prefix: kilo, not mega.": Q_("600 GB/s"),
    "A KB is 1000 bytes here; 1024 bytes are a KiB.": Q_("0.6144 GB/s"),
})
### BEGIN HIDDEN TESTS
check(data_demand(Q_("21799.84 img/s"), Q_("500 KB")), Q_("10.8999 GB/s"), what="the demand at the ceiling")
check(data_demand(Q_("2 img/s"), Q_("1 MiB")), Q_("2097152 B/s"), what="the demand of 2 img/s of 1 MiB")
### END HIDDEN TESTS

# %% [markdown]
# ## Exercise 2.2: how many drives? (2 points)
#
# Drives can be put side by side. How many does a demand need? A demand that equals the supply is met.
#
# <details><summary>Hint 1</summary>
#
# Divide the demand by what one drive gives. If that is not a whole number, which way must you round?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `(demand / drive_bandwidth).to("").magnitude` is a plain number; `ceil` rounds it up. A quotient of decimal fractions is
# seldom exact: `2.1 / 0.7` is a little above three. `ceil(round(x, 9))` does not mind.
#
# </details>

# %% role="answer" id="drives-needed"
def drives_needed(demand, drive_bandwidth):
    """The smallest whole number of drives [int] that supply `demand` [data/time]."""
    ### BEGIN SOLUTION
    return max(1, ceil(round((demand / drive_bandwidth).to("").magnitude, 9)))
    ### END SOLUTION

# %% role="test" id="drives-needed-test" points=2
check(drives_needed(Q_("8.6 GB/s"), Q_("2 GB/s")), 5,
      what="the number of drives of 2 GB/s for 8.6 GB/s", mistakes={
    "Half a drive cannot be bought: with that many the demand is not met.": 4,
    "Check what is above and what is below the fraction bar.": 1,
})
check(drives_needed(Q_("6 GB/s"), Q_("2 GB/s")), 3,
      what="the number of drives of 2 GB/s for 6 GB/s", mistakes={
    "A supply that equals the demand is enough.": 4,
})
check(drives_needed(Q_("1 GB/s"), Q_("500 MB/s")), 2,
      what="the number of drives of 500 MB/s for 1 GB/s", mistakes={
    "Convert both figures to the same unit first.": 1,
})
### BEGIN HIDDEN TESTS
check(drives_needed(Q_("10.9 GB/s"), Q_("7 GB/s")), 2, what="the number of drives of 7 GB/s for 10.9 GB/s")
check(drives_needed(Q_("8.2 GB/s"), Q_("2 GB/s")), 5, what="the number of drives of 2 GB/s for 8.2 GB/s")
check(drives_needed(Q_("10.9 GB/s"), Q_("180 MB/s")), 61, what="the number of hard disks of 180 MB/s for 10.9 GB/s")
check(drives_needed(Q_("100 MB/s"), Q_("7 GB/s")), 1, what="the number of drives of 7 GB/s for 100 MB/s")
### END HIDDEN TESTS

# %% [markdown]
# ## From a hard disk to NVMe
#
# Each of these figures has its source in the catalogue (`Storage.NVMe_Gen4` shows it). The last column is what the drive
# could feed at most, in images of 500 KB read one after the other; a hard disk that has to seek for each image gives a
# fraction of that.

# %%
drives = [Storage.HDD, Storage.SATA_SSD, Storage.NVMe_Gen3, Storage.NVMe_Gen4,
          Storage.NVMe_Gen5, Storage.EBS_gp3]
rows = [[d.name, d.bandwidth_sustained,
         (d.bandwidth_sustained / Q_("500 KB/img")).to("img/s")] for d in drives]
reveal("storage-check",
       then=lambda: table(["drive", "sustained", "images per second"], rows))

# %% [markdown]
# Try the drives in a pipeline. For now the CPU is taken to be fast (50 GB/s), so that you see the drive alone. Which of
# them starve the GPU at a batch of 256, and which at a batch of 32?

# %%
behind_a_fast_cpu = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100,
                             workers="50 GB/s", storage=Storage.NVMe_Gen4)
explore(behind_a_fast_cpu, after="storage-check", storage={d.name: d for d in drives},
        batch_size=[8, 16, 32, 64, 128, 256, 512, 1024])

# %% [markdown]
# ## Two demands, and two kinds of bytes
#
# **What the GPU would ask for is not what is read.** At the ceiling the demand is the figure above. But in the
# walkthrough's pipeline eight CPU workers prepare 2 GB/s and no more, so behind them only 2 GB/s are ever read, and a
# tool that watches the drive will show a mostly idle one. Both numbers are right; they answer different questions. "The drive
# is only 30 % busy" does not mean it would be fast enough once the CPU is fixed.

# %%
behind = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256,
                  workers=8, storage=Hardware.Cloud.A100).solve()


def show_behind():
    info("One drive, eight workers", demand_at_the_ceiling=behind.demand_at_ceiling,
         really_read=behind.actual_demand,
         drive_idle=f"{100 * behind.headroom['storage']:.0f} %",
         binds=behind.bottleneck)


reveal("storage-check", then=show_behind)

# %% [markdown]
# **What is read is not what is sent.** A JPEG is read, a tensor is copied to the GPU. An image of 224 x 224 pixels in
# three colors is 150,528 bytes as `uint8`, twice that in half precision and four times that in single precision, whatever
# the size of its file. The walkthrough leaves the copy out altogether:

# %%
table(["sent as", "bytes an image", "copy of 256 images at 32 GB/s"], [
    [kind, Q_(150528 * width / 1000, "KB"),
     TransferModel().solve(batch_size=256, transfer_size=Q_(150528 * width, "B"),
                           link=Hardware.Cloud.A100).transfer_time]
    for kind, width in (("uint8", 1), ("fp16", 2), ("fp32", 4))
])

# %% [markdown]
# Here the copy is short and overlaps the computing, so it does not bind. What decides is the pixels of the tensor, and not
# the bytes of the file: an image of 5 MB that is cropped to the same 224 x 224 pixels takes as long to copy.
#
# ## Exercise 2.3: what is really read (2 points)
#
# A pipeline can use no more than the GPU asks for, than the CPU workers can prepare, and than the drive can supply.
#
# <details><summary>Hint</summary>
#
# Think of three pipes joined end to end. What flows through the narrowest?
#
# </details>

# %% role="answer" id="really-read"
def really_read(gpu_demand, cpu_supply, drive_supply):
    """Bytes per second [data/time] that are read in the long run; all three arguments
    are [data/time]."""
    ### BEGIN SOLUTION
    return min(gpu_demand, cpu_supply, drive_supply)
    ### END SOLUTION

# %% role="test" id="really-read-test" points=2
check(really_read(Q_("9 GB/s"), Q_("3 GB/s"), Q_("7 GB/s")), Q_("3 GB/s"),
      what="the rate really read", mistakes={
    "That is the demand at the ceiling, which nobody can serve here.": Q_("9 GB/s"),
    "That is what the drive could do; nobody asks it to.": Q_("7 GB/s"),
    "These flows are in series: the same bytes pass all three, so rates do not add.":
        Q_("19 GB/s"),
    "That is the mean of the three: the slowest one decides.": Q_("6.3333 GB/s"),
})
check(really_read(Q_("9 GB/s"), Q_("20 GB/s"), Q_("5 GB/s")), Q_("5 GB/s"),
      what="the rate really read with faster workers", mistakes={
    "That is what the workers could prepare: is it always they who decide?":
        Q_("20 GB/s"),
    "That is what the GPU asks for: can the drive supply it?": Q_("9 GB/s"),
})
### BEGIN HIDDEN TESTS
check(really_read(Q_("10.9 GB/s"), Q_("2000 MB/s"), Q_("7 GB/s")), Q_("2 GB/s"), what="the rate behind eight workers")
check(really_read(Q_("10.9 GB/s"), Q_("20 GB/s"), Q_("7 GB/s")), Q_("7 GB/s"), what="the rate behind one drive")
check(really_read(Q_("1.5 GB/s"), Q_("20 GB/s"), Q_("7 GB/s")), Q_("1.5 GB/s"), what="the rate with a small demand")
check(really_read(Q_("10.9 GB/s"), Q_("2 GB/s"), Q_("530 MB/s")), Q_("0.53 GB/s"), what="the rate behind a SATA SSD")
### END HIDDEN TESTS

# %% [markdown]
# ## How big is an image, really?
#
# The walkthrough's 500 KB is not ImageNet's. With the mean of the real data set, the same check comes out differently:

# %%
real = (baseline.throughput * Datasets.ImageNet.sample_size / Q_("1 img")).to("GB/s")
info("With ImageNet's mean size", sample_size=Datasets.ImageNet.sample_size,
     demand=real, source=Datasets.ImageNet.facts["sample_size"].source)

# %% [markdown]
# 114.66 KB instead of 500 KB: one drive is enough after all, even at a ceiling that is itself too high. An assumption of
# a factor of four decided the answer. Always ask for the mean size of *your* samples.
#
# And ask what they are. A language model that trains on tokens reads about 8 MB/s (the walkthrough's figure), a thousandth of
# the 10.9 GB/s above: it computes far more for each byte, and there is nothing to decode. Whether other data starve a GPU is a question of the
# third assignment.

# %% [markdown]
# ## In your own words
#
# A drive is 30 % busy. Why does that not prove that it is fast enough? Two or three sentences. Nobody marks this; writing it is how you notice what you have not understood yet.

# %% [markdown]
# *Double-click here and write.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Demand = images per second x bytes per image. Write the units, and keep bits and bytes apart.
# - A missing figure is neither zero nor fine. Refuse it.
# - Demand at the ceiling and bytes really read are different numbers. Keep both.
# - Stored bytes load the drive; decoded bytes load the link.
#
# **Next:** suppose the drive is fine. [Notebook 3](03_cpu_wall.ipynb): between the drive and the GPU sits the CPU.
