"""Pages that people read of a graded class: statistics, similar answers, and feedback."""
