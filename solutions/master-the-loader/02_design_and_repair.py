# %% [markdown]
# # 2. Design, and repair
#
# You know what binds. Now it costs money, and it is somebody else's code. **What is the cheapest host that keeps its GPUs
# busy, and what is wrong with a script that starves?**
#
# In about MINUTES minutes you will
#
# - put a host together that trains ResNet-50 for as few dollars as you can,
# - find four faults in a training script, and repair them in its file,
# - say what your repairs brought, and why.
#
# These minutes count four for each exercise. Give each up to half an hour.

# %% role="setup" id="setup-design"
from functools import cache  # for the checks

from starvelab import Q_
from starvelab.checks import Credit, check
from starvelab.decisions import CORE_PRICE, DRIVE_PRICE, GPU_PRICES, Design, judge
from starvelab.measure.training_script import changed_training, script_text
from starvelab.measure.training_script import simulated_throughput, starved_counts
from starvelab.measure.training_script import what_it_does
from starvelab.show import info, svg, table
from starvelab.tables import percent
from starvelab.widgets import Drawing, explore, finish, predict, progress, reveal

# %% [markdown]
# ## A host under a budget
#
# Ninety epochs of ImageNet are to be trained within twelve hours. You rent a host by the hour, and put it together yourself:
# one kind of GPU, up to 8 of them; up to 128 cores, each with one worker; up to 8 drives, each with 0.2 GB/s. The model computes
# with the published figures, so that a worker prepares some 150 images a second, and workers add less each the more there are.
# The prices are made up for this exercise, so they do not grow old. Those of sellers change, and differ from one to the other.

# %%
prices = [[name, f"{price:.2f} USD"] for name, price in GPU_PRICES.items()]
table(["for an hour", "price"], [*prices, ["core", f"{CORE_PRICE:.2f} USD"],
                                 ["drive", f"{DRIVE_PRICE:.2f} USD"]])

# %%
predict("eight-cores", unit="%", question="One A100, eight cores, one drive: how busy "
                                          "is the GPU, in percent?")

# %%
small = Design("A100", gpus=1, cores=8, drives=1)


def show_small():
    info("One A100 with eight cores", busy=percent(small.busy),
         training_takes=small.hours, training_costs=f"{small.dollars:.0f} USD")


reveal("eight-cores", Q_(100 * small.busy, "%"), then=show_small)

# %% [markdown]
# You pay for the GPU also while it waits. Here are some V100s. Where does the bill stop falling when you add cores, and why does
# it rise again?

# %%
def draw(gpus=2, cores=4, drives=1):
    host = Design("V100", gpus, cores, drives)
    rows = [["GPUs busy", percent(host.busy)],
            ["the training costs", f"{host.dollars:.0f} USD"]]
    said = (f"The GPUs are busy {rows[0][1]} of the time, and the training costs "
            f"{rows[1][1]} and takes {host.hours:.1f~}.")
    picture = svg.share_bars({"GPUs busy": host.busy, "of 200 USD": host.dollars / 200},
                             labels={"of 200 USD": rows[1][1]}, title="A host")
    return Drawing(picture, said, ["what", "value"], rows)

# %%
explore(draw, after="eight-cores", gpus=(1, 8), cores=(1, 64), drives=(1, 8))

# %% [markdown]
# ## Exercise 2.1: design under a budget (15 points, in parts)
#
# Put a host together whose GPUs are busy at least 90 % of the time, and that finishes within twelve hours, for as few dollars for
# the whole training as you can. There are many right answers. All points go to those within 5 % of the cheapest that exists, and fewer
# the more yours costs. `Design("A100", gpus=1, cores=8, drives=1)` tells you `.busy`, `.hours`, `.dollars` and `.step`: try, or
# compute.
#
# <details><summary>Hint 1</summary>
#
# For one kind of GPU: how many images a second do its GPUs need, and how many cores and drives deliver that? What does a
# GPU with all that it needs cost for an image?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A hundred thousand hosts are not too many for a loop over those that are plausible. Drives and cores are whole numbers: some
# numbers of GPUs fit them better than others.
#
# </details>

