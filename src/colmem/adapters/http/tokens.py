"""Bearer tokens and the scope each carries; only digests of them are kept in memory.

A token is looked up by comparing its digest with every known one in constant time. Neither token
nor digest ever enters a message or a log.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from colmem.contract import ROOT, ColmemError, ConfigError, Namespace, Reach, Unauthorized, decode
from colmem.tools import ToolScope

TOKEN_CHARS_MIN: Final = 16

_DIGEST = re.compile("[0-9a-f]{64}")


class Token(NamedTuple):
    """A token by the SHA-256 of its text, with the scope of whoever shows it."""

    name: str
    digest: bytes
    scope: ToolScope

    @classmethod
    def of(cls, text: str, scope: ToolScope | None = None, name: str = "default") -> Token:
        """Take a token's text.

        Raises
        ------
        ConfigError
            When it is too short to be safe, or not printable ASCII.
        """
        if len(text) < TOKEN_CHARS_MIN or not text.isascii() or not text.isprintable():
            raise ConfigError(
                f"token `{name}` must have {TOKEN_CHARS_MIN} or more printable ASCII characters; "
                'make one with `python -c "import secrets; print(secrets.token_urlsafe(32))"`'
            )
        return cls(name, sha256(text.encode()).digest(), scope or ToolScope())


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    # A line of the token file. A reach of null is everything; absent, it is that of the place.
    name: str
    token: str | None = None
    sha256: str | None = None
    place: Namespace = ROOT
    reach: Reach | UnsetType | None = UNSET
    writes: bool = True

    def scope(self) -> ToolScope:
        reach = self.reach
        if reach is UNSET:
            reach = None if self.place.is_root else Reach.of(self.place)
        assert not isinstance(reach, UnsetType)
        return ToolScope(place=self.place, reach=reach, writes=self.writes)

    def as_token(self) -> Token:
        if (self.token is None) == (self.sha256 is None):
            raise ConfigError(f"token `{self.name}` needs exactly one of `token` and `sha256`")
        if self.token is not None:
            return Token.of(self.token, self.scope(), self.name)
        if _DIGEST.fullmatch(self.sha256 or "") is None:
            raise ConfigError(f"sha256 of token `{self.name}` must be 64 lowercase hex digits")
        return Token(self.name, bytes.fromhex(self.sha256 or ""), self.scope())


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read a token file: a JSON array of ``{name, token | sha256, place?, reach?, writes?}``.

    Raises
    ------
    ConfigError
        When it cannot be read, an entry is wrong, or two are the same.
    """
    try:
        entries = decode(path.read_bytes(), list[_Entry])
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ColmemError as error:
        raise ConfigError(f"{path}: {error.message}") from error
    tokens = tuple(entry.as_token() for entry in entries)
    if not tokens:
        raise ConfigError(f"{path} holds no token")
    if len({token.digest for token in tokens}) < len(tokens):
        raise ConfigError(f"{path} holds the same token twice; give each client its own")
    return tokens


def authenticate(header: str | None, tokens: Iterable[Token]) -> Token:
    """The token an Authorization header shows.

    Raises
    ------
    Unauthorized
        When it shows none, or an unknown one.
    """
    if not header:
        raise Unauthorized("a bearer token is needed: send `Authorization: Bearer <token>`")
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthorized("only bearer tokens are taken: send `Authorization: Bearer <token>`")
    shown = sha256(text.strip().encode("latin-1", "replace")).digest()
    found: Token | None = None
    for token in tokens:  # all of them, so that time tells nothing
        if hmac.compare_digest(shown, token.digest):
            found = token
    if found is None:
        raise Unauthorized("the bearer token is not known")
    return found
