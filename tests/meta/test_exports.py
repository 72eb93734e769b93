"""The public names: none comes or goes without this list, and each is there."""

import pytest

import colmem

EXPORTED = [
    "Citation",
    "ColmemError",
    "ConfigError",
    "Conflict",
    "Conversation",
    "CorruptStore",
    "Document",
    "DocumentBody",
    "EXACT_FIELDS",
    "Embedder",
    "Engine",
    "EngineDescriptor",
    "EngineError",
    "EngineHealth",
    "ExplorePage",
    "ExploreRequest",
    "F32",
    "Facet",
    "FacetBucket",
    "FetchMode",
    "FetchPage",
    "FetchRequest",
    "ForgetReport",
    "ForgetTarget",
    "GetRequest",
    "HealthState",
    "Hit",
    "InvalidRequest",
    "ItemKind",
    "Learning",
    "LearningKind",
    "ListPage",
    "ListRequest",
    "ListingDefaults",
    "MemoryEngine",
    "MemoryMeta",
    "MetaFilter",
    "MissingExtra",
    "Namespace",
    "NotFound",
    "PATH_FIELDS",
    "ROOT",
    "Reach",
    "RecallAnswer",
    "RecallRequest",
    "Role",
    "Segment",
    "SegmentKind",
    "SnapshotChecksumError",
    "SourceKind",
    "SourceRef",
    "StoreItem",
    "StoreLocked",
    "StoreReceipt",
    "Timestamp",
    "ToolCallRef",
    "Turn",
    "TurnRange",
    "Unauthorized",
    "Unavailable",
    "Unsupported",
    "VARIANTS",
    "VersionUnsupported",
    "WHITE_SPACE",
    "__version__",
    "as_request",
    "canonical",
    "connect",
    "content_hash",
    "conversation",
    "decode",
    "decode_stored",
    "document",
    "embedder",
    "encode",
    "explore_page",
    "f32_display",
    "f32_json",
    "fnv1a_32",
    "is_blank",
    "learning",
    "open",
    "path_admits",
    "path_prefix",
    "register_embedder",
    "trim",
    "validate_batch",
    "verify",
]


def test_the_exported_names() -> None:
    assert sorted(colmem.__all__) == EXPORTED


@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_name_is_there(name: str) -> None:
    assert getattr(colmem, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        colmem.nonsense  # noqa: B018
