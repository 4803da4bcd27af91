"""The one description of an input pipeline in front of an accelerator, and what can be asked of it.

Its parts are put together in `starvelab.model`, and each verb loads what it needs when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never, Self

from .errors import InputError, own_errors
from .model import analysis
from .model.analysis._range import range_of
from .model.analysis._remarks import remarks
from .model.description import Changes, Description
from .model.paths import FIELDS
from .model.solver import solve
from .model.step import Step
from .units import Quantity, Unchecked

if TYPE_CHECKING:  # a run needs much that a solve does not: it loads when a verb is called
    from .measure import Finding, Measurement, SimulatedClock
    from .simulate import Epochs, Simulation


class Pipeline(Description):
    """An input pipeline in front of an accelerator, or of several on one host.

    Each part is a catalogue entry, a quantity, or a small value that qualifies one of them.

    Parameters
    ----------
    model : catalogue entry, optional
        Not needed if the accelerator's rate is given.
    batch_size : int or array
        Samples in a batch of each accelerator.
    dataset : catalogue entry or Samples, optional
        Gives the stored size of a sample and the CPU time to prepare it. It must fit the model.
    storage : catalogue entry, quantity [data/time] or Drive, optional
        Without it reading is not modeled.
    workers : int, array, Workers, or quantity [data/time] or [sample/time]
        How many CPU workers prepare samples, or what all of them supply together.
    link : catalogue entry, quantity [data/time] or Link, optional
        Between host and accelerator; without it the copy is not modeled.
    hardware : catalogue entry, quantity [sample/time] or [time], or Accelerator
        The accelerator, its rate as measured with its input at hand, or the time of its step.
    phase : {"forward", "training"}, optional
        By default that of the assumptions.
    overlap : bool
        False puts everything one after the other: the sum of all stages.
    assumptions : Assumptions

    Notes
    -----
    Numbers and quantities may be arrays whose shapes broadcast, as in NumPy; `sweep` tries every combination.
    A quantity may be given as text: ``storage="200 MB/s"``.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> pipeline = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=8)
    >>> wall = pipeline.solve()
    >>> wall.bottleneck, round(wall.utilization, 3), round(wall.slowdown, 2)
    ('CPU', 0.183, 5.45)
    """

    def solve(self, changes: Changes = None, /, *more: Never, **fields: Unchecked) -> Step:
        """Compute the time of a step; arguments first change fields, as in `replace`, and may be arrays.

        Raises
        ------
        InputError, MissingValueError, UnknownNameError
        """
        asked = changes is not None or more or fields
        return solve(self.replace(changes, *more, **fields) if asked else self)

    def __setattr__(self, name: str, _: Unchecked) -> Never:
        """Reject a change: a pipeline keeps what it was made of."""
        raise InputError(
            f"A pipeline does not change, got a value for {name}. Pass it to replace(), which returns a copy."
        )

    def __dir__(self) -> list[str]:
        """Return what the API page shows: the fields, and what can be asked."""
        asked = (name for name in vars(Pipeline) if not name.startswith("_"))
        return sorted({*FIELDS, "replace", *asked})

    explain = own_errors(analysis.explain)
    crossover = own_errors(analysis.crossover)
    workers_needed = own_errors(analysis.workers_needed)
    sweep = own_errors(analysis.sweep)
    bill = own_errors(analysis.bill)
    # What a step asks for when it is shown: these take other solves.
    _range_of = range_of
    _remarks = remarks

    @own_errors
    def simulate(
        self,
        *,
        batches: int = 400,
        replicas: int = 16,
        seed: int = 0,
        warm_up: int = 20,
        epoch_batches: int | None = None,
        prepare_times: Unchecked = None,
    ) -> Simulation:
        """Simulate the pipeline batch by batch: who waits for whom, and when.

        Parameters
        ----------
        batches : int
            Batches of a run, including those of its start.
        replicas : int
            How many random runs are simulated, side by side.
        seed : int
            The same seed gives the same results.
        warm_up : int
            Batches at the start that the results leave out.
        epoch_batches : int, optional
            Batches of an epoch; by default the run is one epoch. No index of the next epoch is sent before
            the loop has asked for its first batch, so the queue is empty then.
        prepare_times : quantity [time], (replicas, batches) or (batches,), optional
            Your own times of a worker for each batch, instead of drawn ones.

        Notes
        -----
        Without jitter a long run reaches the rate that `solve` finds; with jitter it stays below, because a
        late batch delays those behind it. Several accelerators take their steps together, so a batch is that
        of all of them on a host, and each rank is a host with workers and a queue of its own.

        Examples
        --------
        >>> from starvelab import Pipeline, Samples
        >>> slow = Pipeline(hardware="20 ms", batch_size=32, dataset=Samples(cpu_time="1.5625 ms"), workers=2)
        >>> [round(slow.replace(workers=n).simulate().utilization, 3) for n in (2, 4)]
        [0.8, 1.0]
        """
        from .simulate.inputs import inputs_of
        from .simulate.simulation import simulate

        return simulate(inputs_of(self, epoch_batches), batches, replicas, seed, warm_up, prepare_times)

    @own_errors
    def epochs(
        self,
        *,
        memory: Quantity | str | None = None,
        samples: int | None = None,
        evicts: bool = True,
    ) -> Epochs:
        """Compute what a page cache serves in the first epoch and in later ones, and what is lost between.

        Parameters
        ----------
        memory : quantity [data], optional
            Memory that the host has left for its page cache; without it all epochs are alike.
        samples : int, optional
            Samples of an epoch; by default those of the pipeline's data set.
        evicts : bool
            False for a cache that keeps the samples it has, however many others are read.

        Raises
        ------
        InputError
        MissingValueError
            If the samples of an epoch are not known.

        Notes
        -----
        The first epoch reads each sample once and finds none of them in memory. A later one finds the share
        that `starvelab.model.stages.data.hit_share` derives. At the boundary of an epoch the queue is empty,
        and the loop is ahead of the accelerator as far as steps may be in flight: this cost is simulated
        batch by batch, as in `simulate`. Stops being true where several jobs share the memory, and where one
        epoch is prepared while another one still runs, as DALI does.

        Examples
        --------
        >>> from starvelab import Datasets, Hardware, Models, Pipeline, Workers
        >>> trained = {"model": Models.ResNet50, "dataset": Datasets.ImageNet, "storage": "200 MB/s"}
        >>> pipeline = Pipeline(hardware=Hardware.Cloud.A100, **trained)
        >>> found = pipeline.epochs(memory="51.4 GB")
        >>> round(found.held, 3), round(found.cached_fraction, 3)
        (0.35, 0.138)
        >>> slow_start = pipeline.replace(workers=Workers(64, start_up="2 s"), storage=None)
        >>> print(slow_start.epochs().summary)
        Between two epochs 3.542 s are lost, as nothing is prepared then
        """
        from .simulate.epochs import epochs

        return epochs(self, memory, samples, evicts)

    @own_errors
    def measure(
        self,
        *,
        seconds: Quantity | str = "3 s",
        clock: SimulatedClock | None = None,
        repeat: bool = False,
        progress: bool = True,
    ) -> Measurement:
        """Run the pipeline on this machine: real workers prepare real samples, in front of an accelerator.

        The samples need a `source`. Drive, link and accelerator are simulated devices, which only take time,
        unless the accelerator has a `device`; without any accelerator the loader is measured alone. Workers
        are threads unless their `kind` says otherwise.

        Parameters
        ----------
        seconds : quantity [time]
            How long to run; slow pipelines take longer, until each worker has prepared a few batches.
        clock : SimulatedClock, optional
            Simulate instead of running, as the variable STARVELAB_CLOCK="simulated" asks for every run.
        repeat : bool
            Run once more if something disturbed the run, and return the less disturbed one.
        progress : bool
            Say how long it takes, and show a bar.

        Raises
        ------
        InputError, WorkerError
        """
        from .measure.session import run
        from .measure.setup import setup_of

        setup = setup_of(self, needs_samples=clock is None)
        return run(setup, seconds=seconds, clock=clock, repeat=repeat, progress=progress)

    @own_errors
    def diagnose(
        self,
        *,
        budget: Quantity | str | None = None,
        clock: SimulatedClock | None = None,
        progress: bool = True,
    ) -> Finding:
        """Find on this machine what starves the accelerator, by caching one part more at a time.

        Parameters
        ----------
        budget : quantity [time], optional
            How long to measure. By default 8 s; for slow pipelines until a part leads clearly, or each rung
            had its rounds, which may take 60 s.
        clock : SimulatedClock, optional
            Simulate instead of running, as the variable STARVELAB_CLOCK="simulated" asks for every run.
        progress : bool
            Say how long it takes, and show a bar.

        Raises
        ------
        InputError, WorkerError

        Notes
        -----
        What a part adds is what caching it saves once all parts before it are cached. While the accelerator
        or a slower part hides some of a part's work, that share does not show: relieve the bottleneck, and
        diagnose again.
        """
        from .measure.diagnosis import climb_ladder
        from .measure.setup import setup_of

        setup = setup_of(self, needs_samples=clock is None)
        return climb_ladder(setup, budget=budget, clock=clock, progress=progress)

    @own_errors
    def calibrated(
        self,
        *,
        seconds: Quantity | str = "2 s",
        progress: bool = True,
    ) -> Self:
        """Measure one worker, and then one for each core; return the pipeline with their times.

        The samples get their size, CPU time and jitter, the workers their cores and hand-over, and the
        assumptions a contention. Workers, drive, link and accelerator of the result may be replaced by
        others.

        Parameters
        ----------
        seconds : quantity [time]
            Length of each of the two runs.
        progress : bool

        Raises
        ------
        InputError, WorkerError
        """
        from .measure.session import calibrate

        return calibrate(self, seconds=seconds, progress=progress)
