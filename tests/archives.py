"""Archives in memory, for whatever reads or is handed one."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any


def zipped(files: Mapping[Any, str | bytes], **more: Any) -> bytes:
    """A .zip with these files, by their names or what `zipfile` knows of them."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", **more) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def zipped_on_macos(files: Mapping[Any, str | bytes]) -> bytes:
    """The same as Finder makes it: with names in UTF-8, of which it does not say that they are."""
    made = bytearray(zipped(files))
    for mark, flags in ((b"PK\3\4", 7), (b"PK\1\2", 9)):
        at = -1
        while (at := made.find(mark, at + 1)) >= 0:
            made[at + flags] &= ~8
    return bytes(made)
