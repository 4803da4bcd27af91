"""Each item is looked up in a table without an index. --fixed: an index.

Symptom: the database is small, and each query takes milliseconds.
Asked: NVIDIA/Megatron-Energon#161, nmichlo/disent#49
Cause: SQLite goes over all rows for a key that no index holds.
Right: query
"""

import sqlite3
import sys
import tempfile
import time

import numpy as np
import torch

path = tempfile.NamedTemporaryFile(suffix=".db").name


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.database = None

    def __len__(self):
        return 800

    def __getitem__(self, index):
        if self.database is None:
            self.database = sqlite3.connect(path)
        found = self.database.execute("select content from items where name = ?", (f"item {index}",))  # fault
        return torch.from_numpy(np.frombuffer(found.fetchone()[0], np.float32).copy())


if __name__ == "__main__":
    with sqlite3.connect(path) as database:
        database.execute("create table items (name text, content blob)")
        content = np.ones(64, np.float32).tobytes()
        database.executemany(
            "insert into items values (?, ?)", ((f"item {i}", content) for i in range(30_000))
        )
        if "--fixed" in sys.argv:
            database.execute("create index by_name on items (name)")
    loader = torch.utils.data.DataLoader(Rows(), 16, shuffle=True, num_workers=2)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
