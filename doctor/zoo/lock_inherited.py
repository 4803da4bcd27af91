"""Workers are forked while a thread holds a lock, and wait for it forever. --fixed: the thread has ended.

Symptom: training hangs before its first batch, with no error and idle cores.
Asked: pytorch/pytorch#1355, #75147, huggingface/tokenizers#258, ultralytics/ultralytics#26085
Cause: a forked worker gets the lock as it was, taken, and has no thread that would release it.
Right: stuck
"""

import sys
import threading
import time

import torch

LOCK = threading.Lock()


class Decoded(torch.utils.data.Dataset):
    def __len__(self):
        return 800

    def __getitem__(self, index):
        with LOCK:  # such as that of a logger, a tokenizer or a decoder  # fault
            return torch.ones(64)


def write_log():
    with LOCK:
        time.sleep(1.0)


if __name__ == "__main__":
    thread = threading.Thread(target=write_log)
    thread.start()
    if "--fixed" in sys.argv:
        thread.join()
    loader = torch.utils.data.DataLoader(
        Decoded(), 16, num_workers=2, multiprocessing_context="fork", timeout=6
    )
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
