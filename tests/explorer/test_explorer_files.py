"""The files of the explorer as they are served."""

import re
from collections.abc import Iterator

import httpx
import pytest

from colmem.adapters.http.explorer.routes import ADDRESSES
from colmem.adapters.http.tokens import Token
from colmem.reference import ReferenceEngine
from explorer.store import Serve, Served

TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "/": "text/html"}


@pytest.fixture
def client(shared: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=shared.url) as client:
        yield client


@pytest.mark.parametrize("address", sorted(ADDRESSES))
def test_each_file_has_its_type_its_tag_and_the_policy(address: str, client: httpx.Client) -> None:
    answer = client.get(address)
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] == TYPES[address.rpartition(".")[2]]
    assert answer.headers["content-security-policy"].startswith("default-src 'self'; ")
    assert answer.headers["x-content-type-options"] == "nosniff"
    tag = answer.headers["etag"]
    for shown in (tag, f'"other", W/{tag}', "*"):
        again = client.get(address, headers={"if-none-match": shown})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert client.get(address, headers={"if-none-match": '"other"'}).content == answer.content
    head = client.head(address)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", tag)
    assert client.post(address).status_code == 405


@pytest.mark.parametrize("address", sorted(ADDRESSES))
def test_what_a_file_names_is_served_here(address: str, client: httpx.Client) -> None:
    text = client.get(address).text
    named = re.findall(r'(?:href|src)="([^"#]+)"', text) + re.findall(r'from "\./([^"]+)"', text)
    folder = "/" if address == "/" else "/explorer/"
    assert [name for name in named if folder + name not in ADDRESSES] == []
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)\w", text) == []


def test_only_the_files_need_no_token(serve: Serve) -> None:
    token = Token.of("a-token-of-some-length")
    served = serve(ReferenceEngine(), tokens=(token,))
    with httpx.Client(base_url=served.url) as client:
        assert {client.get(address).status_code for address in ADDRESSES} == {200}
        for address in ("/v1/health", "/v1/openapi.json", "/metrics", "/explorer", "/explorer/"):
            assert client.get(address).status_code == 401
        rebound = client.get("/", headers={"host": "elsewhere.example"})
        assert rebound.status_code == 400
        assert client.get("/", headers={"origin": "http://elsewhere.example"}).status_code == 403
