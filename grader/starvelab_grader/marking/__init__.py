"""Essays marked by a person, on one page for each essay."""
