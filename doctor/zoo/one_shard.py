"""Four workers share the shards of a data set, and there is one. --fixed: eight shards.

Symptom: more workers change nothing, and `top` shows one of them at work.
Asked: webdataset/webdataset#339, #392, #152, #72
Cause: WebDataset and others divide whole shards among workers, so three of four workers have none.
Right: shards
"""

import sys
import tempfile
import time
from pathlib import Path

import torch

SHARDS, SAMPLES = (8 if "--fixed" in sys.argv else 1), 1024


class Shards(torch.utils.data.IterableDataset):
    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        for path in self.paths[worker.id :: worker.num_workers]:
            with open(path, "rb") as shard:
                while sample := shard.read(4000):
                    time.sleep(0.004)  # decoding that waits, such as for a remote store  # fault
                    yield torch.frombuffer(bytearray(sample), dtype=torch.uint8)


if __name__ == "__main__":
    folder = Path(tempfile.mkdtemp())
    paths = [folder / f"{i}.bin" for i in range(SHARDS)]
    for path in paths:
        path.write_bytes(bytes(4000) * (SAMPLES // SHARDS))
    loader = torch.utils.data.DataLoader(Shards(paths), batch_size=16, num_workers=4)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.004)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
