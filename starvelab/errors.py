"""The errors of starvelab: each states the rule, what came, and what to do.

They share one base class, and each is also the built-in error a Python programmer would expect.
"""

import inspect
import platform
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class StarvelabError(Exception):
    """Base of every error that starvelab raises on purpose."""


class InputError(StarvelabError, ValueError):
    """A value that the model cannot mean: negative, not finite, of the wrong dimension, without a unit."""


class MissingValueError(StarvelabError, LookupError):
    """A catalogue entry was asked for a value that its sources do not give."""


class UnknownNameError(StarvelabError, LookupError, AttributeError):
    """A name that no catalogue entry, field or resource has."""


class MissingPackageError(StarvelabError, ImportError):
    """A package that is imported is not installed."""


class WorkerError(StarvelabError, RuntimeError):
    """A worker of a loader died, hangs, or has no room to work in."""


def check_names(names: Iterable[str], known: Collection[str], owner: str, kind: str = "field") -> None:
    """Reject a name that is none of `owner`, and say which one was meant, or which there are."""
    for name in names:
        if name not in known:
            raise unknown_name(f"{owner} has no {kind} {name!r}.", name, known)


def own_errors(call: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let a call whose arguments do not fit raise one of these errors, and say which name was meant."""

    @wraps(call)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return call(*args, **kwargs)
        except TypeError:
            check_arguments(call, args, kwargs)
            raise

    return checked


def check_arguments(call: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """Reject arguments that do not fit a call."""
    signature, owner = inspect.signature(call), call.__qualname__.removesuffix(".__init__")
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        names = [name for name in signature.parameters if name not in ("self", "pipeline")]
        if names:
            check_names(kwargs, names, f"{owner}()", "argument")
        shown = ", ".join(names)
        raise InputError(
            f"{owner}() takes {shown or 'no argument'}, but {error}. Pass each by its name."
        ) from None


def unknown_name(
    said: str, name: str, known: Iterable[str], elsewhere: Mapping[str, str] | None = None
) -> UnknownNameError:
    """The error for a name that nothing has; `elsewhere` calls what has such a name by its whole name."""
    full = {**(elsewhere or {}), **{one: one for one in known}}
    lower = {one.lower(): meant for one, meant in full.items()}
    near = get_close_matches(name.lower(), lower, n=1)
    hint = f"Did you mean {lower[near[0]]}?" if near else f"There is: {', '.join(known)}."
    return UnknownNameError(f"{said} {hint}")


def check_flag(value: object, name: str) -> None:
    """Reject what is neither True nor False."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, got {value!r:.80}. Pass one of these.")


def check_text(value: object, name: str) -> None:
    """Reject what is no text."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text, got {value!r:.80}. Pass one in quotes.")


def check_choice(value: object, choices: Collection[str], name: str) -> None:
    """Reject what is none of a few words."""
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r:.80}. Pass one of these.")


@contextmanager
def requiring(user: str, remedy: str) -> Iterator[None]:
    """Say what to do about a package that is imported meanwhile for `user`, and is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package == __package__:
            raise
        name = {"PIL": "Pillow", "jupyterlab": "JupyterLab"}.get(package, package.replace("_", "-"))
        said = f"{user} needs {name}, which is not installed. {remedy}"
        raise MissingPackageError(said, name=error.name) from None


def install_hint(extra: str) -> str:
    """Return how to install what is missing, or why it cannot be installed here."""
    if extra == "torch" and (sys.platform, platform.machine()) == ("darwin", "x86_64"):
        return (
            "For a Mac with an Intel processor there is no PyTorch after 2.2, and starvelab[torch] needs "
            "2.6: take another machine for what needs PyTorch. All exercises work without it."
        )
    # No index has the other houses of a checkout.
    beside = {"doctor": "./doctor ", "grade": "./doctor ./grader "}.get(extra, "")
    return f"Install it: pip install 'starvelab[{extra}]', or in a checkout: pip install {beside}'.[{extra}]'"
