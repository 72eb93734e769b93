"""Who sends a request and what it may touch: the engine as the request's scope sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from colmem.adapters.http.confine import ConfinedEngine
from colmem.adapters.http.errors import Forbidden
from colmem.adapters.http.tokens import Token, authenticate
from colmem.contract import MemoryEngine, Unsupported
from colmem.tools import ToolScope

EVERYTHING: Final = ToolScope()


class Access:
    """An engine under a scope. ``engine`` is confined to it, ``whole`` is not."""

    def __init__(self, whole: Any, scope: ToolScope) -> None:
        self.whole = whole
        self.scope = scope
        self.confined = None if scope == EVERYTHING else ConfinedEngine(whole, scope)

    @property
    def engine(self) -> MemoryEngine:
        """The engine for the contract's operations."""
        engine: MemoryEngine = self.whole if self.confined is None else self.confined
        return engine

    def need_writes(self, what: str) -> None:
        """Refuse a scope that may not write (Forbidden)."""
        if not self.scope.writes:
            raise Forbidden(f"{what} is not offered: this token is read-only")

    def need_all(self, what: str) -> None:
        """Refuse a scope that does not see the whole store (Forbidden)."""
        if self.scope.reach is not None or not self.scope.place.is_root:
            raise Forbidden(f"{what} concerns the whole store; this token is confined to a part")

    def method(self, name: str) -> Any:
        """A method of the engine that the contract does not have.

        Raises
        ------
        Unsupported
            When the engine lacks it.
        """
        method = getattr(self.whole, name, None)
        if method is None:
            raise Unsupported(f"engine `{self.whole.descriptor().id}` does not offer {name}")
        return method


class Accesses:
    """The access of each token; without tokens, everybody's is the whole store."""

    def __init__(self, engine: Any, tokens: tuple[Token, ...]) -> None:
        self._tokens = tokens
        self._open = Access(engine, EVERYTHING)
        self._by_digest = {token.digest: Access(engine, token.scope) for token in tokens}

    def of(self, headers: Mapping[bytes, bytes]) -> Access:
        """The access of a request.

        Raises
        ------
        Unauthorized
            When tokens are asked for and it shows none that is known.
        """
        if not self._tokens:
            return self._open
        shown = headers.get(b"authorization", b"").decode("latin-1")
        return self._by_digest[authenticate(shown, self._tokens).digest]
