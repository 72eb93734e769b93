"""Strict reading of JSON, with the path of what is refused."""

import json

import pytest

from colmem.contract import (
    F32,
    Citation,
    Document,
    ExploreRequest,
    FetchRequest,
    ForgetTarget,
    GetRequest,
    Hit,
    InvalidRequest,
    ListPage,
    ListRequest,
    MemoryMeta,
    Namespace,
    Reach,
    RecallRequest,
    StoreItem,
    TurnRange,
    decode,
    decode_stored,
    document,
    encode,
    learning,
)

DOC = '{"type":"document","body":{"text":"x"}'


@pytest.mark.parametrize(
    "text",
    [
        DOC + ',"zz":1,"zz":2}',
        DOC + ',"meta":{"zz":{"a":1,"a":2},"zz":[]}}',
        '{"zz":[{"type":1,"type":2}],"body":{"text":"x"},"type":"document"}',
        DOC + ',"title":null,"mime":null}',
        " \t\r\n" + DOC + "}\n ",
        DOC + ',"zz":{"zz":{"zz":[1e5,-0,true,null,"\\/\\u0000"]}}}',
    ],
)
def test_unknown_keys_repeats_of_them_and_null_for_optional_keys_are_fine(text: str) -> None:
    assert decode(text, StoreItem) == document("x")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (DOC + ',"type":"document"}', "$"),
        (DOC + ',"body":{"text":"x"}}', "$"),
        (DOC + ',"title":null,"title":null}', "$"),
        ('{"type":"document","body":{"text":"x","text":"x"}}', "$.body"),
        (DOC + ',"meta":{"tags":[],"tags":[]}}', "$.meta"),
        (DOC + ',"meta":{"source":{"kind":"agent","kind":"agent"}}}', "$.meta.source"),
        (
            '{"type":"conversation","turns":[{"role":"user","text":"a"},'
            '{"role":"user","text":"a","text":"b"}]}',
            "$.turns[1]",
        ),
    ],
)
def test_repeated_known_keys_are_refused(text: str, path: str) -> None:
    with pytest.raises(InvalidRequest, match="is repeated") as caught:
        decode(text, StoreItem)
    assert caught.value.path == path


def test_a_repeat_in_a_list_of_hits_is_found_by_its_path() -> None:
    hit = '{"id":"a","kind":"document","text":"t","meta":{},"score":0,"score":1}'
    with pytest.raises(InvalidRequest) as caught:
        decode(f'{{"items":[{hit}]}}', ListPage)
    assert caught.value.message == "key `score` is repeated - at `$.items[0]`"


