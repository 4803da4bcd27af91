"""One submission graded by nbgrader: execution, scores, restored structure, feedback, and the release."""
