"""TIME: instants are instants, wherever the process thinks it is (D24)."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import colmem
from colmem.contract import InvalidRequest, MemoryMeta, MetaFilter, document

FORMS = {
    "utc": "2016-12-31T23:59:59Z",
    "nepal": "2017-01-01T05:44:59+05:45",
    "nine digits": "2016-12-31T23:59:59.123456789Z",
    "leap second": "2016-12-31T23:59:60Z",
    "leap fraction": "2016-12-31T23:59:60.5Z",
    "next year": "2017-01-01T00:00:00Z",
    "year one": "0001-01-01T00:00:00Z",
    "year 9999": "9999-12-31T23:59:59.999999999Z",
}
ORDER = [
    {"year one"},
    {"utc", "nepal"},
    {"nine digits"},
    {"leap second"},
    {"leap fraction"},
    {"next year"},
    {"year 9999"},
]
SCRIPT = """
import json, sys
import colmem
from colmem.contract import MetaFilter
forms = json.loads(sys.argv[2])
answers = {}
with colmem.open(sys.argv[1]) as engine:
    for name, at in forms.items():
        for field in ("observed_after", "observed_before"):
            filter = MetaFilter(**{field: at})
            listed = [hit.text for hit in engine.list(filter=filter, limit=50).items]
            for mode in ("keyword", "vector", "hybrid"):
                page = engine.fetch(query="moment", mode=mode, limit=50, filter=filter)
                assert sorted(hit.text for hit in page.hits) == sorted(listed), mode
            answers[f"{field} {name}"] = sorted(listed)
    answers["printed"] = [str(hit.meta.observed_at) for hit in engine.list(limit=50).items]
print(json.dumps(answers))
"""


def fill(path: Path) -> None:
    with colmem.open(path, embedder="hotmem-hash-v1") as engine:
        for name, at in FORMS.items():
            engine.store(document(f"moment {name}", meta=MemoryMeta(observed_at=at)))
        engine.store(document("moment without a time"))


def test_d24_every_form_and_every_time_zone_gives_the_same_answers(store_path: Path) -> None:
    fill(store_path)
    answers = []
    for zone in ("Pacific/Apia", "UTC"):
        run = [sys.executable, "-c", SCRIPT, str(store_path), json.dumps(FORMS)]
        environment = {**os.environ, "TZ": zone}
        done = subprocess.run(
            run, capture_output=True, text=True, check=True, timeout=300, env=environment
        )
        answers.append(json.loads(done.stdout))
    assert answers[0] == answers[1]
    for rank, names in enumerate(ORDER):
        later = {f"moment {name}" for group in ORDER[rank:] for name in group}
        earlier = {f"moment {name}" for group in ORDER[:rank] for name in group}
        for name in names:
            assert set(answers[0][f"observed_after {name}"]) == later
            assert set(answers[0][f"observed_before {name}"]) == earlier
    assert answers[0]["printed"][1] == "2016-12-31T23:59:59Z"


def test_d24_a_naive_time_is_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidRequest, match=r"has no time zone; .*replace\(tzinfo=datetime.UTC\)"):
        MemoryMeta(observed_at=datetime(2026, 1, 1))  # noqa: DTZ001 - what is refused
    with pytest.raises(InvalidRequest, match="is not a timestamp"):
        MetaFilter(observed_after="2026-01-01T00:00:00")


def test_d24_aware_datetimes_are_the_same_instant() -> None:
    nepal = timezone(timedelta(hours=5, minutes=45))
    with colmem.open(":memory:", embedder="hotmem-hash-v1") as engine:
        at = datetime(2026, 1, 1, 5, 45, tzinfo=nepal)
        engine.store(document("moment", meta=MemoryMeta(observed_at=at)))
        same = datetime(2026, 1, 1, tzinfo=UTC)
        assert engine.list(filter=MetaFilter(observed_after=same)).items
        assert not engine.list(filter=MetaFilter(observed_before=same)).items
