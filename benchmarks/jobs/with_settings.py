"""Run a script whose loaders get other settings: with_settings.py '{"num_workers": 2}' train.py ..."""

import functools
import json
import runpy
import sys

from torch.utils.data import DataLoader

if __name__ == "__main__":
    settings, *sys.argv = json.loads(sys.argv[1]), *sys.argv[2:]
    if settings.get("num_workers") == 0:
        settings |= {"prefetch_factor": None, "persistent_workers": False}
    original = DataLoader.__init__

    @functools.wraps(original)
    def make(loader, *arguments, **given):
        original(loader, *arguments, **given | settings)

    DataLoader.__init__ = make
    runpy.run_path(sys.argv[0], run_name="__main__")
