"""All of the validation data is gone over after each step. --fixed: after every fiftieth.

Symptom: the training crawls, and its own loader is quick.
Asked: rs-station/careless#77, ramanathanlab/genslm#10
Cause: the validation takes ten times as long as a step.
Right: none
"""

import sys
import time

import torch

if __name__ == "__main__":
    data = torch.utils.data.TensorDataset(torch.ones(3200, 16))
    loader = torch.utils.data.DataLoader(data, 16)
    held_out = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(160, 16)), 16)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.005)  # the training step
        count += 1
        if "--fixed" not in sys.argv or count % 50 == 0:
            for _ in held_out:  # fault
                time.sleep(0.004)
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
