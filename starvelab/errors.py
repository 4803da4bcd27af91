"""The errors of starvelab: each states the rule, what came, and what to do.

They share one base class, and each is also the built-in error a Python programmer would expect.
"""


class StarvelabError(Exception):
    """Base of every error that starvelab raises on purpose."""


class InputError(StarvelabError, ValueError):
    """A value that the model cannot mean: negative, not finite, of the wrong dimension, without a unit."""


class MissingFigureError(StarvelabError, LookupError):
    """A catalogue entry was asked for a figure that its sources do not give."""


class UnknownNameError(StarvelabError, LookupError, AttributeError):
    """A name that no catalogue entry, field or resource has."""


class WorkerError(StarvelabError, RuntimeError):
    """A worker of a loader died, hangs, or has no room to work in."""
