"""Checks of a learner's answers, by the name under which a notebook imports them."""

from .lesson.checks import NotAnsweredError, WrongAnswer, check, hint
from .lesson.credit import Credit

__all__ = ["Credit", "NotAnsweredError", "WrongAnswer", "check", "hint"]
