"""A training job as it is: one line around its loader, or a callback, says how long it waits for data."""
