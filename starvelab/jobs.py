"""An older script's `import starvelab.jobs` is told where that is now."""

raise ImportError(
    "What watches a training job is a package of its own now: install starvelab-doctor, and write "
    "starvelab_doctor in place of starvelab.jobs."
)
