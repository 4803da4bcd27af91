"""The model that a learner builds: functions whose checks have passed, as text in ``my_model.py``.

The file stands beside the notebook, travels with a submission, and is its owner's to read, edit and run. Only
the kernel of its owner runs it: while grading, and where a function is missing or fails, the lab's takes its
place. What the lab's return comes from the package, so that no model answer stands here.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from .. import runtime
from ..errors import InputError
from ..host import whole_file
from ..model.groups import Hardware, Models
from ..model.parts import Accelerator, Samples, Workers
from ..model.stages import SingleNodeModel
from ..pipeline import Pipeline
from ..units import Quantity, checked_quantity
from .notices import Sentences, notice

FILE = "my_model.py"
MAX_BYTES = 100_000
HEADER = """\
# Your model: each function here has passed its check in a notebook. Read it, change it, and run it:
#     python -c "from my_model import step_time; print(step_time(256).to('ms'))"
# A function that passes again takes the place of its older text. Nothing else in this file is changed.
# While an answer that calls one of these is graded, the lab's own functions replace this file.
from math import ceil, floor

from starvelab import Q_
"""
_MARK = "# --- {} ---"
# As many images a second, or bytes, as nothing here can use.
_UNLIMITED = "1e15 img/s"
# A batch that starves a GPU is looked for among so many.
_MAX_BATCH = 1 << 20

# Any: a quantity or a number goes in, and one of these comes out.
Function: TypeAlias = Callable[..., Any]


# --- what the package says in their place -----------------------------------------------------------------


def _step_time(batch_size: int) -> Quantity:
    step = SingleNodeModel().solve(
        model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=batch_size, precision="fp16"
    )
    return step.latency


def _data_demand(throughput: Quantity, sample_size: Quantity) -> Quantity:
    pipeline = Pipeline(
        dataset=Samples(size=sample_size), workers=_UNLIMITED, storage="1 GB/s", batch_size=1,
        hardware=checked_quantity(throughput, "img/s", "throughput"),
    )  # fmt: skip
    demand = pipeline.solve().demand_at_ceiling
    assert isinstance(demand, Quantity)  # there is a drive
    return demand


def _cpu_time(batch_size: int, sample_size: Quantity, workers: int, worker_rate: Quantity) -> Quantity:
    pipeline = Pipeline(
        dataset=Samples(size=sample_size), workers=Workers(workers, rate=worker_rate), hardware=_UNLIMITED,
        batch_size=batch_size,
    )  # fmt: skip
    return pipeline.solve().resource_times["CPU"]


def _utilization(cpu_time: Quantity, gpu_time: Quantity) -> float:
    step = Accelerator(rate=checked_quantity(gpu_time, "ms", "gpu_time"))
    pipeline = Pipeline(dataset=Samples(cpu_time=cpu_time), workers=1, hardware=step, batch_size=1)
    return float(pipeline.solve().utilization)


def _starved_from(cpu_per_image: Quantity, gpu_per_image: Quantity, gpu_overhead: Quantity) -> int:
    batches, starved = np.arange(1, 65), np.zeros(1, dtype=bool)
    slope = checked_quantity(gpu_per_image, "ms", "gpu_per_image")
    overhead = checked_quantity(gpu_overhead, "ms", "gpu_overhead", zero=True)
    while not starved.any():
        if batches[-1] > _MAX_BATCH:
            raise InputError("No batch starves this GPU. Give the workers more time for an image.")
        batches = np.arange(1, 4 * batches[-1])
        step = Accelerator(rate=slope * batches + overhead)
        pipeline = Pipeline(
            dataset=Samples(cpu_time=cpu_per_image), workers=1, hardware=step, batch_size=batches
        )
        starved = np.asarray(pipeline.solve().bottleneck) == "CPU"
    return int(batches[starved.argmax()])


def _how_many_workers(
    batch_size: int, sample_size: Quantity, worker_rate: Quantity, gpu_step: Quantity
) -> int:
    pipeline = Pipeline(
        dataset=Samples(size=sample_size), workers=Workers(1, rate=worker_rate), batch_size=batch_size,
        hardware=checked_quantity(gpu_step, "ms", "gpu_step"),
    )  # fmt: skip
    needed = pipeline.workers_needed().workers
    if needed is None:
        raise InputError("No number of workers feeds this GPU. Check the sizes and the rates.")
    return needed


@dataclass(frozen=True)
class Part:
    """One function of the model: where it is written, and what the package says in its place."""

    notebook: str
    lab: Function


PARTS: Mapping[str, Part] = {
    "step_time": Part("notebook 1", _step_time),
    "data_demand": Part("notebook 2", _data_demand),
    "cpu_time": Part("notebook 3", _cpu_time),
    "utilization": Part("notebook 3", _utilization),
    "starved_from": Part("notebook 4", _starved_from),
    "how_many_workers": Part("notebook 5", _how_many_workers),
}


# --- the file ---------------------------------------------------------------------------------------------


def save_part(name: str, source: str, folder: Path | None = None) -> bool:
    """Put the text of a function into the file, in place of an older one; True if the file has changed."""
    path = (folder or Path.cwd()) / FILE
    text = read_text(path.parent) or HEADER
    mark = _MARK.format(name)
    section = f"{mark}\n{source.strip()}\n"
    older = re.compile(rf"^{re.escape(mark)}\n.*?(?=^# --- |\Z)", re.DOTALL | re.MULTILINE)
    if older.search(text):
        changed = older.sub(lambda match: section + "\n\n" * (match.end() < len(text)), text, count=1)
    else:
        changed = f"{text.rstrip()}\n\n\n{section}"
    if changed == text and path.is_file():
        return False
    with whole_file(path) as part:
        part.write_text(changed, encoding="utf-8")
    return True


def read_text(folder: Path | None = None) -> str:
    """Return the text of the file; empty where there is none."""
    path = (folder or Path.cwd()) / FILE
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(MAX_BYTES).decode("utf-8", "replace")


# --- the model --------------------------------------------------------------------------------------------


class MyModel(Sentences):
    """The learner's functions as attributes, and the lab's where one is missing or fails.

    Parameters
    ----------
    text : str
        That of ``my_model.py``; empty for the lab's functions alone.
    """

    def __init__(self, text: str = "") -> None:
        self._text = text
        # By name: why the lab's function takes the place of the learner's.
        self.replaced: dict[str, str] = {}

    @cached_property
    def _names(self) -> dict[str, Any]:
        """What the text defines; nothing where it does not run, which is then said of each part."""
        names: dict[str, Any] = {"__name__": "my_model"}
        if not self._text:
            return names
        try:
            exec(compile(ast.parse(self._text, FILE), FILE, "exec"), names)
        except (Exception, SystemExit) as error:
            problem = f"Your {FILE} does not run ({type(error).__name__}: {error})"
            self.replaced |= dict.fromkeys(PARTS, problem)
            return {}
        return names

    def is_own(self, name: str) -> bool:
        """True if the learner has written this function, and it has not failed."""
        return callable(self._names.get(name)) and name not in self.replaced

    def call(self, name: str, *args: Any) -> Any:
        """Call a function of the model; where the learner's is missing or fails, the lab's answers."""
        if self.is_own(name):
            try:
                return self._names[name](*args)
            except Exception as error:
                self.replaced[name] = f"Your {name} ends in {type(error).__name__}: {error}"
        return PARTS[name].lab(*args)

    def __getattr__(self, name: str) -> Function:
        if name not in PARTS:
            raise AttributeError(f"The model has {', '.join(PARTS)}, got {name}. Use one of these.")
        return lambda *args: self.call(name, *args)

    def __dir__(self) -> list[str]:
        return list(PARTS)

    @property
    def lines(self) -> int:
        """Count the lines of the learner's functions."""
        tree = ast.parse(self._text) if self._names and self._text else ast.Module([], [])
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in PARTS]
        return sum((node.end_lineno or 0) - node.lineno + 1 for node in functions)

    def sentences(self) -> list[str]:
        """Say which functions are the learner's, and where the lab's takes the place of one."""
        own = [name for name in PARTS if self.is_own(name)]
        absent = [name for name in PARTS if name not in own and name not in self.replaced]
        found = [f"From your {FILE}: {', '.join(own)}."] if own else []
        # A file that does not run is the reason for all of them.
        found += [f"{reason}. The lab's is used instead." for reason in dict.fromkeys(self.replaced.values())]
        if absent:
            places = ", ".join(f"{name} ({PARTS[name].notebook})" for name in absent)
            found.append(f"Not in {FILE} yet, so the lab's functions are used: {places}.")
        return found

    def _repr_html_(self) -> str:
        return notice(" ".join(self.sentences()))


def my_model() -> MyModel:
    """Return the model that you have built: the functions of ``my_model.py`` beside the notebook.

    If a function is missing or fails, the lab's is used instead. While a notebook is graded, all are the
    lab's.

    Returns
    -------
    MyModel
        With ``step_time``, ``data_demand``, ``cpu_time``, ``utilization``, ``starved_from`` and
        ``how_many_workers``. It says which are yours when it ends a cell.
    """
    return MyModel("" if runtime.current().is_grading else read_text())


def stand_in_for_the_file() -> None:
    """Let ``import my_model`` find the lab's functions where a notebook is graded: the file is not there."""
    module = ModuleType(Path(FILE).stem)
    vars(module).update({name: part.lab for name, part in PARTS.items()})
    sys.modules.setdefault(module.__name__, module)
