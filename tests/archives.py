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
