"""Checks of a learner's answers, by the name under which a notebook imports them."""

from .lesson.checks import Credit, NotAnsweredError, WrongAnswer, check

__all__ = ["Credit", "NotAnsweredError", "WrongAnswer", "check"]
