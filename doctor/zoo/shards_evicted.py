"""A cache holds four shards, and shuffled items lie in sixteen. --fixed: items are shuffled within shards.

Symptom: the first batches are as slow as all others: the cache never finds anything.
Asked: galilai-group/stable-datasets#54, mosaicml/streaming#658
Cause: each item that is drawn at random evicts a shard that the next one needs.
Right: dataset, parse, reopen, read, decompress
"""

import functools
import pickle
import random
import sys
import tempfile
import time
from pathlib import Path

import torch

SHARDS, ITEMS = 16, 200
folder = Path(tempfile.mkdtemp())


@functools.lru_cache(maxsize=4)
def shard_of(number):
    with open(folder / f"{number}.pickle", "rb") as file:
        return pickle.load(file)  # fault


class Sharded(torch.utils.data.Dataset):
    def __len__(self):
        return SHARDS * ITEMS

    def __getitem__(self, index):
        return torch.tensor(shard_of(index // ITEMS)[index % ITEMS])


def by_shard():
    shards = random.sample(range(SHARDS), SHARDS)
    return [shard * ITEMS + item for shard in shards for item in random.sample(range(ITEMS), ITEMS)]


if __name__ == "__main__":
    for number in range(SHARDS):
        rows = [[float(number + item + place) for place in range(256)] for item in range(ITEMS)]
        (folder / f"{number}.pickle").write_bytes(pickle.dumps(rows))
    order = by_shard() if "--fixed" in sys.argv else random.sample(range(SHARDS * ITEMS), SHARDS * ITEMS)
    loader = torch.utils.data.DataLoader(Sharded(), 16, sampler=order, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.005)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
