"""What data sets ask of storage and workers, derived from the values of their sources."""

import pytest

from starvelab import Q_, Accelerator, Datasets, Models, Pipeline
from starvelab.lesson.course.packing import pack

# MLPerf Storage 3.0 on a B200: batch size and computation_time of retinanet_b200.yaml, flux_b200.yaml,
# dlrm_b200.yaml and unet3d_b200.yaml, and what issue and paper round them to.
STORAGE_3 = {
    "OpenImages_RetinaNet": (24, "0.04755 s", 505, "163 MB/s"),
    "Flux": (48, "1.35 s", 35.6, "77 MB/s"),
    "Criteo_DLRM": (16384, "0.000375 s", 43.7e6, "33 GB/s"),
    "KiTS19": (7, "0.162 s", 43.2, "6.3 GB/s"),
}


@pytest.mark.parametrize("name", STORAGE_3)
def test_what_an_accelerator_reads_follows_from_the_config_of_its_benchmark(name):
    batch, step, rate, read = STORAGE_3[name]
    asked = Pipeline(
        dataset=getattr(Datasets, name), batch_size=batch, hardware=step, workers="1e9 img/s",
        storage="100 GB/s",
    ).solve()  # fmt: skip
    assert asked.bottleneck == "accelerator"
    assert asked.throughput.m_as("img/s") == pytest.approx(rate, rel=0.002)
    assert asked.demand_at_ceiling.m_as("MB/s") == pytest.approx(Q_(read).m_as("MB/s"), rel=0.01)


def test_of_a_row_of_parquet_a_fifth_is_read():
    read = Datasets.Criteo_DLRM.facts["sample_size"].low
    # 27 float32, 5 float64, 4 float16 and 4 int8 of dlrm_b200.yaml.
    assert read.m_as("B") == pytest.approx(27 * 4 + 5 * 8 + 4 * 2 + 4)
    assert (read * Q_("1 /s") * 16384 / 0.000375).m_as("GB/s") == pytest.approx(7.0, rel=0.01)


@pytest.mark.parametrize(("name", "rate"), [("OpenWebText", 3.6), ("OpenWebText_tiktoken", 19.9)])
def test_what_tokenizing_takes_is_a_documents_bytes_over_the_rate_of_the_library(name, rate):
    documents = getattr(Datasets, name)
    took = documents.sample_size / Q_(rate, "MiB/s")
    assert documents.preparation_time.m_as("ms") == pytest.approx(took.m_as("ms"), rel=0.01)
    # Both count tokens of GPT-2, of 4.41 bytes each.
    assert documents.sample_size.m_as("B") / documents.tokens == pytest.approx(4.41, rel=0.005)


def test_a_language_model_that_tokenizes_as_it_trains_needs_many_times_the_workers_of_one_that_reads_tokens():
    reads = Pipeline(
        model=Models.GPT2_small, dataset=Datasets.TokenizedText, hardware=Accelerator(rate="390.625 img/s")
    )
    tokenizes, fast = (
        reads.replace(dataset=pack(texts, "split", 1024).samples(cpu_time=texts.preparation_time))
        for texts in (Datasets.OpenWebText, Datasets.OpenWebText_tiktoken)
    )
    # 400,000 tokens a second: 0.0306, 0.466 and 0.0845 workers' time for each second.
    assert [float(way.workers_needed().exact) for way in (reads, tokenizes, fast)] == pytest.approx(
        [0.0306, 0.466, 0.0846], rel=0.002
    )
