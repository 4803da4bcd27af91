"""A thread between loader and loop fetches the batches. The doctor cannot tell what the loop waits.

Symptom: one worker, and a queue behind it: the loop may wait or not.
Asked: IgorSusmelj/pytorch-styleguide#5, JDAI-CV/fast-reid#456
Cause: what that thread waits is not what the loop waits. `--slow` waits for the worker, and is fed without.
Right: none
Stage: cannot tell
Also: --slow
"""

import queue
import sys
import threading
import time

import torch

SLOW = "--slow" in sys.argv


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 3200

    def __getitem__(self, index):
        time.sleep(0.004 if SLOW else 0.001)
        return torch.ones(16)


class Background(threading.Thread):
    def __init__(self, loader):
        super().__init__(daemon=True)
        self.loader, self.queue = loader, queue.Queue(4)
        self.start()

    def run(self):
        for batch in self.loader:
            self.queue.put(batch)
        self.queue.put(None)

    def __iter__(self):
        while (batch := self.queue.get()) is not None:
            yield batch


if __name__ == "__main__":
    loader = Background(torch.utils.data.DataLoader(Items(), 8, num_workers=1))
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.008 if SLOW else 0.014)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
