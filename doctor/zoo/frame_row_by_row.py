"""Each item is a row of a data frame. --fixed: the columns are arrays.

Symptom: all data is in memory, and the loader is slow.
Asked: braindecode/braindecode#89
Cause: iloc makes a Series, with an index and one type for all columns, for each row.
Right: data frame
"""

import sys
import time

import numpy as np
import pandas as pd
import torch

COLUMNS = [f"feature {number}" for number in range(20)]


class Table(torch.utils.data.Dataset):
    def __init__(self, frame):
        self.frame = frame
        self.features, self.labels = frame[COLUMNS].to_numpy(np.float32), frame["label"].to_numpy()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        if "--fixed" in sys.argv:
            return torch.from_numpy(self.features[index]), int(self.labels[index])
        row = self.frame.iloc[index]
        features = row[COLUMNS].to_numpy(dtype=np.float32)  # fault
        return torch.from_numpy(features), int(row["label"])


if __name__ == "__main__":
    frame = pd.DataFrame(np.random.default_rng(0).random((12_000, 20)), columns=COLUMNS)
    frame["label"] = np.arange(len(frame)) % 10
    loader = torch.utils.data.DataLoader(Table(frame), 128, shuffle=True, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.005)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
