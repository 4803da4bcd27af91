"""Compiled wheels from Pyodide's own server, each compared with the sum in Pyodide's lock file."""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError

TIMEOUT = 60.0  # seconds without an answer


class FetchError(Exception):
    """A wheel cannot be had, or is not the one that the lock file means."""


def fetch(package: Mapping[str, str], server: str, folder: Path) -> Path:
    """The wheel of a package in a folder, from a server unless it is there.

    Parameters
    ----------
    package : mapping
        Its entry in the lock file, with `file_name` and `sha256`.
    server : str
        An address with a slash at its end.
    folder : Path

    Raises
    ------
    FetchError
        If the server does not give the wheel, or its sum is another one. Then it is not kept.
    """
    path, address = folder / package["file_name"], server + package["file_name"]
    if path.exists():
        content, origin = path.read_bytes(), str(path)
    else:
        try:
            with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
                content, origin = answer.read(), address
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError):
                error.close()
            raise FetchError(
                f"The lab in a browser needs {address}, and it could not be fetched: {error}. "
                f"Check the network, or put the file into {folder}."
            ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != package["sha256"]:
        raise FetchError(
            f"A wheel must have the sum that Pyodide's lock file gives, {package['sha256']}, and {origin} "
            f"has {found}. Do not use that file: delete it where it was stored, and ask again later."
        )
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path
