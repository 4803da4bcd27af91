"""A training job on text that is tokenized on the fly. `--fault` plants one fault."""

import argparse
import re
import time
from collections import Counter
from itertools import pairwise

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

FAULTS = ("no workers", "heavy tokenizer", "slow collate", "tiny prefetch")
BATCH_SIZE, STEP, WORDS = 32, 0.030, 900
WORD = re.compile(r"\w+|[^\w\s]")

parser = argparse.ArgumentParser()
parser.add_argument("--fault", choices=FAULTS)
parser.add_argument("--workers", type=int)
parser.add_argument("--batches", type=int, default=80)


class Texts(Dataset):
    """Lines of a corpus, as numbers of tokens."""

    def __init__(self, count, fault):
        self.count, self.fault, self.vocabulary = count, fault, {}
        words = [f"{chr(97 + i % 26)}{i % 977:o}ly" for i in range(WORDS)]
        self.line = " ".join(words) + "."

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        line = self.line
        if self.fault == "tiny prefetch" and index % (16 * BATCH_SIZE) < BATCH_SIZE:
            line = line * 6  # a batch of long documents now and then
        pieces = WORD.findall(line.lower())
        if self.fault == "heavy tokenizer":
            pieces = [piece for word in pieces for piece in merged(word)]
        numbers = [hash(piece) % 50_000 for piece in pieces][:WORDS]
        return torch.tensor(numbers, dtype=torch.int32)


def merged(word):
    """The pieces of a word, of which the most frequent pair becomes one."""
    pieces = list(word)
    pairs = Counter(pairwise(pieces))
    if not pairs:
        return pieces
    first, second = pairs.most_common(1)[0][0]
    return "\0".join(pieces).replace(f"{first}\0{second}", first + second).split("\0")


def padded(rows):
    """The rows of a batch, all as long as the longest."""
    return pad_sequence(rows, batch_first=True)


def padded_in_python(rows):
    """The same, number by number."""
    longest = max(len(row) for row in rows)
    numbers = [[int(value) for value in row] + [0] * (longest - len(row)) for row in rows]
    return torch.tensor(numbers, dtype=torch.int32)


if __name__ == "__main__":
    asked = parser.parse_args()
    torch.set_num_threads(1)
    workers = asked.workers
    if workers is None:
        workers = 0 if asked.fault == "no workers" else 2
    queue = {} if not workers else {"prefetch_factor": 1 if asked.fault == "tiny prefetch" else 8}
    loader = DataLoader(
        Texts(BATCH_SIZE * asked.batches, asked.fault),
        BATCH_SIZE,
        num_workers=workers,
        collate_fn=padded_in_python if asked.fault == "slow collate" else padded,
        **queue,
    )
    for number, _ in enumerate(loader):
        if number == 4:
            start = time.perf_counter()
        time.sleep(STEP)
    print("samples/s", (number - 3) * BATCH_SIZE / (time.perf_counter() - start))
