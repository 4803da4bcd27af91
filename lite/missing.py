"""Says in one sentence that a package could not be fetched; `start.mjs` runs this where one is missing."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


class NotFetchedError(ModuleNotFoundError):
    """A package that a module of the lab imports was not fetched."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class NotFetched(MetaPathFinder):
    """Stands behind all other finders: it is asked for what none of them has.

    Parameters
    ----------
    addresses : dict of str to str
        Where each module would have come from.
    """

    def __init__(self, addresses: dict[str, str]) -> None:
        self.addresses = addresses

    def find_spec(self, name: str, *_: object) -> None:
        """Raise what says why a module is not there."""
        if name in self.addresses:
            raise NotFetchedError(
                f"The lab needs {name}, and this page could not fetch it from {self.addresses[name]}: the "
                "server may be blocked or the file missing, so allow that server or use another network, and "
                "then reload the page.",
                name=name,
            )


def explain(addresses: dict[str, str]) -> None:
    """Let the import of a module that was not fetched say so."""
    sys.meta_path.append(NotFetched(addresses))
