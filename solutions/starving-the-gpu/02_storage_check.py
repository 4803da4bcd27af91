# %% [markdown]
# # 2. The storage check: can the drive deliver?
#
# The GPU could take thousands of images a second. **Is the drive fast enough?** In about MINUTES minutes you know.
#
# The GPU of notebook 1 at a batch of 256, images of 500 KB, and as *storage* one NVMe drive of 7 GB/s:

# %% role="setup" id="setup-02"
from math import ceil

from starvelab import DataModel, Hardware, Models, Pipeline, Q_, SingleNodeModel
from starvelab import Storage
from starvelab.checks import check
from starvelab.show import table
from starvelab.widgets import beside_lab, explore, finish, play, predict, progress
from starvelab.widgets import reveal

baseline = SingleNodeModel().solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100,
                                   batch_size=256)
drives = [Storage.HDD, Storage.SATA_SSD, Storage.NVMe_Gen3, Storage.NVMe_Gen4,
          Storage.NVMe_Gen5, Storage.EBS_gp3]
pipe = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256,
                workers=8, storage=Storage.NVMe_Gen4)


def found():
    """The verdict on one drive, among the choices."""
    if supply.is_stalled:
        return "The drive is too slow"
    return ("The drive keeps up easily" if supply.utilization < 0.5
            else "It is just enough")


def show_check():
    table(["asked of the drive", "one drive gives", "asked / given"],
          [[demand, supply.supply_bw, f"{100 * supply.utilization:.0f} %"]])


def why_storage():
    """What the verdict means, and what plausible mistakes predict."""
    enough = (supply.supply_bw / Q_("500 KB/img")).m_as("img/s")
    return {"meaning": f"With this drive the GPU can be busy "
                       f"{100 / supply.utilization:.0f} % of the time.",
            "mistakes": {
        "Perhaps a factor was lost: 1000 KB are a MB, and a byte has eight bits.":
            "The drive keeps up easily",
        f"It is just enough for {enough:,.0f} img/s.": "It is just enough"}}

# %%
predict("storage-check", choices=["The drive keeps up easily", "It is just enough",
                                  "The drive is too slow"],
        question="Can one 7 GB/s NVMe drive feed that GPU at full speed?")

# %% [markdown]
# <details><summary>Hint</summary>
#
# A rate of images times the size of an image is a rate of bytes. For the rate of notebook 1 take 20,000 img/s. `KB` here means
# 1000 bytes.
#
# </details>

# %%
demand = (baseline.throughput * Q_("500 KB/img")).to("GB/s")
supply = DataModel().solve(workload_data_rate=demand, hardware=Hardware.Cloud.A100)
reveal("storage-check", found(), then=show_check, why=why_storage)

# %% [markdown]
# `img/s` times `KB/img` leaves bytes a second. Networks are sold in `Gbit/s`, drives in `GB/s`, and a byte has eight bits.
#
# Give this pipeline workers until the drive starves the GPU:

# %%
play(pipe, workers=range(1, 65), find="workers", after="storage-check")

# %% [markdown]
# Now other drives, behind workers that are fast enough. Which of them starve the GPU at a batch of 256, and which at 32?

# %%
explore(pipe.replace(workers="50 GB/s"), after="storage-check",
        storage={d.name: d for d in drives},
        batch_size=[8, 16, 32, 64, 128, 256, 512, 1024])

# %% [markdown]
# ## Exercise 2.1: the demand (2 points)
#
# Turn a rate of images and the size of one image into bytes per second.
#
# <details><summary>Hint</summary>
#
# `sample_size` is the size of one image, so `sample_size / Q_("1 img")` is the size *per* image. Convert the result with
# `.to("GB/s")`.
#
# </details>

# %% role="answer" id="data-demand"
def data_demand(throughput, sample_size):
    """Bytes per second [data/time] that `throughput` [sample/time] asks for;
    `sample_size` [data] is one image."""
    ### BEGIN SOLUTION
    return (throughput * sample_size / Q_("1 img")).to("GB/s")
    ### END SOLUTION

# %% role="test" id="data-demand-test" points=2
check(data_demand(Q_("3000 img/s"), Q_("204 KB")), Q_("0.612 GB/s"),
      what="the demand of 3000 img/s of 204 KB", mistakes={
    "That counts bits: a byte has eight.": Q_("4.896 GB/s"),
    "You divided by eight, but these are bytes already.": Q_("0.0765 GB/s"),
    "Check the prefix: kilo, not mega.": Q_("612 GB/s"),
    "A KB is 1000 bytes here; 1024 bytes are a KiB.": Q_("0.626688 GB/s"),
}, means="So you can compare a GPU with the data sheet of a drive.")
### BEGIN HIDDEN TESTS
check(data_demand(Q_("21799.84 img/s"), Q_("500 KB")), Q_("10.8999 GB/s"), what="the demand at the ceiling")
check(data_demand(Q_("2000 img/s"), Q_("1 MiB")), Q_("2097152000 B/s"), what="the demand of 2000 img/s of 1 MiB")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("data-demand", data_demand, final=False)
### BEGIN ENDING
ending = 2, "demands", lambda draw: (
    Q_(draw.randint(100, 9000), "img/s"), Q_(draw.randint(20, 900), "KB"))
### END ENDING

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
# <details><summary>Hint 2</summary>
#
# `(demand / drive_bandwidth).to("").magnitude` is a plain number. `2.1 / 0.7` is a little above three in a computer:
# `ceil(round(x, 9))` corrects that. `ceil` is imported.
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
    "Convert both numbers to the same unit first.": 1,
})
check(drives_needed(Q_("2.1 GB/s"), Q_("0.7 GB/s")), 3,
      what="the number of drives of 0.7 GB/s for 2.1 GB/s", mistakes={
    "One fewer is exactly enough: decimal fractions are a little off in a computer, as "
    "hint 2 says.": 4,
}, means="So these drives can usually read more than is asked.")
### BEGIN HIDDEN TESTS
check(drives_needed(Q_("10.9 GB/s"), Q_("7 GB/s")), 2, what="the number of drives of 7 GB/s for 10.9 GB/s")
check(drives_needed(Q_("10.9 GB/s"), Q_("180 MB/s")), 61, what="the number of hard disks of 180 MB/s for 10.9 GB/s")
check(drives_needed(Q_("100 MB/s"), Q_("7 GB/s")), 1, what="the number of drives of 7 GB/s for 100 MB/s")
### END HIDDEN TESTS

# %% tags=["learning-alone"]
finish("drives-needed", drives_needed, final=False)
### BEGIN ENDING
def a_demand(draw):
    each = draw.choice((180, 530, 2000, 7000))
    one = Q_((draw.randint(1, 60) - draw.choice((0, 0.7))) * each, "MB/s"), Q_(each, "MB/s")
    return draw.choice((one, (Q_("2.1 GB/s"), Q_("0.7 GB/s"))))


ending = 2, "demands", a_demand
### END ENDING

# %% [markdown]
# ## Your model

# %%
beside_lab(storage=Storage.NVMe_Gen4, workers=32, after="storage-check")

# %% [markdown]
# ## In your own words
#
# A drive is sold as "10 Gbit/s". Is it fast enough for this GPU? Not graded.

# %% [markdown]
# *Write here.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Demand = images per second x bytes per image.
#
# **Next:** suppose the drive is fine. [Notebook 3](03_cpu_wall.ipynb): between the drive and the GPU is the CPU.
