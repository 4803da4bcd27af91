"""Four workers hand over tiny batches of data in memory. --fixed: no workers.

Symptom: with workers an epoch takes longer than without.
Asked: Lightning-AI/pytorch-lightning#17410, pytorch/pytorch#12831
Cause: to hand a batch over takes longer than to make it.
Right: workers
"""

import sys
import time

import torch

if __name__ == "__main__":
    torch.set_num_threads(1)
    data = torch.utils.data.TensorDataset(torch.ones(12_000, 8), torch.arange(12_000))
    model = torch.nn.Linear(8, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(data, 4, shuffle=True, num_workers=0 if "--fixed" in sys.argv else 4)
    start = time.perf_counter()
    count = 0
    for features, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(features), labels % 10).backward()
        optimizer.step()  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
