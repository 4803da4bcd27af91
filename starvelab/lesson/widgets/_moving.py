"""A picture that moves: the batches of a simulated run on their way from the drive into the GPU.

`moving.js` draws it, and computes the model's rule itself while a slider is dragged; the site and its game
import it, too. From here it gets a run, the plain numbers of the rule, and the table of resources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil, isfinite
from pathlib import Path
from typing import Any, TypeAlias

import anywidget
import numpy as np
import traitlets

from ...errors import InputError
from ...model.costs import Line
from ...model.parts import Workers
from ...model.resources import ACCELERATOR, CPU, RESOURCES, STORAGE
from ...model.solver import BatchTimes, by_resource, costs
from ...model.stages import STAGES, SingleNodeModel, TransformationModel
from ...model.step import Step
from ...pipeline import Pipeline
from ...simulate import Trace
from ...tables import percent
from ...units import Unchecked
from .. import notices
from ..show.lanes import loader_lanes
from .keyboard import Box, spoken
from .store import PredictionStore

# Any: what becomes JSON.
Data: TypeAlias = dict[str, Any]
_CONTROLS = {"batch_size": "batch", "workers": "workers"}
# As in the script.
MAX_SETTLING = 1500
SCRIPT = Path(__file__).with_name("moving.js")


def play(
    pipeline: Pipeline | Mapping[str, Pipeline],
    /,
    *,
    prepare_times: Unchecked = None,
    find: str = "",
    until: float | None = None,
    after: str | None = None,
    **controls: Sequence[int],
) -> Moving:
    """Show a pipeline as a picture that moves: batches pile up behind what binds, and the GPU waits.

    Parameters
    ----------
    pipeline : Pipeline, or mapping of str to Pipeline
        Without swept fields. Its simulation is played after the queue has filled. Of several hosts the
        slowest is shown. Several pipelines, by their names, are played on one clock with the same sliders.
    prepare_times : quantity [time], optional
        Your own times of a worker for each batch, as `Pipeline.simulate` takes them.
    find : str
        A slider; the picture says when it is at the smallest value beyond which more bring nothing.
    until : float, optional
        With `find`, the busy share of the GPU that is enough instead.
    after : str, optional
        Key of a prediction; the picture is shown when that is locked.
    **controls : sequence of int
        Sliders: the values of ``workers`` and of ``batch_size`` that they offer.

    Returns
    -------
    Moving
        The widget. Where no widgets are shown, it is a still picture of the same run, with a table.

    Raises
    ------
    InputError
    """
    pipelines = {"": pipeline} if isinstance(pipeline, Pipeline) else dict(pipeline)
    for name, values in controls.items():
        if name not in _CONTROLS or len(values) < 2:
            raise InputError(
                f"A moving picture has sliders of two or more values for {' and '.join(_CONTROLS)}, got "
                f"{name}={values!r:.60}. Pass for example workers=range(1, 65)."
            )
    if find and find not in controls:
        raise InputError(
            f"find must name a slider of the picture, got find={find!r:.60}. Pass {find!s:.60}=...."
        )
    uncounted = [shown.workers for shown in pipelines.values() if not _counts_workers(shown)]
    if "workers" in controls and uncounted:
        raise InputError(
            f"A slider of workers needs a pipeline that counts them, got workers={uncounted[0]!r:.60}. "
            "Pass Pipeline(..., workers=8)."
        )
    return Moving(pipelines, prepare_times, controls, find, until, after)


class _Picture(anywidget.AnyWidget):
    """The part that the script draws."""

    _esm = SCRIPT
    data = traitlets.Dict().tag(sync=True)
    # Set by the page when a slider has come to rest.
    setting = traitlets.Dict().tag(sync=True)


class Moving(Box):
    """The widget of a picture that moves: its `trace` is the run that is played, of several the first."""

    def __init__(
        self,
        pipelines: Mapping[str, Pipeline],
        prepare_times: Unchecked,
        controls: Mapping[str, Sequence[int]],
        find: str = "",
        until: float | None = None,
        after: str | None = None,
    ) -> None:
        self._pipelines, self._times = dict(pipelines), prepare_times
        self._controls = controls
        self._asked = {"find": _CONTROLS.get(find, ""), "until": until}
        self.message, self._is_open = spoken(), False
        super().__init__("Moving picture of the pipeline", [self.message])
        store = PredictionStore()
        if after is None or store.get(after) is not None:
            self._open()
            return
        text = f"This picture moves when you have locked your prediction above. {store.memory.which(after)}"
        self.message.value = notices.paragraphs(text)
        store.when_locked(after, self._open)

    def _open(self) -> None:
        """Show the picture in the place of the text."""
        data = self._data()
        setting = data["belts"][0]["setting"]
        sliders = {
            _CONTROLS[name]: sorted({*values, setting[_CONTROLS[name]]})
            for name, values in self._controls.items()
        }
        self._picture = _Picture(data={**data, "controls": sliders, **self._asked})
        self._picture.observe(self._simulate, names="setting")
        self.message.value, self._is_open = "", True
        self.set_trait("children", (self._picture, *self.children))

    def _data(self) -> Data:
        belts = self._pipelines.items()
        return {"belts": [{"name": name, **data_of(pipeline, self._times)} for name, pipeline in belts]}

    def _simulate(self, _change: object) -> None:
        """Play the kernel's own run where a slider has come to rest."""
        moved = {name: self._picture.setting[key] for name, key in _CONTROLS.items()}
        self._pipelines = {name: self._at(name, moved) for name in self._pipelines}
        self._picture.data = {**self._picture.data, **self._data()}

    def _at(self, name: str, moved: dict[str, int]) -> Pipeline:
        """Return the pipeline of that name where the sliders stand."""
        pipeline = self._pipelines[name]
        if not _counts_workers(pipeline):
            moved = {field: value for field, value in moved.items() if field != "workers"}
        return pipeline.replace(**moved)

    @property
    def trace(self) -> Trace:
        """The run that is played, from the first batch that is seen."""
        return run_of(next(iter(self._pipelines.values())), self._times)[0]

    def html(self) -> str:
        """Return a still picture of the same run, with its table."""
        if not self._is_open:
            return super().html()
        return "".join(
            f"{notices.paragraphs(f'**{name}**') if name else ''}{self._still(pipeline)}"
            for name, pipeline in self._pipelines.items()
        )

    def _still(self, pipeline: Pipeline) -> str:
        step, (trace, *_, shown) = pipeline.solve(), run_of(pipeline, self._times)
        waits = percent(trace.first(shown).stall)
        picture = loader_lanes(trace.first(shown), chip=step.labels[ACCELERATOR.name])
        ranks = pipeline.hardware.ranks
        whose = f" This is the slowest of {ranks.hosts} hosts." if ranks.hosts > 1 and ranks.slow > 1 else ""
        waiting = f"{step.labels.does(ACCELERATOR.name, 'wait')} {waits} of the time"
        said = f"{step.summary}. Simulated: {waiting}.{whose}"
        return f"{notices.paragraphs(said)}{picture}{notices.widget_table(step.headers, step.rows)}"


