"""Signatures of instructors: made while grading, and checked by anybody.

The key is of Ed25519. Who has the private part can sign; the public part stands in the report, and its
fingerprint is what an instructor makes known.
"""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError


@dataclass(frozen=True)
class Signature:
    """What stands in a signed report.

    Attributes
    ----------
    key, value : str
        The public key and the signature, in base 64.
    """

    key: str
    value: str

    @property
    def fingerprint(self) -> str:
        """What an instructor makes known of the key, in groups of four."""
        digest = hashlib.sha256(base64.b64decode(self.key)).hexdigest()[:20]
        return " ".join(digest[start : start + 4] for start in range(0, 20, 4))

    def fits(self, content: bytes) -> bool:
        """Whether the owner of the key signed exactly this."""
        # Loaded here: reports that nobody signed need it not, and learners may not have it.
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            public = Ed25519PublicKey.from_public_bytes(base64.b64decode(self.key))
            public.verify(base64.b64decode(self.value), content)
        except (InvalidSignature, ValueError):
            return False
        return True


def sign(content: bytes, private: bytes) -> Signature:
    """Sign it with the key from `load_key`."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(private)
    public = key.public_key().public_bytes_raw()
    return Signature(base64.b64encode(public).decode(), base64.b64encode(key.sign(content)).decode())


def load_key(path: Path) -> bytes:
    """The private key in a file, which is made where there is none, for its owner only.

    Raises
    ------
    InputError
        If the file holds no such key.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    if not path.exists():
        made = Ed25519PrivateKey.generate()
        text = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(text)
        return made.private_bytes_raw()
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            f"A report is signed with a private Ed25519 key in PEM, and {path} holds none. "
            "Name a file that does not exist yet, and the key is made."
        )
    return key.private_bytes_raw()