@pytest.mark.parametrize(
    ("type_", "text", "message"),
    [
        (ListRequest, '{"limit":"5"}', "expected `int`, got `str` - at `$.limit`"),
        (ListRequest, '{"limit":5.0}', "expected `int`, got `float` - at `$.limit`"),
        (ListRequest, '{"limit":-0}', "expected `int`, got `float` - at `$.limit`"),
        (ListRequest, '{"limit":true}', "expected `int`, got `bool` - at `$.limit`"),
        (ListRequest, '{"limit":-1}', "expected `int` >= 0 - at `$.limit`"),
        (ListRequest, "{}", "object missing required field `limit` - at `$`"),
        (RecallRequest, '{"question":"q"}', "object missing required field `limit` - at `$`"),
        (
            FetchRequest,
            '{"query":"q","limit":1}',
            "object missing required field `mode` - at `$`",
        ),
        (ExploreRequest, '{"facet":"tag"}', "object missing required field `limit` - at `$`"),
        (Reach, '{"inherit":0}', "expected `bool`, got `int` - at `$.inherit`"),
        (Reach, '{"at":5}', "expected `str`, got `int` - at `$.at`"),
        (MemoryMeta, '{"tags":[1]}', "expected `str`, got `int` - at `$.tags[0]`"),
        (TurnRange, '{"first":0,"last":4294967296}', "expected `int` <= 4294967295 - at `$.last`"),
        (list[Hit], "{}", "expected `array`, got `object` - at `$`"),
    ],
)
def test_nothing_is_coerced(type_: type, text: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(text, type_)
    assert caught.value.message == message
    assert caught.value.path == message.split("`")[-2]


def test_a_limit_reaches_the_end_of_u64() -> None:
    assert decode('{"limit":18446744073709551615}', ListRequest).limit == 2**64 - 1
    with pytest.raises(InvalidRequest, match="18446744073709551615"):
        decode('{"limit":18446744073709551616}', ListRequest)


@pytest.mark.parametrize(
    "value",
    ["NaN", "Infinity", "-Infinity", "+1", ".5", "1.", "01", "0x1", "1_0", "1e309", "-1e309"],
)
def test_numbers_keep_to_the_grammar(value: str) -> None:
    text = f'{{"id":"a","kind":"document","text":"t","meta":{{}},"score":{value}}}'
    with pytest.raises(InvalidRequest):
        decode(text, Hit)


@pytest.mark.parametrize(
    "data",
    [
        b'\xef\xbb\xbf"a"',
        b'{"ids":["a"]} x',
        b'{"ids":["a"]}{}',
        b'{"ids":["\\ud800"]}',
        b'{"ids":["\\udc00\\ud800"]}',
        b'{"ids":["a\x01"]}',
        b'{"ids":["\xff"]}',
        b'{"ids":["a"],"zz":"\xff"}',
        b'{"ids":["a"],"zz":"\\ud800"}',
        b'{"ids":["a"],"zz":"\n"}',
        b'{"ids":["a",]}',
        b"{'ids':['a']}",
        b"",
        b'{"ids":["a"],"zz":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        '{"ids":["\ud800"]}',
    ],
)
def test_text_that_is_not_json_is_refused(data: bytes | str) -> None:
    with pytest.raises(InvalidRequest):
        decode(data, GetRequest)


def test_minus_zero_is_kept_whatever_else_the_text_holds() -> None:
    text = '{"type":"learning","text":": -0,","kind":"fact","confidence":-0,"meta":{}}'
    item = decode(text, StoreItem)
    assert item.text == ": -0,"
    assert b'"confidence":-0.0' in encode(item)


def test_bytes_of_every_sort_are_read() -> None:
    data = encode(document("é"))
    for form in (data, bytearray(data), memoryview(data), data.decode()):
        assert decode(form, Document) == document("é")


def test_a_namespace_s_error_keeps_its_words_and_has_its_path() -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode('{"filter":{"reach":{"at":"bogus"}},"limit":1}', ListRequest)
    message = "invalid request: namespace segment `bogus` must be written kind:id"
    assert str(caught.value) == message
    assert caught.value.path == "$.filter.reach.at"


def test_a_body_s_error_has_its_path() -> None:
    with pytest.raises(InvalidRequest, match=r"exactly one .* at `\$.body`"):
        decode('{"type":"document","body":{"text":"a","uri":"b"}}', StoreItem)


@pytest.mark.parametrize("text", ['{"ids":["a"],"filter":{}}', '{"ids":["a"],"zz":1}', "{}"])
def test_a_forget_target_has_exactly_one_key(text: str) -> None:
    with pytest.raises(InvalidRequest):
        decode(text, ForgetTarget)


def test_the_root_is_left_out_and_equals_its_spellings() -> None:
    for root in ("root", "", " root ", Namespace.root()):
        assert encode(MemoryMeta(namespace=root)) == b'{"source":{"kind":"agent"}}'


def test_scores_are_single_precision_wherever_they_stand() -> None:
    citation = Citation(id="a", kind="document", snippet="s", meta=MemoryMeta(), score=0.1)
    assert b'"score":0.1}' in encode([citation])
    assert isinstance(decode(encode(citation), Citation).score, F32)


def test_what_was_encoded_is_read_back_without_the_search_for_repeats() -> None:
    item = learning("t", confidence=1e-7, meta=MemoryMeta(observed_at="2026-01-01T00:00:00Z"))
    assert decode_stored(encode(item), StoreItem) == item


def test_a_lone_surrogate_cannot_be_written() -> None:
    with pytest.raises(InvalidRequest, match=r"U\+D800"):
        document("\ud800").fingerprint()


def test_a_foreign_value_cannot_be_written() -> None:
    with pytest.raises(InvalidRequest, match="complex"):
        encode({"a": 1j})


def test_escapes_are_those_of_json_dumps() -> None:
    text = "".join(map(chr, range(0x2100))) + "\u2028\uffff🎉"
    assert encode(text).decode() == json.dumps(text, ensure_ascii=False)
