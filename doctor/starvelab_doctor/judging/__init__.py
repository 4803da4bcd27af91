"""What would help a job, and by how much."""
