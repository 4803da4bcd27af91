"""The commands of `starvelab`."""