def data_of(pipeline: Pipeline, prepare_times: Unchecked = None) -> Data:
    """Return what the script needs: the rule's numbers, the setting, the run, and the table of resources."""
    trace, asked, lanes, shown = run_of(pipeline, prepare_times)
    columns = {name: value for name, value in vars(trace).items() if name not in ("batch_size", "source")}
    # The loop that prepares its own batches is the only worker.
    columns |= {"asked": asked, "worker": np.maximum(trace.worker, 0)}
    crew = pipeline.workers
    times = None if prepare_times is None else prepare_times.m_as("ms").tolist()
    run = {name: value if value is None else np.round(value, 3).tolist() for name, value in columns.items()}
    return {
        "rule": rule_of(pipeline) | {"prepare": times},
        "setting": {
            "batch": int(pipeline.solve().batch_size),
            "workers": int(crew.count) if _counts_workers(pipeline) else 1,
        },
        "run": {**run, "lanes": lanes, "end": float(trace.step_end[shown - 1])},
        "resources": [
            {name: getattr(one, name) for name in ("name", "color", "ink", "hatch")}
            | {"label": pipeline.labels[one.name]}
            for one in RESOURCES.values()
        ],
    }


def rule_of(pipeline: Pipeline) -> Data:
    """The plain numbers of a pipeline from which the script solves it for any batch size and any workers."""
    inputs, count = pipeline.inputs, pipeline.numbers["accelerators"]
    stages = {stage.NAME: stage for stage in STAGES}
    crew, model = TransformationModel.among(inputs), SingleNodeModel.among(inputs)
    launch: tuple[Line, tuple[Line, ...]] | None = None
    step, counted = model.step if model.launches else None, None
    if step is not None and not (step.hidden or step.in_turn):
        counted = step.lines[-1]
    elif step is not None:
        compute, memory, overhead = step.lines
        work = (compute + memory,) if step.in_turn else (compute, memory)
        launch = overhead, work if step.hidden else (Line(0, 0),)
    limit = pipeline.hardware.in_flight
    trips = BatchTimes.of({name: _Sum.of(name) for name in by_resource(pipeline.costs())}, pipeline.numbers)
    trips = replace(trips, workers=_WORKERS, way=trips.way and _Sum.of("way"))
    return {
        "stages": [
            {
                "name": name,
                "resource": stages[name].RESOURCE.name,
                "busy": not stages[name].AWAITED,
                "pieces": _pairs(cost.pieces),
            }
            for name, cost in costs(inputs, count).items()
            if name != TransformationModel.NAME or crew.workers is None
        ],
        "preparing": None
        if crew.workers is None
        else {
            "cpu": float(crew.amount / crew.rate),
            "handover": float(crew.handover),
            "wait": crew.read_wait,
            "law": asdict(crew.scaling),
            "cores": crew.cores,
            "count": int(count),
        },
        "way": float(pipeline.numbers["way"] or 0.0),
        "launch": launch and {"wait": _pairs(launch[:1])[0], "work": _pairs(launch[1])},
        # Launches that count as busy, as the walkthrough's do.
        "launches": counted and _pairs([counted]),
        "prefetch": pipeline.workers.prefetch if isinstance(pipeline.workers, Workers) else 2,
        "in_flight": limit if isfinite(limit) else None,
        "round_trips": [trip.terms for _, trip in trips.round_trips()],
        "in_turn": pipeline.in_turn,
    }


