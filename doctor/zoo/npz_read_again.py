"""An array of an npz file is read for each item. --fixed: the array is taken out of the file once.

Symptom: an npz file is slow although it was opened once.
Asked: openai/baselines#752, numpy/numpy#26499
Cause: np.load of an npz file reads nothing: `file["images"]` unpacks the whole array, each time.
Right: unpack
"""

import sys
import tempfile
import time

import numpy as np
import torch


class Demonstrations(torch.utils.data.Dataset):
    def __init__(self, path):
        self.arrays = np.load(path)
        if "--fixed" in sys.argv:
            self.arrays = {name: self.arrays[name] for name in self.arrays.files}

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        observation = self.arrays["observations"][index]  # fault
        action = self.arrays["actions"][index]
        return torch.from_numpy(observation), torch.tensor(action)


if __name__ == "__main__":
    path = tempfile.NamedTemporaryFile(suffix=".npz").name
    np.savez_compressed(path, observations=np.ones((1000, 500), np.float32), actions=np.arange(1000))
    loader = torch.utils.data.DataLoader(Demonstrations(path), 16, shuffle=True, num_workers=0)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
