"""Checks of a learner's answers, by the name under which a notebook imports them."""

from .lesson.checks import Credit, NotAnsweredError, WrongAnswer, check, one_of

__all__ = ["Credit", "NotAnsweredError", "WrongAnswer", "check", "one_of"]
