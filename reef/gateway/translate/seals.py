"""Seals: what makes a model's reasoning one that its own server takes back.

A seal is a text `kind:value`. Anthropic signs its thinking (`signature`) or hides it (`redacted`); OpenAI encrypts it
(`encrypted:<item id>:<data>`); other servers of responses keep it in an item (`summary:<item id>`,
`content:<item id>`); a chat server has it in a field (`field:reasoning_content`).

A client of another dialect must be given something in the place where its own vendor puts a signature, and sends it
back with the history. Such a stand-in is `reef:` and the seal, so that it can be opened again for the server that it
came from, and be taken out before it reaches a vendor that would refuse the whole request because of it.
"""

from __future__ import annotations

from typing import Any

from reef.gateway.translate.hub import Json, entries

MINT = "reef:"
"""How every stand-in that reef makes begins."""
_MINT_BYTES = b'"' + MINT.encode()

SIGNATURE, REDACTED, ENCRYPTED, SUMMARY, CONTENT, FIELD = (
    "signature",
    "redacted",
    "encrypted",
    "summary",
    "content",
    "field",
)
CHAT_FIELDS = ("reasoning_content", "reasoning")
"""Where chat servers put reasoning; the first is what most of them know."""
_IN_ITEMS = {ENCRYPTED, SUMMARY, CONTENT}


def seal(kind: str, *values: str) -> str:
    """A seal of its kind and values."""
    return ":".join((kind, *values))


def opened(value: str | None) -> tuple[str, str]:
    """The kind of a seal and its value; both empty without one."""
    kind, _, rest = (value or "").partition(":")
    return kind, rest


def chat_field(reasoning: list[Json]) -> str:
    """The field in which a chat server gave this reasoning and takes it back."""
    for block in reasoning:
        kind, name = opened(block["seal"])
        if kind == FIELD and name in CHAT_FIELDS:
            return name
    return CHAT_FIELDS[0]


# Anthropic messages


def to_block(text: str, value: str | None) -> Json:
    """Reasoning as a block for a client."""
    kind, rest = opened(value)
    if kind == REDACTED:
        return {"type": "redacted_thinking", "data": rest}
    signature = rest if kind == SIGNATURE else MINT + (value or "")
    return {"type": "thinking", "thinking": text, "signature": signature}


def to_vendor_block(text: str, value: str | None) -> Json | None:
    """Reasoning as a block for an Anthropic upstream; None when that would not know the seal."""
    return to_block(text, value) if opened(value)[0] in (SIGNATURE, REDACTED) else None


def from_block(block: Json) -> Json:
    """A `thinking` or `redacted_thinking` block as reasoning of the hub."""
    if block.get("type") == "redacted_thinking":
        return {"text": "", "seal": seal(REDACTED, str(block.get("data", "")))}
    signature = block.get("signature")
    text = block.get("thinking")
    found = signature if isinstance(signature, str) else ""
    value = found[len(MINT) :] or None if found.startswith(MINT) else seal(SIGNATURE, found)
    return {"text": text if isinstance(text, str) else "", "seal": value}


# OpenAI responses


def to_item(text: str, value: str | None, item_id: str) -> Json:
    """Reasoning as an item for a client: the text as a summary, which every client shows and sends back."""
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"id": item_id, "type": "reasoning", "summary": summary, "encrypted_content": MINT + (value or "")}


def to_vendor_item(text: str, value: str | None) -> Json | None:
    """Reasoning as an item for a responses upstream; None when that would not know the seal."""
    kind, rest = opened(value)
    if kind not in _IN_ITEMS:
        return None
    item_id, _, data = rest.partition(":")
    item: Json = {"type": "reasoning", "id": item_id} if item_id else {"type": "reasoning"}
    shown = [{"type": "summary_text", "text": text}] if text and kind != CONTENT else []
    item["summary"] = shown
    if kind == ENCRYPTED:
        item["encrypted_content"] = data
    elif kind == CONTENT:
        item["content"] = [{"type": "reasoning_text", "text": text}]
    return item


