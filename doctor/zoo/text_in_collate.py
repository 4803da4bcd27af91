"""The collate function tokenizes text by regular expressions. --fixed: tokens are made before the training.

Symptom: the text is short, and a batch of it takes as long as a step.
Asked: huggingface/transformers#14428, AnswerDotAI/ModernBERT#236
Cause: the same texts are split again in each epoch, in Python.
Right: tokenize, collate
"""

import re
import sys
import time

import torch

PATTERN = re.compile(r"\w+|[^\w\s]")
WORDS = "the fastest accelerator starves when its input comes late, and nobody sees why".split()
TEXTS = [" ".join(WORDS[(i + j) % len(WORDS)] for j in range(400)) for i in range(6000)]
VOCABULARY = {word: number for number, word in enumerate(sorted(set(PATTERN.findall(" ".join(WORDS)))), 1)}


def tokens_of(text):
    tokens = []
    for match in PATTERN.finditer(text.lower()):
        tokens.append(VOCABULARY.get(match.group(), 0))
    return tokens


def collate(texts):
    rows = [tokens_of(text)[:300] for text in texts]  # fault
    return torch.tensor([row + [0] * (300 - len(row)) for row in rows])


if __name__ == "__main__":
    fixed = "--fixed" in sys.argv
    items = [torch.tensor(tokens_of(text)[:300]) for text in TEXTS] if fixed else TEXTS
    loader = torch.utils.data.DataLoader(
        items, 32, shuffle=True, num_workers=1, collate_fn=torch.stack if fixed else collate
    )
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.002)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
