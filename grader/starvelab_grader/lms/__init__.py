"""Learning platforms: downloads sorted, rosters read, grades written into the platform's own tables."""