def from_item(item: Json) -> Json:
    """A `reasoning` item as reasoning of the hub."""
    content = _texts(item.get("content"))
    text = content or _texts(item.get("summary"))
    data = item.get("encrypted_content")
    item_id = item.get("id")
    name = item_id if isinstance(item_id, str) else ""
    if isinstance(data, str) and data.startswith(MINT):
        return {"text": text, "seal": data[len(MINT) :] or None}
    if isinstance(data, str) and data:
        return {"text": text, "seal": seal(ENCRYPTED, name, data)}
    return {"text": text, "seal": seal(CONTENT if content else SUMMARY, name)}


def _texts(parts: Any) -> str:
    texts = [part.get("text") for part in parts or () if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


# Chat completions: the `reasoning_details` that gateways of several vendors use, and ask their clients to send back.

_FORMATS = {SIGNATURE: "anthropic-claude-v1", REDACTED: "anthropic-claude-v1", ENCRYPTED: "openai-responses-v1"}


def to_detail(text: str, value: str | None, index: int) -> Json | None:
    """Reasoning as a detail for a chat client; None where the text alone says everything."""
    kind, rest = opened(value)
    if kind == SIGNATURE:
        found: Json = {"type": "reasoning.text", "text": text, "signature": rest}
    elif kind in (REDACTED, ENCRYPTED):
        found = {"type": "reasoning.encrypted", "text": text, "data": rest}
    else:
        return None
    return {**found, "format": _FORMATS[kind], "index": index}


def from_details(details: Any, place: str) -> list[Json]:
    """The details that a chat client sends back, as reasoning of the hub; those of nobody's seal are left out."""
    found: list[Json] = []
    for detail in entries(details, place):
        text = detail.get("text")
        block = {"text": text if isinstance(text, str) else "", "seal": None}
        data, signature = detail.get("data"), detail.get("signature")
        if detail.get("format") == _FORMATS[SIGNATURE] and isinstance(signature, str):
            found.append(block | {"seal": seal(SIGNATURE, signature)})
        elif detail.get("format") == _FORMATS[REDACTED] and isinstance(data, str):
            found.append(block | {"seal": seal(REDACTED, data)})
        elif detail.get("format") == _FORMATS[ENCRYPTED] and isinstance(data, str) and ":" in data:
            found.append(block | {"seal": seal(ENCRYPTED, data)})
    return found


# What a vendor must not see


def holds_minted(body: bytes) -> bool:
    """Whether a request's bytes may hold a stand-in of reef's: a cheap look before parsing anything."""
    return _MINT_BYTES in body


def without_minted_thinking(request: Json) -> Json:
    """A messages request without the thinking that reef signed; `request` itself when there is none.

    An assistant turn that is empty without it is left out; everything else is the same object as before.
    """
    messages = request.get("messages")
    if not isinstance(messages, list):
        return request
    kept: list[Any] = []
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list) and any(_is_minted_block(block) for block in content):
            rest = [block for block in content if not _is_minted_block(block)]
            if rest:
                kept.append({**message, "content": rest})
        else:
            kept.append(message)
    return request if _same(kept, messages) else {**request, "messages": kept}


def without_minted_reasoning(request: Json) -> Json:
    """A responses request without the reasoning items that reef made; `request` itself when there is none."""
    items = request.get("input")
    if not isinstance(items, list):
        return request
    kept = [item for item in items if not _is_minted_item(item)]
    return request if len(kept) == len(items) else {**request, "input": kept}


def _same(left: list[Any], right: list[Any]) -> bool:
    return len(left) == len(right) and all(one is other for one, other in zip(left, right, strict=True))


def _is_minted_block(block: Any) -> bool:
    signature = block.get("signature") if isinstance(block, dict) and block.get("type") == "thinking" else None
    return isinstance(signature, str) and signature.startswith(MINT)


def _is_minted_item(item: Any) -> bool:
    data = item.get("encrypted_content") if isinstance(item, dict) and item.get("type") == "reasoning" else None
    return isinstance(data, str) and data.startswith(MINT)
