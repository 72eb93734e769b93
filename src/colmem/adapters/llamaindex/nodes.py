"""Nodes of LlamaIndex as items, and items as nodes.

A node's text is a document; its metadata is kept as ``colmem.adapters.foreign`` says, the rest of
it (relationships, offsets, templates) as JSON in a tag. Its embedding is left to the store.
"""

from __future__ import annotations

import json
from typing import Any, Final

from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node

import colmem
from colmem import Hit, InvalidRequest, StoreItem
from colmem.adapters import foreign
from colmem.adapters.framework_items import FrameworkItems

FRAMEWORK: Final = "llamaindex"
REF_DOC: Final = "ref_doc"
_NODE: Final = "node"
_KEPT_ELSEWHERE: Final = {"id_", "text", "text_resource", "metadata", "embedding"}


def item_of(node: BaseNode, items: FrameworkItems, place: int) -> StoreItem:
    """The item of a node.

    Raises
    ------
    InvalidRequest
        When the node has no text, or metadata that is not JSON.
    """
    try:
        kept = node.model_dump(mode="json", exclude_defaults=True, exclude=_KEPT_ELSEWHERE)
        del kept["class_name"]
        whole = {"type": node.class_name(), "keys": [*node.metadata], "fields": kept}
        tags = [items.tag(_NODE, foreign.json_text(whole, "node"))]
        if node.ref_doc_id is not None:
            tags.append(items.tag(REF_DOC, node.ref_doc_id))
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        item = colmem.document(text, meta=items.meta(node.metadata, node.node_id, tags))
        item.validate()
    except ValueError as error:
        text = error.message if isinstance(error, InvalidRequest) else str(error)
        raise InvalidRequest(f"nodes[{place}] ({node.node_id}): {text}") from error
    return item


def node_of(hit: Hit, items: FrameworkItems) -> BaseNode:
    """The node of an item; one that LlamaIndex did not store becomes a text node."""
    metadata = items.metadata_of(hit)
    text = foreign.named_value(hit.meta, FRAMEWORK, _NODE)
    if text is None:
        return TextNode(id_=items.id_of(hit), text=hit.text, metadata=metadata)
    whole: dict[str, Any] = foreign.json_value(text)
    fields = whole["fields"] | {
        "id_": items.id_of(hit),
        "metadata": {key: metadata[key] for key in whole["keys"] if key in metadata},
    }
    content = {"_node_content": json.dumps(fields), "_node_type": whole["type"]}
    return metadata_dict_to_node(content, text=hit.text)
