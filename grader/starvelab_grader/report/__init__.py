"""Pages that people read of a graded class: statistics, equal answers, and feedback."""
