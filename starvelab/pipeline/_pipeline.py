"""The pipeline that people write: its three verbs, and what can be asked of it."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Self

from ..errors import InputError
from ..model import analysis
from ..model.analysis import Bill, Crossover, Epochs, Sensitivities, Sweep, ThroughputRange, WorkersNeeded
from ..model.analysis._remarks import remarks
from ..model.description import Changes, Description
from ..model.disagreement import ranges_of
from ..model.parts import Accelerator
from ..model.solver import solve
from ..model.step import Step
from ..units import Quantity, Unchecked

if TYPE_CHECKING:  # a run needs much that a solve does not: it loads when a verb is called
    from ..measure import Finding, Measurement, SimulatedClock
    from ..simulate import Simulation


class Pipeline(Description):
    """An input pipeline in front of an accelerator, or of several on one host.

    Each part is a catalogue entry, a quantity, or a small value that qualifies one of them.

    Parameters
    ----------
    model : catalogue entry, optional
        Not needed where the accelerator's rate is given.
    batch_size : int or array
        Of each accelerator.
    dataset : catalogue entry or Samples, optional
        Gives the stored size of a sample and the CPU time to prepare it. It must fit the model.
    storage : catalogue entry, quantity [data/time] or Drive, optional
        Without it reading is not modeled.
    workers : int, array, Workers, or quantity [data/time] or [sample/time]
        How many CPU workers prepare samples, or what all of them supply together.
    link : catalogue entry, quantity [data/time] or Link, optional
        Between host and accelerator; without it the copy is not modeled.
    hardware : catalogue entry, quantity [sample/time] or [time], or Accelerator
        The accelerator, what it was measured to do with its input at hand, or how long its step takes.
    phase : {"forward", "training"}, optional
        That of the assumptions unless given.
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

    def _solved(self) -> Step:
        return solve(
            self.numbers,
            self.inputs,
            self.shape,
            overlap=not self.in_turn,
            in_flight=self.hardware.in_flight if self.alone else inf,
            find_ranges=partial(ranges_of, self),
            find_remarks=partial(remarks, self),
            ranged=self.assumptions.ranged,
        )

    def explain(self, *, advice: bool = True) -> str:
        """Say what binds, by how much, and what to do next.

        Parameters
        ----------
        advice : bool
            Whether to go on from what binds to what to do about it.

        Raises
        ------
        InputError

        Examples
        --------
        >>> from starvelab import Hardware, Models, Pipeline
        >>> print(Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=16).explain())
        The accelerator binds: it needs 5.436 ms for a batch of 16, and the CPU has prepared it in 4 ms. The
        largest part of each step is fixed overhead: a larger batch spreads that over more samples. From batch
        23 on the CPU would bind.
        """
        return analysis.explain(self, advice=advice)

    def crossover(self, *, resource: str | None = None) -> Crossover:
        """Find the smallest batch size at which the accelerator waits.

        Parameters
        ----------
        resource : str, optional
            Look at this resource alone; otherwise at whichever starves the accelerator first.

        Raises
        ------
        InputError, UnknownNameError

        Notes
        -----
        Where a small batch is bound by memory traffic and a large one by arithmetic, the accelerator can bind
        again further on; this is the first crossing.

        Examples
        --------
        >>> from starvelab import Hardware, Models, Pipeline
        >>> found = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8).crossover()
        >>> found.batch, found.last_fed, found.starves_from
        (Fraction(39117, 1745), 22, 23)
        """
        return analysis.crossover(self, resource=resource)

    def workers_needed(self, *, batch_size: int | str | None = None) -> WorkersNeeded:
        """Count the workers that remove the CPU stall, ``b S / (w g(b))`` where each has its core.

        Parameters
        ----------
        batch_size : int or "any", optional
            That of the pipeline unless given; "any" asks for enough at every batch size.

        Raises
        ------
        InputError
            If the pipeline gives the CPU's supply as a whole, so that there are no workers to count.

        Notes
        -----
        Several accelerators are fed by one set of workers, and the answer is for all of them. Feasibility
        looks at the pipeline's drive and link, or at those of the accelerator's host where the pipeline does
        not model them, and at the pipeline's cores, or the host's where the catalogue knows them.

        Examples
        --------
        >>> from starvelab import Hardware, Models, Pipeline, Samples
        >>> scan = Pipeline(
        ...     model=Models.ResNet50, hardware=Hardware.Cloud.A100, dataset=Samples(size="5 MB")
        ... )
        >>> scan.workers_needed(batch_size=256).workers
        436
        """
        return analysis.workers_needed(self, batch_size=batch_size)

    def accelerators_fed(self, utilization: float = 0.9) -> int | None:
        """The largest number of accelerators that are busy for that share of each step.

        Parameters
        ----------
        utilization : float
            The busy share that is asked for, above 0 and up to 1.

        Returns
        -------
        int or None
            0 if not even one is busy enough, or has memory enough for its step; None if nothing that they
            share limits their number.

        Raises
        ------
        InputError

        Notes
        -----
        Exact: a shared resource takes ``n`` times as long for ``n`` accelerators, so ``n`` of them are busy
        for a share ``u`` as long as ``n supply <= own / u``. Where the pipeline names no cores, those of the
        host of one accelerator are meant, however many there are.

        Examples
        --------
        >>> from starvelab import Hardware, Models, Pipeline
        >>> Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=128).accelerators_fed()
        3
        """
        return analysis.accelerators_fed(self, utilization)

    def sensitivity(self) -> Sensitivities:
        """Try one more worker, one more GB/s, a tenth faster accelerator.

        Raises
        ------
        InputError
            For a sweep, or for stages or a copy that do not overlap.

        Examples
        --------
        >>> from starvelab import Hardware, Models, Pipeline
        >>> found = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8).sensitivity()
        >>> [(change.resource, round(change.gain, 3)) for change in found.changes]
        [('CPU', 0.125), ('accelerator', 0.0)]
        """
        return analysis.sensitivity(self)

    def sweep(self, changes: Changes = None, /, *, ranges: bool | None = None, **fields: Unchecked) -> Sweep:
        """Solve a pipeline for every combination of the given values.

        Parameters
        ----------
        ranges : bool, optional
            Whether to add the lowest and the highest throughput that the sources of the values allow; where
            the assumptions have ranges, unless given.
        **fields : sequence, array or quantity array
            Fields of the pipeline and their values, for example ``batch_size=[32, 64]`` or
            ``storage=Q_([1, 7], "GB/s")``. The last one varies fastest.
        changes : mapping of str, optional
            The same for fields of parts, by their path: ``{"workers.cores": [8, 16]}``.

        Raises
        ------
        InputError, UnknownNameError

        Examples
        --------
        >>> from starvelab import Hardware, Models, Pipeline
        >>> pipe = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
        >>> table = pipe.sweep(batch_size=[32, 64, 128])
        >>> (100 * table["utilization"]).round(1).tolist()
        [73.2, 41.9, 26.2]
        """
        return analysis.sweep(self, changes, ranges=ranges, **fields)

    def throughput_range(self) -> ThroughputRange:
        """The lowest and the highest throughput that the sources of a prediction's values allow.

        Raises
        ------
        InputError

        Notes
        -----
        Each assumption and each fact of the drive, the link and the data set lies between its `low` and
        `high`, where the catalogue has these. The accelerator's rate is that of any framework that was
        measured, unless the pipeline names one. The throughput never falls as one of these becomes more
        favorable, so it is lowest where each is at its less favorable end, and highest where each is at the
        other. A value of which only one source is known adds nothing. The error of the model itself stands
        below the table: a `Step` has it in its own `ranges`, and shows them where its assumptions have
        ranges.

        Examples
        --------
        >>> from starvelab import PUBLISHED, Hardware, Models, Pipeline
        >>> pipeline = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, assumptions=PUBLISHED)
        >>> found = pipeline.throughput_range()
        >>> [round(one.throughput.m_as("img/s")) for one in (found.lowest, found.step, found.highest)]
        [767, 1090, 1548]
        """
        return analysis.throughput_range(self)

    def bill(
        self,
        *,
        price: Quantity | str | None = None,
        busy_power: Quantity | str | None = None,
        waiting_power: Quantity | str | None = None,
        grid: Quantity | str = "world",
        samples: int | None = None,
        today: datetime.date | None = None,
    ) -> Bill:
        """What the accelerators of a pipeline take in an hour and in an epoch, and how much of it is waiting.

        Parameters
        ----------
        price : quantity [money/time], optional
            Of one accelerator; the middle of the listed prices unless given.
        busy_power, waiting_power : quantity [energy/time], optional
            What one accelerator draws while it computes and while it waits; `board_power` and `waiting_power`
            of the catalogue unless given.
        grid : str or quantity [mass/energy]
            A country such as "FRA", "world", or grams of CO2 for each kilowatt-hour.
        samples : int, optional
            Of an epoch; those of the pipeline's data set unless given.
        today : datetime.date, optional
            The day to which the age of the listed prices counts; the present one unless given.

        Raises
        ------
        InputError, UnknownNameError
        MissingValueError
            If neither a price nor both powers are known.

        Notes
        -----
        An accelerator that is busy for a share ``u`` of each step is paid for in full, and draws ``u
        busy_power + (1 - u) waiting_power``. Waiting is all waiting: for input, for a serialized copy, for
        launches and for the training loop. The board's power is the most that it may draw, so the energy is
        an upper bound unless `busy_power` is given. The host, its fans and the cooling are left out.

        Examples
        --------
        >>> from starvelab import Hardware, Models, Pipeline
        >>> wall = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
        >>> found = wall.bill(price="2 USD/h")
        >>> print(f"{found.hour_waiting.money:.2f~} of {found.hour.money:.2f~}, at {found.power:.0f~}")
        1.63 USD of 2.00 USD, at 139 W
        """
        return analysis.bill(
            self,
            price=price,
            busy_power=busy_power,
            waiting_power=waiting_power,
            grid=grid,
            samples=samples,
            today=today,
        )

    def epochs(
        self, *, memory: Quantity | str | None = None, samples: int | None = None, evicts: bool = True
    ) -> Epochs:
        """What a page cache does for the first epoch and for each later one, and what is lost between them.

        Parameters
        ----------
        memory : quantity [data], optional
            What the host has left for its page cache; without it each epoch is like the others.
        samples : int, optional
            Of an epoch; those of the pipeline's data set unless given.
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
        that `starvelab.model.page_cache.hit_share` derives. At the boundary of an epoch the queue is empty,
        and the loop is one step ahead of the accelerator: `starvelab.model.analysis._boundary` has the rule,
        and `Pipeline.simulate` follows the same batch by batch. Stops being true where several jobs share
        the memory, and where one epoch is prepared while another one still runs, as DALI does.

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
        Between two epochs 3.549 s are lost, as nothing is prepared then
        """
        return analysis.epochs(self, memory=memory, samples=samples, evicts=evicts)

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
        """Follow the pipeline batch by batch: who waits for whom, and when.

        Parameters
        ----------
        batches : int
            Of a run, with those of its start.
        replicas : int
            How often chance is tried; all of them are followed at once.
        seed : int
            The same seed gives the same results.
        warm_up : int
            Batches at the start that the results leave out.
        epoch_batches : int, optional
            Batches of an epoch; a run of one epoch unless given. No index of the next epoch is sent before
            the loop has asked for its first batch, so the queue is empty then.
        prepare_times : quantity [time], (replicas, batches) or (batches,), optional
            Your own times of a worker for each batch, instead of drawn ones.

        Raises
        ------
        InputError

        Notes
        -----
        Without jitter the long run comes to the rate that `solve` finds, and with it to a lower one: a batch
        that is late delays those behind it. Several accelerators take their steps together, so a batch is
        that of all of them.

        Examples
        --------
        >>> from starvelab import Pipeline, Samples
        >>> slow = Pipeline(hardware="20 ms", batch_size=32, dataset=Samples(cpu_time="1.5625 ms"), workers=2)
        >>> [round(slow.replace(workers=n).simulate().utilization, 3) for n in (2, 4)]
        [0.8, 1.0]
        """
        from ..simulate import simulate
        from ._timing import loader_of

        return simulate(
            loader_of(self, epoch_batches=epoch_batches),
            batches=batches,
            replicas=replicas,
            seed=seed,
            warm_up=warm_up,
            prepare_times=prepare_times,
        )

    @classmethod
    def of_loader(
        cls,
        loader: Unchecked,
        *,
        step: Callable[[Unchecked], object] | None = None,
        step_time: Quantity | str | None = None,
    ) -> Self:
        """Describe a PyTorch `DataLoader` as it is, with its dataset, batch size, workers and order.

        Parameters
        ----------
        loader : torch.utils.data.DataLoader
        step : callable, optional
            A function that trains on one batch. It is called, and trains for real.
        step_time : quantity [time], optional
            In place of it: what a training step takes. A loader without either is measured alone: then a
            measurement says what it delivers, and a finding which part costs most, and nothing of an
            accelerator.

        Raises
        ------
        InputError
        """
        from ..measure.datasets import parts_of

        if step is not None and step_time is not None:
            raise InputError(
                "A training step is called, or its time is known: got step and step_time. Pass one of them."
            )
        return cls(hardware=Accelerator(device=step, rate=step_time), **parts_of(loader))

    def measure(
        self,
        *,
        seconds: Quantity | str = "3 s",
        clock: SimulatedClock | None = None,
        repeat: bool = False,
        progress: bool = True,
    ) -> Measurement:
        """Run it on this machine: real workers prepare real samples, in front of an accelerator.

        The samples need a `source`. Drive, link and accelerator are simulated devices, which only take time,
        unless the accelerator has a `device`; without any accelerator the loader is measured alone. Workers
        are threads unless their `kind` says otherwise.

        Parameters
        ----------
        seconds : quantity [time]
            How long; slow pipelines take longer, until each worker has prepared a few batches.
        clock : SimulatedClock, optional
            Simulate it instead of running it; so, too, where the variable STARVELAB_CLOCK says "simulated".
        repeat : bool
            Run once more if something disturbed it, and return the calmer of the two.
        progress : bool
            Say how long it takes, and show a bar.

        Raises
        ------
        InputError, WorkerError
        """
        from ..measure.session import run
        from ..measure.setup import setup_of

        setup = setup_of(self, needs_samples=clock is None)
        return run(setup, seconds=seconds, clock=clock, repeat=repeat, progress=progress)

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
            How long to measure. Unless given, 8 s, and for slow pipelines until a part leads clearly or each
            rung had its rounds, which may take 60 s.
        clock : SimulatedClock, optional
            Simulate it instead of running it; so, too, where the variable STARVELAB_CLOCK says "simulated".
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
        from ..measure.diagnosis import climb_ladder
        from ..measure.setup import setup_of

        setup = setup_of(self, needs_samples=clock is None)
        return climb_ladder(setup, budget=budget, clock=clock, progress=progress)

    def calibrated(
        self,
        *,
        seconds: Quantity | str = "2 s",
        contention: float | None = None,
        progress: bool = True,
    ) -> Self:
        """Measure one worker, and as many as there are cores; return the pipeline with what they take.

        The samples get their size, CPU time and jitter, the workers their cores and hand-over, and the
        assumptions a contention. Workers, drive, link and accelerator of the result may be replaced by
        others.

        Parameters
        ----------
        seconds : quantity [time]
            Of each of the two runs.
        contention : float, optional
            From another calibration; then only one worker is measured.
        progress : bool

        Raises
        ------
        InputError, WorkerError
        """
        from ..measure.calibration import calibrate

        return calibrate(self, seconds=seconds, contention=contention, progress=progress)
