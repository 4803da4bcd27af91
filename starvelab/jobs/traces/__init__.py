"""Traces that a profiler wrote: how long their training loop waits for data, and what the GPU does then."""
