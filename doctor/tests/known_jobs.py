"""Findings of jobs whose times are known, as `watch` makes them, and the table of them in `cases.toml`."""

import tomllib
from dataclasses import replace
from pathlib import Path

from starvelab.units import Q_
from starvelab_doctor import BatchContents
from starvelab_doctor.contents import Items
from starvelab_doctor.finding.lines import JobLines, LineShare
from starvelab_doctor.finding.stages import StageSamples
from starvelab_doctor.watching.recorder import Recorder

TABLE = tomllib.loads(Path(__file__).with_name("cases.toml").read_text(encoding="utf-8"))


class KnownStages:
    """A probe that found these times [s]."""

    def __init__(self, workers, *, sampler=0.0, **seconds):
        self.workers, self.samples = workers, StageSamples()
        for _ in range(40):
            self.samples.add(**seconds)
            self.samples.indices.append(sampler)

    def costs(self):
        return self.samples.costs(self.workers)


def found(*, workers, wait, step, cpu=None, batches=40, batch_size=None, ready=None, first=(), **stages):
    """What `watch` says of a job whose batches all take the same times [s], and a probe of its stages."""
    probe = KnownStages(workers, **stages) if stages else None
    recorder = Recorder(batch_size=batch_size, workers=workers, probe=probe)
    recorder.replay(next(iter(first), None), [wait] * batches, [step] * batches)
    for one in first[1:]:
        recorder.replay(one, [], [])
    if ready is not None:
        recorder.asked, recorder.ready = 1, ready
    if cpu is not None:
        recorder.use.add(cpu, 1.0)
    return recorder.finding()


# Receiving takes nothing here.
AT_ONCE = {"items": 0.1, "collate": 0.0, "unpacking": 0.0}
# One worker, and a step of 10 ms of the 100 from batch to batch.
ONE = {"workers": 1, "wait": 0.09, "step": 0.01}
TIMES = {"wait", "step", "items", "collate", "packing", "unpacking", "sampler"}


def job_of(case):
    """Return the finding of a case of the table, whose times are milliseconds."""
    job = case["job"]
    finding = found(**{name: value / 1e3 if name in TIMES else value for name, value in job.items()})
    stages, more = finding.loader.stages, dict(case.get("found", {}))
    if "items" in more:
        stages = replace(stages, items=Items(**more.pop("items")))
    if "prepared" in more:
        common, late, every = more.pop("prepared")
        times = (late if number % every == every - 1 else common for number in range(260))
        stages = replace(stages, prepared=tuple(map(float, times)))
    if stages is not None:
        more["stages"] = replace(stages, certain=more.pop("certain", stages.certain))
    if "contents" in more:
        objects, size, *others = more["contents"]
        more["contents"] = BatchContents(objects, Q_(size), *others)
    if "first_waits" in more:
        more["first_waits"] = tuple(Q_(wait, "ms") for wait in more["first_waits"])
    if "lines" in more:
        lines = {"samples": 100, "loop_samples": 100, **more["lines"]}
        for name in lines.keys() & {"preparing", "loop", "first", "between", "stuck"}:
            lines[name] = tuple(LineShare(*line) for line in lines[name])
        more["lines"] = JobLines(**lines)
    return finding.replace(**more)
