# %% [markdown]
# # 8. Can I train from S3?
#
# Large data sets live in object stores. Each image is an object of its own there, and a request waits a tenth of a second before
# its first byte comes. **Can that feed a GPU?** In about MINUTES minutes you know.
#
# Here a GPU trains on 138 img/s of 115 KB, from Amazon S3. One worker asks for one image after the other.
#
# <details><summary>Source</summary>
#
# A ViT on an A10G: tigrisdata.com.
#
# </details>

# %% role="setup" id="setup-08"
from starvelab import PUBLISHED, Datasets, Pipeline, Q_, Samples, Storage, Workers
from starvelab.checks import Credit, check
from starvelab.show import table
from starvelab.tables import cell, percent
from starvelab.widgets import beside_published, explore, finish, my_model, play
from starvelab.widgets import predict, progress, report, reveal, scorecard

s3 = Pipeline(dataset=Samples(Datasets.ImageNet, size="115 KB"), batch_size=64,
              storage=Storage.S3_connection, workers=Workers(1, cores=16),
              hardware="138 img/s", assumptions=PUBLISHED)
my = my_model()  # your functions, and the lab's where one is missing
SIXTEEN = [1, 2, 4, 8, 16]
# Images a second by workers: a ViT on an A10G with 16 cores, an object store, JPEGs of
# about 115 KB (tigrisdata.com/docs/overview/benchmarks/model-training).
MEASURED = {1: 12, 8: 93, 16: 134}
REMEDIES = {"Twice the cores": {"workers.cores": 32},
            "Twice the bandwidth": {"storage.of": Storage.S3_connection.replace(
                bandwidth_sustained=2 * Storage.S3_connection.bandwidth_sustained,
                request_bandwidth=2 * Storage.S3_connection.request_bandwidth)},
            "36 images with each request": {"storage.requests.samples": 36}}


def show_one():
    return play(s3, workers=range(1, 33), find="workers")


def show_workers():
    steps = {n: s3.solve(workers=n) for n in SIXTEEN}
    table(["workers", "the model says", "GPU busy", "somebody measured"], [
        [n, step.throughput, percent(step.utilization),
         Q_(MEASURED[n], "img/s") if n in MEASURED else ""]
        for n, step in steps.items()])


def show_remedies():
    before = s3.solve(workers=4)
    table(["four workers", "throughput", "GPU busy"], [
        ["as they are", before.throughput, percent(before.utilization)],
        *([name, step.throughput, percent(step.utilization)]
          for name, step in remedied.items())])


def why_one():
    """What the rate means, and what plausible mistakes predict."""
    store, image = Storage.S3_connection, Q_("115 KB/img")
    stream = (store.request_bandwidth / image).to("img/s")
    waiting = Q_("1 img") / (store.request_latency + Q_("1 img") / stream)
    busy = percent(s3.solve().utilization)
    return {"meaning": f"The GPU is busy for {busy} of the time.",
            "mistakes": {"That is one connection once its bytes flow.": stream,
                         "That is what the GPU asks for.": Q_("138 img/s"),
                         "It waited, and prepared nothing.": waiting.to("img/s")}}


def why_eight():
    """What the share means, and what plausible mistakes predict."""
    eight, one = s3.solve(workers=8), 100 * s3.solve().utilization
    return {"meaning": f"Eight workers bring {cell(eight.throughput)}.",
            "mistakes": {"That is what one worker does for it.": Q_(one, "%"),
                         "Requests are under way side by side.": Q_(one / 8, "%")}}


def why_remedy():
    """What the best remedy means, and what the others bring."""
    latency = Storage.S3_connection.request_latency
    waits = f"{cell(latency / 36)}, not {cell(latency)}"
    before = cell(s3.solve(workers=4).throughput)
    return {"meaning": f"An image then waits {waits}.",
            "mistakes": {
                f"That brings {cell(step.throughput)} in place of {before}: it did not "
                "bind.": name for name, step in remedied.items() if name != best}}

# %%
predict("s3-one", unit="img/s",
        question="How many images a second does this one worker bring?")

# %%
predict("s3-eight", unit="%",
        question="For how much of the time is the GPU busy with eight workers?")

# %%
predict("s3-remedy", choices=["Twice the cores", "Twice the bandwidth",
                              "36 images with each request"],
        question="Only four workers: which change brings most?")

# %%
reveal("s3-one", s3.solve().throughput, then=show_one, why=why_one)

# %%
reveal("s3-eight", Q_(100 * s3.solve(workers=8).utilization, "%"), then=show_workers,
       why=why_eight)

# %% [markdown]
# The workers bind, and mostly they wait, each for its own request (hatched above). So twice the
# workers bring twice the images until the GPU or the cores bind. A worker that waits leaves its
# core idle.
#
# The model does not use that measurement. It takes the shortest latency that Amazon names.

