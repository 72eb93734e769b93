"""``openai:<base_url>#<model>``: any endpoint with OpenAI's ``POST <base_url>/embeddings``.

Texts go in batches; a failed batch is tried again, with growing pauses. The API key comes from the
environment and appears in no message, log or stored setting. Redirects are refused, so that neither
key nor text goes to another host.
"""

from __future__ import annotations

import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np
import numpy.typing as npt

from colmem.contract.errors import ConfigError, EngineError, Unauthorized, Unavailable
from colmem.embed.folders import normalise
from colmem.embed.texts import utf8_buffer

KEY_VARIABLES = ("COLMEM_EMBED_API_KEY", "OPENAI_API_KEY")
BATCH_TEXTS_MAX = 128
BATCH_CHARS_MAX = 200_000
TRIES = 4
TIMEOUT_S = 30.0
FIRST_PAUSE_S = 0.5
PAUSE_S_MAX = 30.0
_RETRIED = {408, 409, 425, 429, 500, 502, 503, 504}


class _Datum(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Datum]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> None:
        return None


class EndpointEmbedder:
    """The embedder of one address and model; ``dim`` is learnt from its first answer.

    A blank text has the zero vector and is not sent: endpoints refuse it.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        base, _, self._model = key.partition(":")[2].partition("#")
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname or not self._model:
            raise ConfigError(
                "an embedder of this kind is written openai:<http(s) address>#<model>, such as "
                "openai:http://127.0.0.1:8080/v1#nomic-embed-text; a part is missing"
            )
        if parts.username or parts.password or parts.query:
            raise ConfigError(
                "the address of an openai: embedder holds a user, a password or a query; it is "
                f"recorded in the store, so put the secret into {KEY_VARIABLES[0]} instead"
            )
        self._url = base.rstrip("/") + "/embeddings"
        self._opener = urllib.request.build_opener(_NoRedirects)
        self._dim = 0

    @property
    def dim(self) -> int:
        """Length of a vector; asks the endpoint when nothing has been embedded yet."""
        if self._dim == 0:
            self._request(["dimension"])
        return self._dim

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """float32 (n, dim), rows L2-normalised; zero for a blank text.

        Raises
        ------
        InvalidRequest
            When a text holds a lone surrogate.
        Unavailable
            When the endpoint does not answer, or answers that it is busy or failing.
        Unauthorized
            When it refuses the key, or the lack of one.
        EngineError
            When it refuses the request, or its answer is not one vector of one length a text.
        """
        utf8_buffer(texts)  # refuses what has no UTF-8 form
        rows = [row for row, text in enumerate(texts) if text.strip()]
        answers: list[list[float]] = []
        for batch in _batches([texts[row] for row in rows]):
            answers += self._request(batch)
        vectors = np.zeros((len(texts), self.dim), np.float64)
        if rows:
            vectors[rows] = answers
        return normalise(vectors)

    def _request(self, batch: list[str]) -> list[list[float]]:
        """Vectors of one batch, in order."""
        body = msgspec.json.encode({"model": self._model, "input": batch})
        raw = self._send(body)
        try:
            data = sorted(msgspec.json.decode(raw, type=_Answer).data, key=lambda d: d.index)
        except msgspec.DecodeError as error:
            raise self._malformed(f"is not the JSON of an embeddings answer: {error}") from error
        if [datum.index for datum in data] != list(range(len(batch))):
            raise self._malformed(f"has not one vector for each of the {len(batch)} texts")
        lengths = {len(datum.embedding) for datum in data}
        expected = self._dim or min(lengths)
        if lengths != {expected} or expected == 0:
            raise self._malformed(f"has vectors of length {sorted(lengths)}, expected {expected}")
        self._dim = expected
        return [datum.embedding for datum in data]

    def _send(self, body: bytes) -> bytes:
        pause = FIRST_PAUSE_S
        for attempt in range(1, TRIES + 1):
            try:
                with self._opener.open(self._http_request(body), timeout=TIMEOUT_S) as response:
                    answer: bytes = response.read()
                    return answer
            except urllib.error.HTTPError as error:
                with error:
                    failure = f"HTTP status {error.code}"
                    if error.code not in _RETRIED:
                        raise self._refused(error.code) from None
                    pause = max(pause, _retry_after(error.headers.get("Retry-After")))
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", error)
                failure = f"{type(reason).__name__}: {reason}"
            if attempt < TRIES:
                time.sleep(min(pause, PAUSE_S_MAX))
                pause *= 2
        raise Unavailable(
            f"embedding endpoint {self._url} failed {TRIES} times, last with {failure}; "
            "check that it runs and is reachable, then try again"
        )

    def _http_request(self, body: bytes) -> urllib.request.Request:
        headers = {"Content-Type": "application/json", "User-Agent": "colmem"}
        for name in KEY_VARIABLES:
            secret = os.environ.get(name, "").strip()
            if secret:
                if not (secret.isascii() and secret.isprintable()):
                    # Checked here because http.client would quote the value in its error.
                    raise ConfigError(
                        f"the value of {name} holds characters no key has; set it again"
                    )
                headers["Authorization"] = f"Bearer {secret}"
                break
        return urllib.request.Request(self._url, body, headers)

    def _refused(self, status: int) -> Unauthorized | EngineError:
        if status in (401, 403):
            return Unauthorized(
                f"embedding endpoint {self._url} answered {status}; "
                f"set a valid key in {' or '.join(KEY_VARIABLES)}"
            )
        return EngineError(
            f"embedding endpoint {self._url} answered {status} for model {self._model!r}; "
            "check the address, the model's name and its limit of text length"
        )

    def _malformed(self, what: str) -> EngineError:
        return EngineError(
            f"the answer of embedding endpoint {self._url} {what}; "
            "check that the address is that of an OpenAI-compatible server"
        )


def _batches(texts: list[str]) -> list[list[str]]:
    batches: list[list[str]] = []
    n_chars = 0
    for text in texts:
        n_chars += len(text)
        if not batches or len(batches[-1]) == BATCH_TEXTS_MAX or n_chars > BATCH_CHARS_MAX:
            batches.append([])
            n_chars = len(text)
        batches[-1].append(text)
    return batches


def _retry_after(value: str | None) -> float:
    """Seconds a Retry-After header asks for; 0 for a date or none."""
    return float(value) if value is not None and value.isascii() and value.isdigit() else 0.0
