"""A job run again for some seconds, with other settings of its loader."""
