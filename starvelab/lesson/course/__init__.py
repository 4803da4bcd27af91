"""What single notebooks of the course are about."""
