"""Run a script under PyTorch's profiler, and print what takes most of its time, as the profiler names it."""

import contextlib
import io
import runpy
import sys

import torch

script, *arguments = sys.argv[1:]
sys.argv = [script, *arguments]
activities = [torch.profiler.ProfilerActivity.CPU]
silent = contextlib.redirect_stdout(io.StringIO())
with torch.profiler.profile(activities=activities) as profile, silent, contextlib.suppress(SystemExit):
    runpy.run_path(script, run_name="__main__")
rows = sorted(profile.key_averages(), key=lambda row: -row.self_cpu_time_total)
whole = sum(row.self_cpu_time_total for row in rows)
print("; ".join(f"{row.key} {row.self_cpu_time_total / max(whole, 1):.0%}" for row in rows[:2]))
