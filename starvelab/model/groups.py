"""The five groups of the catalogue. A type checker reads ``groups.pyi``, which ``make build`` derives."""

from .catalogue import Group

Hardware = Group("Hardware")
Storage = Group("Storage")
Links = Group("Links")
Models = Group("Models")
Datasets = Group("Datasets")