# %% role="answer" id="my-design"
def my_design():
    """A dict with "gpu", "gpus", "cores" and "drives"."""
    ### BEGIN SOLUTION
    hosts = [Design("A100", gpus, 19 * gpus + more, -(-3 * gpus // 2)) for gpus in (2, 4) for more in (0, 1, 2, 3)]
    best = min((host for host in hosts if host.obstacle == "none"), key=lambda host: host.dollars)
    return {"gpu": best.gpu, "gpus": best.gpus, "cores": best.cores, "drives": best.drives}
    ### END SOLUTION

# %% role="test" id="my-design-test" points=15
credit = Credit(15)
credit.part(2, "a host that can be bought", lambda: judge(my_design()))
credit.part(6, "90 % busy within twelve hours",
            lambda: check(judge(my_design()).obstacle, "none",
                          what="what stands against this host", mistakes={
    "The workers cannot feed the GPUs: more cores, or fewer or slower GPUs.": "CPU",
    "The drives cannot feed the GPUs: more drives, or fewer or slower GPUs.": "storage",
    "The GPUs are busy, and too slow to finish in twelve hours.": "time"}))
### BEGIN HIDDEN TESTS
credit.part(2, "nothing idle", lambda: (check(judge(my_design()).obstacle, "none"), check(judge(my_design()).idle, "none", what="what is idle in this host", mistakes={
    "A quarter of the cores could go, and the GPUs would be as busy.": "cores",
    "One drive could go, and the GPUs would be as busy.": "drives"})))


def economy():
    host = judge(my_design())
    check(host.obstacle, "none", what="what stands against this host")
    return (2 - host.dollars / 35.45) / 0.95


credit.share(5, "the price beside the cheapest host", economy)
### END HIDDEN TESTS
credit.total()

# %% tags=["learning-alone"]
finish("my-design", my_design, final=False)

# %% [markdown]
# ## A script that starves
#
# `train.txt` lies beside this notebook once the next cell has run. It trains on photographs, on a machine with
# **4 cores**, over a link of **0.15 GB/s**, and its accelerator starves. It has four faults; none of them is a bug, and the model that
# it trains would be the same. Open it with a double-click in the list of files, and read it.
#
# `what_it_does` reads a script by running it: it counts what is done to one image, however the code looks. `simulated_throughput`
# says what such a script reaches on that machine. In a terminal, `python train.txt` runs it for real, on yours: Python does not ask for
# the ending, and files that end in .py are not graded.

# %%
before = what_it_does(script_text("train.txt"))
table(["what the script does to one image", "number"], list(before.items()))
info("On the machine with 4 cores", throughput=simulated_throughput(before))

# %% [markdown]
# ## Exercise 2.2: repair a script (20 points, in parts)
#
# Edit `train.txt`, save it, and run the cell above again, until the throughput is at least **twice** what it was. What the model
# learns must stay the same: the same number of images in a batch, of 224 x 224 pixels, decoded and blurred. Decode, blur and read
# labels with the functions that the script imports: these are what is counted. Then let the function below return the text of your
# file, `script_text("train.txt")`: the check runs it, and counts. Submit `train.txt` with your notebooks.
#
# <details><summary>Hint 1</summary>
#
# For each number of the table ask: does it have to be so large? Which of them does a worker pay for, and which the link?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The order of two transforms, something that is the same for all images, the bytes of a number, and the machine's cores.
#
# </details>

# %% role="answer" id="my-script"
def my_script():
    """The text of your script."""
    ### BEGIN SOLUTION
    text = script_text("train.txt")
    for old, new in [("workers=3", "workers=4"), ('Transform("normalize", normalize),', ""),
                     ('Transform("blur", blur),', ""), ("crop),", 'crop), Transform("blur", blur),'),
                     ("    labels = read_labels()", ""), ("def look_up", "labels = read_labels()\n\ndef look_up")]:
        text = text.replace(old, new)
    return text
    ### END SOLUTION

# %% role="test" id="my-script-test" points=20
def measured(width, height):
    mine = what_it_does(my_script(), width, height)
    if not (mine["decoded pixels"] and mine["images sent"]):
        raise AssertionError("The model is trained on the photographs: decode them, "
                             "and send what was decoded.")
    if mine == starved_counts(width, height):
        raise AssertionError("It does what it did before: nothing is repaired yet.")
    return mine


credit, done, larger = Credit(20), cache(lambda: measured(500, 375)), cache(
    lambda: measured(640, 480))
credit.part(2, "the same training", lambda: check(changed_training(done()), "nothing",
    what="what your script changes of the training", mistakes={
    "How many images a step sees is part of the training.": "batch size",
    "The model is trained on 3 x 224 x 224 values.": "pixels",
    "The model is trained on images that are blurred.": "blur"}))
credit.part(3, "workers", lambda: check(done()["workers"], 4,
                                        what="the number of workers", mistakes={
    "That is as it was, and a core is idle.": 3,
    "Workers past the cores bring nothing.": 8,
    "Without workers the training loop prepares each batch, and the accelerator waits "
    "for it.": 0}))
credit.part(3, "pixels that are blurred",
            lambda: check(done()["blurred pixels"], 224 * 224,
                          what="the pixels that are blurred",
                          mistakes={"The blur sees pixels that the crop throws away.":
                              500 * 375, "No pixel is blurred any more.": 0}))
credit.part(3, "labels", lambda: check(done()["label reads"], 0,
                                       what="how often labels are read for one image",
                                       mistakes={
                                           "All labels are read again for each image, "
                                           "and they are the same each time.": 1}))
credit.part(3, "bytes on the link", lambda: check(done()["bytes sent"], 3 * 224 * 224,
    what="the bytes that are sent",
    mistakes={"These are four bytes a value: the accelerator can normalize what comes "
              "as uint8.": 4 * 3 * 224 * 224, "These are two bytes a value.": 2 * 3
              * 224 * 224}))
def twice(mine, width, height):
    return bool(simulated_throughput(mine) >= 2
                * simulated_throughput(starved_counts(width, height)))
credit.part(3, "twice the throughput", lambda: (check(changed_training(done()),
    "nothing"), check(twice(done(), 500, 375), True,
                      what="whether the throughput is twice what it was", mistakes={
    "One of the numbers that cost the most is still as it was.": False})))
### BEGIN HIDDEN TESTS
credit.part(3, "twice the throughput with larger images", lambda: (
    check(changed_training(larger()), "nothing"),
    check(larger()["blurred pixels"], 224 * 224, what="the pixels that are blurred of a larger image"),
    check(twice(larger(), 640, 480), True, what="whether the throughput is twice what it was, with larger images")))
### END HIDDEN TESTS
credit.total()

# %% tags=["learning-alone"]
finish("my-script", my_script, final=False)

# %% [markdown]
# ## In your own words
#
# Which repair brought the most by itself, and which brought nothing until another one was made? Why? Three sentences. Nobody
# marks this.

# %% [markdown]
# *Double-click here and write.*

# %%
progress()

# %% [markdown]
# ## Take away
#
# - Starvation is paid by the hour. The cheapest host is one in which nothing waits, and there are many of those.
# - Repairs do not add: what does not bind brings nothing, until what binds is repaired.
# - Judge a script by what it does to one sample, and not by how its code looks.
#
# **Next:** [Notebook 3](03_beyond_images.ipynb): where none of this happens, and your own data.
