"""A training job while it runs: its loops, its processes, its memory, its ranks."""
