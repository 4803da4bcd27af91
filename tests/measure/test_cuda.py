"""A real GPU behind the interface of the simulated one, and the message where there is none."""

import pytest

from starvelab import PUBLISHED, MissingValueError
from starvelab.measure import CudaDevice, photo_transforms, photos
from starvelab.measure.diagnosis import climb_ladder
from starvelab.measure.session import run
from tests.measure.scenes import NO_GPU, described, kind

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from starvelab.measure.cuda import resnet50  # noqa: E402

pytestmark = pytest.mark.programs

WITH_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that PyTorch can use")


@pytest.fixture
def pipe():
    return described(
        samples=photos(count=8), batch_size=8, transforms=photo_transforms(send="uint8"), device=CudaDevice()
    )


def test_without_a_gpu_the_simulated_one_is_proposed(pipe, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for drive in (run, climb_ladder):
        with pytest.raises(MissingValueError) as caught:
            drive(pipe, progress=False)
        assert str(caught.value) == NO_GPU


@WITH_GPU
@pytest.mark.parametrize("loader", ["threads", "torch"])
@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_a_gpu_trains_and_its_events_make_a_record(pipe, loader, precision):
    accelerator = CudaDevice(precision=precision)
    record = run(pipe.replace(**kind(loader), device=accelerator), seconds="1 s", progress=False)
    assert 0 < record.utilization <= 1.01
    assert record.utilization + record.stall == 1
    trace = record.trace
    assert (trace.step_start[1:] >= trace.step_end[:-1] - 0.1).all()
    assert (trace.copied <= trace.step_start + 0.1).all()


@WITH_GPU
@pytest.mark.parametrize("loader", ["threads", "torch"])
def test_a_gpu_can_be_diagnosed(pipe, loader):
    finding = climb_ladder(pipe.replace(**kind(loader)), budget="4 s", progress=False)
    assert list(finding.evidence) == ["read", "decode", "transform", "collate", "copy", "compute"]


# The network is the published one. He et al. 2016, Table 1, gives 3.8 x 10^9 multiply-adds for the original;
# torchvision's version, with the stride in the 3 x 3 convolution, has 25,557,032 parameters and 4.089 GMAC
# (its table of ResNet50_Weights).


@pytest.fixture(scope="module")
def network():
    with torch.device("meta"):  # shapes without memory
        return resnet50()


def test_it_has_the_parameters_of_resnet_50(network):
    assert sum(each.numel() for each in network.parameters()) == 25_557_032


def test_it_does_the_work_of_resnet_50(network):
    counter = FlopCounterMode(display=False)
    with counter:
        out = network(torch.empty(1, 3, 224, 224, device="meta"))
    assert out.shape == (1, 1000)
    assert counter.get_total_flops() / 2 / 1e9 == pytest.approx(4.089, abs=5e-4)


class Operations(TorchDispatchMode):
    """Counts what is dispatched, without views and empty tensors."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        self.count += function.namespace == "aten" and name not in ("view", "t", "detach", "expand", "empty")
        return function(*args, **(kwargs or {}))


def operations(call):
    with Operations() as counted:
        result = call()
    return counted.count, result


def test_training_dispatches_as_many_operations_as_the_range_of_its_launches_says(network):
    images, labels = (
        torch.empty(2, 3, 224, 224, device="meta"),
        torch.zeros(2, dtype=torch.long, device="meta"),
    )
    with torch.no_grad():
        alone, _ = operations(lambda: network.eval()(images))
    forward, found = operations(lambda: network.train()(images))
    backward, _ = operations(torch.nn.functional.cross_entropy(found, labels).backward)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=False)
    optimizer.step()  # the first one makes its state
    each_tensor, _ = operations(optimizer.step)
    counts = (alone, forward, backward, each_tensor)
    fact = PUBLISHED.facts["launch_factor"]
    # A fused optimizer is one operation.
    ends = [(forward + backward + update) / alone for update in (1, each_tensor)]
    assert ends == pytest.approx([fact.low, fact.high], abs=0.1), counts