_WORKERS = object()  # the number of workers, which a slider sets


@dataclass(frozen=True)
class _Sum:
    """A sum of times by name, each with its factor, and whether it is divided by the workers."""

    terms: tuple[tuple[str, float, bool], ...]

    @classmethod
    def of(cls, name: str) -> _Sum:
        """Return a time by itself."""
        return cls(((name, 1.0, False),))

    def __add__(self, other: _Sum) -> _Sum:
        return _Sum((*self.terms, *other.terms))

    def __truediv__(self, count: object) -> _Sum:
        if count is _WORKERS:
            return _Sum(tuple((name, factor, True) for name, factor, _ in self.terms))
        assert isinstance(count, int | float)
        return _Sum(tuple((name, factor / count, each) for name, factor, each in self.terms))


def _pairs(lines: Sequence[Line]) -> list[list[float]]:
    return [[float(line.fixed), float(line.per_sample)] for line in lines]


def _counts_workers(pipeline: Pipeline) -> bool:
    return isinstance(pipeline.workers, Workers) and not pipeline.alone


def run_of(pipeline: Pipeline, prepare_times: Unchecked = None) -> tuple[Trace, np.ndarray | None, int, int]:
    """A run with a full queue at its start, and when the drive was asked for each batch, if it reads ahead.

    Also how many lanes the workers have, and how many steps are played: behind these more batches follow, so
    that the workers have something to do until the end.
    """
    crew = pipeline.workers if _counts_workers(pipeline) else Workers(1)
    assert isinstance(crew, Workers)
    lanes = 1 if pipeline.in_turn else int(crew.count)
    ahead = lanes * crew.prefetch
    shown = lanes * max(4, -(-48 // lanes))
    in_turn = pipeline.in_turn or prepare_times is not None  # whose own times are played from their start
    first = settling(pipeline.solve(), ahead, in_turn)
    if prepare_times is not None:  # these are played whole: a part of them may wait longer, or less
        shown = max(1, len(prepare_times) - first - ahead)
    found = pipeline.simulate(batches=first + ahead + shown, prepare_times=prepare_times, replicas=1)
    host = pipeline.hardware.ranks.hosts - 1  # the slowest, if one is
    trace, asked = found.trace(rank=host), None
    if found.reads.any() and trace.read_start is None:
        # The storage reads ahead of the workers: it is asked for a batch when one before that is received.
        asked = np.concatenate((np.zeros(ahead), trace.received))[: len(trace)]
        if pipeline.in_turn or pipeline.alone:
            asked = np.sort(trace.prepare_start)
        ends = np.zeros(len(trace))
        for batch, wanted in enumerate(asked):
            ends[batch] = max(wanted, ends[batch - 1]) + found.reads[batch, host]
        asked, ends = asked[trace.batch], ends[trace.batch]
        trace = replace(trace, read_start=ends - found.reads[trace.batch, host], read_done=ends)
    later = trace.after(first)
    return later, None if asked is None else asked[first:] - trace.step_end[first - 1], lanes, shown


def settling(step: Step, ahead: int, in_turn: bool) -> int:
    """Count the batches until who is faster than the step has done what all workers ask for at the start."""
    times = (step.resource_times.get(name) for name in (STORAGE.name, CPU.name))
    shares = [float(time / step.step_time) for time in times if time is not None and time < step.step_time]
    full = 0 if in_turn or not shares else ceil(ahead / (1 - max(shares)) - 1e-9)
    return max(2 * ahead, min(full, MAX_SETTLING))
