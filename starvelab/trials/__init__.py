"""One's own training job, run again with other settings of its loader: `starvelab doctor --try`."""
