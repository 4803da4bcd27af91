"""A class graded: who submitted, the worker pool, the records, and the gradebook."""
