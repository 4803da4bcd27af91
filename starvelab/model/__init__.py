"""The model: what an input pipeline costs a training step, by stages on resources, and what would help."""
