"""Traces of PyTorch's profiler, in the words of `watch`."""
