"""The errors of the grader: each states the rule, what came, and what to do."""


class GraderError(Exception):
    """Base of every error that the grader raises on purpose."""


class InputError(GraderError, ValueError):
    """A file, an option or a setting that cannot be meant."""


class NotFoundError(GraderError, LookupError):
    """What was asked for is not there, or not yet."""


class UnavailableError(GraderError, RuntimeError):
    """What was asked for cannot be done here, or not now."""