# %%
remedied = {name: s3.solve(change, workers=4) for name, change in REMEDIES.items()}
best = max(remedied, key=lambda name: remedied[name].throughput)
reveal("s3-remedy", best, then=show_remedies, why=why_remedy)

# %% [markdown]
# Packed into shards, 36 images come with one request of 4 MB. A cache has the same effect from the second epoch on. How small may
# the cache be, and how few workers are enough?

# %%
explore(s3, {"storage.requests.samples": [1, 2, 4, 8, 36],
             "storage.cache.share": (0.0, 1.0)}, after="s3-remedy",
        workers=[1, 2, 4, 8, 12, 16, 32])

# %% [markdown]
# ## Exercise 8.1: a worker's own time (6 points, in parts)
#
# How many images a second do workers bring from an object store? For each image a worker waits for that image's share of a
# request, receives its bytes, and then prepares it for `cpu_time`. Waiting and receiving need no core.
#
# <details><summary>Hint 1</summary>
#
# How long does one worker take for one image? A worker waits once for a request of several images.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Workers divide all of that time; cores divide only `cpu_time`. The slower of the two sets the rate.
#
# </details>

# %% role="answer" id="store-rate"
def store_rate(workers, cores, latency, images, size, bandwidth, cpu_time):
    """Images a second [1/time]; a request of `images` waits for `latency` [time], then
    each image of `size` [data] comes at `bandwidth` [data/time]."""
    # Your model has my.cpu_time(batch_size, sample_size, workers, worker_rate)
    ### BEGIN SOLUTION
    own_time = latency / images + size / bandwidth + cpu_time
    return min(workers / own_time, cores / cpu_time).to("1/s")
    ### END SOLUTION

# %% role="test" id="store-rate-test" points=6
credit = Credit(6)
ONE = (Q_("90 ms"), 1, Q_("100 KB"), Q_("50 MB/s"), Q_("8 ms"))
MANY = (Q_("90 ms"), 30, *ONE[2:])
credit.part(2, "one image a request", lambda: check(
    store_rate(4, 16, *ONE), Q_("40 /s"), what="the rate of 4 workers", mistakes={
    "Receiving takes time as well.": Q_(4 / 0.098, "1/s"),
    "The worker prepares the image, too.": Q_(4 / 0.092, "1/s"),
    "That is one worker.": Q_("10 /s"),
    "That is the rate of sixteen workers: here are four.": Q_("160 /s")}))
credit.part(2, "thirty images a request", lambda: check(
    store_rate(4, 16, *MANY), Q_(4 / 0.013, "1/s"), what="the rate", mistakes={
    "One request brings all thirty, and a worker waits for it once.": Q_("40 /s"),
    "Each image of them is received and prepared.": Q_(120 / 0.1, "1/s")}))
credit.part(1, "more workers than cores", lambda: check(
    store_rate(64, 2, *ONE), Q_("250 /s"), what="the rate on two cores", mistakes={
    "Two cores prepare no more than 250 images a second.": Q_("640 /s"),
    "While a worker waits another one uses its core.": Q_("20 /s")}))
### BEGIN HIDDEN TESTS
credit.part(1, "other values", lambda: (
    check(store_rate(16, 32, Q_("0.2 s"), 4, Q_("1 MB"), Q_("100 MB/s"), Q_("20 ms")), Q_("200 /s"), what="the rate of 16 workers"),
    check(store_rate(100, 4, Q_("30 ms"), 1, Q_("0.5 MB"), Q_("50 MB/s"), Q_("0.01 s")), Q_("400 /s"), what="the rate on four cores")))
### END HIDDEN TESTS
credit.total("So once all cores are busy, more workers bring nothing.")

# %% tags=["learning-alone"]
finish("store-rate", store_rate, final=False)
### BEGIN ENDING
ending = 1, "stores", lambda draw: (
    draw.randint(1, 64), draw.randint(1, 16), Q_(draw.randint(5, 200), "ms"), draw.randint(1, 40),
    Q_(draw.randint(50, 2000), "KB"), Q_(draw.randint(20, 200), "MB/s"), Q_(draw.randint(2, 30), "ms"))
### END ENDING

# %% [markdown]
# ## How far is your model?
#
# For twenty published loaders the rates of one worker and of several are known. Here are your
# model, the lab's, and the lab's with all else that is published:

# %%
beside_published()

# %% [markdown]
# ## In your own words
#
# Why do more workers help here although cores are idle? Not graded.

# %% [markdown]
# *Write here.*

# %%
scorecard()

# %%
report()

# %%
progress()

# %% [markdown]
# ## Take away
#
# - An object store is fast, and far away: what counts is how many requests are open.
#
# **What comes next:** in [the second assignment](../find-the-bottleneck/01_measure_your_machine.ipynb) you measure your own machine.
