"""The engine of the golden tool and context files: a reference engine with scripted answers."""

from typing import Any

from msgspec.structs import replace

from colmem.contract import (
    Citation,
    EngineDescriptor,
    EngineError,
    FetchPage,
    FetchRequest,
    GetRequest,
    ListPage,
    ListRequest,
    RecallAnswer,
    RecallRequest,
    Unavailable,
)
from colmem.reference import ReferenceEngine


class ScriptedEngine(ReferenceEngine):
    def __init__(
        self,
        *,
        fetch_modes: list[str] | None = None,
        recall: dict[str, Any],
        fetch: dict[str, Any] | None = None,
        list_fails: bool = False,
    ) -> None:
        super().__init__()
        self._modes = fetch_modes
        self._recall = recall
        self._fetch = fetch or {}
        self.list_fails = list_fails

    def descriptor(self) -> EngineDescriptor:
        descriptor = super().descriptor()
        return descriptor if self._modes is None else replace(descriptor, fetch_modes=self._modes)

    def list(self, request: ListRequest | None = None, /, **fields: Any) -> ListPage:
        if self.list_fails:
            raise Unavailable("the listing is down")
        return super().list(request, **fields)

    def recall(self, request: RecallRequest) -> RecallAnswer:
        request.validate()
        script = self._recall.get(request.question)
        if script is None:
            return RecallAnswer(answer="")
        if isinstance(script, str):
            raise EngineError(script)
        hits = []
        if script["ids"]:
            fails, self.list_fails = self.list_fails, False
            hits = self.get(GetRequest(script["ids"], reach=request.filter.reach))
            self.list_fails = fails
        citations = [
            Citation(id=hit.id, kind=hit.kind, snippet=hit.text, meta=hit.meta) for hit in hits
        ]
        return RecallAnswer(answer=script["answer"], citations=citations)

    def fetch(self, request: FetchRequest) -> FetchPage:
        self.descriptor().ensure_mode(request.mode)
        request.validate()
        script = self._fetch.get(request.query)
        if script is None:
            return FetchPage([])
        scores = dict(script["hits"])
        hits = self.get(GetRequest(list(scores), reach=request.filter.reach))
        return FetchPage(
            hits=[
                replace(hit, score=scores[hit.id])
                for hit in hits
                if request.filter.matches(hit.kind, hit.meta)
            ],
            next_cursor=script.get("next_cursor"),
        )
