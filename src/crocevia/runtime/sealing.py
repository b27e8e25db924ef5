"""What leaves the server sealed and comes back: read by nobody else, and believed only if it is ours and its owner's.

The keys are `keys/seal_<ulid>.key`. The newest seals, every one opens: a new key may be laid beside the old one at any
time, and removing a file ends what it sealed.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from crocevia.core.ids import new_id
from crocevia.storage.home import Home, write_secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

_SUFFIX: Final = ".key"
_NONCE: Final = 12


class Sealer:
    """Seals with the home's newest key; follows the folder they are in."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._keys: dict[str, ChaCha20Poly1305] = {}

    def seal(self, data: bytes, owner: str) -> str:
        """owner: whoever may bring it back. Raises OSError if the first key cannot be made."""
        kid = max(self._names(), default="") or self._make()
        nonce = secrets.token_bytes(_NONCE)
        sealed = self._key(kid).encrypt(nonce, data, _bound(kid, owner))
        return f"{kid}.{base64.urlsafe_b64encode(nonce + sealed).decode()}"

    def open(self, text: str, owner: str) -> bytes | None:
        """None for what was not sealed here, or for somebody else, or with a key that is gone."""
        from cryptography.exceptions import InvalidTag

        kid, _, spelled = text.partition(".")
        try:
            data = base64.b64decode(spelled, altchars=b"-_", validate=True)
            if kid not in self._names():
                return None
            return self._key(kid).decrypt(data[:_NONCE], data[_NONCE:], _bound(kid, owner))
        except (binascii.Error, ValueError, InvalidTag, OSError):
            return None

    def _names(self) -> list[str]:
        return [path.stem for path in self._home.keys.glob(f"seal_*{_SUFFIX}")]

    def _make(self) -> str:
        kid = new_id("seal")
        write_secret(self._path(kid), secrets.token_bytes(32))
        return kid

    def _key(self, kid: str) -> ChaCha20Poly1305:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        if kid not in self._keys:
            self._keys[kid] = ChaCha20Poly1305(self._path(kid).read_bytes())
        return self._keys[kid]

    def _path(self, kid: str) -> Path:
        return self._home.keys / f"{kid}{_SUFFIX}"


def _bound(kid: str, owner: str) -> bytes:
    return f"{kid}\n{owner}".encode()
