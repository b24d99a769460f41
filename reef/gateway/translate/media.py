"""Images and files in the three dialects: carried where the other side has a place for them, refused where not.

| hub | messages | responses |
|---|---|---|
| `image_url` with a data URL | `image`, source `base64` | `input_image` with the same URL |
| `image_url` with a web address | `image`, source `url` | `input_image` with the same URL |
| `file` with a data URL | `document`, source `base64` (PDF) or `text` (plain text) | `input_file`, `file_data` |
| `file` with a web address | `document`, source `url` | `input_file`, `file_url` |
| `input_audio` | refused | `input_audio` |
| `text` | `document` with a text source, its title in front | |

A file that is only a name at a vendor (`file_id`, source `file`) is always refused.
"""

from __future__ import annotations

import base64
import binascii
import re

from reef.errors import InvalidInput
from reef.gateway.translate.hub import CannotCarry, Json, entries, text_of, text_part

_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,", re.IGNORECASE)
_STORED = "it names a file stored at a vendor; send the file itself"


def data_url(media_type: str, data: str) -> str:
    """Base64 data as a URL."""
    return f"data:{media_type};base64,{data}"


def of_data_url(url: str) -> tuple[str, str] | None:
    """Media type and base64 data of a data URL; None when it is none."""
    match = _DATA_URL.match(url[:200])
    return (match.group(1), url[match.end() :]) if match else None


def image_part(url: str, detail: object = None) -> Json:
    """An image of the hub."""
    image = {"url": url, "detail": detail} if isinstance(detail, str) else {"url": url}
    return {"type": "image_url", "image_url": image}


# Anthropic messages


def from_block(block: Json, place: str) -> list[Json]:
    """An `image` or `document` block as parts of the hub."""
    source = block.get("source")
    if not isinstance(source, dict):
        raise InvalidInput(f"`{place}.source` is not an object")
    kind = source.get("type")
    if kind == "file":
        raise CannotCarry(f"{place}.source", _STORED)
    if block.get("type") == "image":
        if kind == "url":
            return [image_part(text_of(source.get("url"), f"{place}.source.url"))]
        if kind == "base64":
            data = text_of(source.get("data"), f"{place}.source.data")
            return [image_part(data_url(text_of(source.get("media_type"), f"{place}.source.media_type"), data))]
        raise CannotCarry(f"{place}.source.type", f"images from {kind!r} are not known")
    return _from_document(block, source, place)


def _from_document(block: Json, source: Json, place: str) -> list[Json]:
    kind = source.get("type")
    said = [text for text in (block.get("title"), block.get("context")) if isinstance(text, str) and text]
    if kind == "text":
        return [text_part("\n\n".join([*said, text_of(source.get("data"), f"{place}.source.data")]))]
    if kind == "content":
        inside = source.get("content")
        parts = [text_part(text) for text in said]
        if isinstance(inside, str):
            return [*parts, text_part(inside)]
        for index, part in enumerate(entries(inside, f"{place}.source.content")):
            where = f"{place}.source.content[{index}]"
            if part.get("type") == "image":
                parts += from_block(part, where)
            else:
                parts.append(text_part(text_of(part.get("text"), f"{where}.text")))
        return parts
    context = [text_part(text) for text in said[1:]] if block.get("title") else [text_part(text) for text in said]
    file: Json = {"filename": str(block.get("title") or "document.pdf")}
    if kind == "base64":
        media_type = text_of(source.get("media_type"), f"{place}.source.media_type")
        file["file_data"] = data_url(media_type, text_of(source.get("data"), f"{place}.source.data"))
    elif kind == "url":
        file["file_url"] = text_of(source.get("url"), f"{place}.source.url")
    else:
        raise CannotCarry(f"{place}.source.type", f"documents from {kind!r} are not known")
    return [*context, {"type": "file", "file": file}]


def to_block(part: Json, place: str) -> Json:
    """An `image_url` or `file` part of the hub as a block. Raises CannotCarry for what has no place there."""
    kind = part["type"]
    if kind == "image_url":
        url = part["image_url"]["url"]
        data = of_data_url(url)
        if data is not None:
            return {"type": "image", "source": {"type": "base64", "media_type": data[0], "data": data[1]}}
        if url.startswith(("https://", "http://")):
            return {"type": "image", "source": {"type": "url", "url": url}}
        raise CannotCarry(f"{place}.image_url", "it is neither a web address nor base64 data")
    if kind == "file":
        return _to_document(part["file"], place)
    raise CannotCarry(f"{place}.{kind}", "Anthropic messages have no such content")


def _to_document(file: Json, place: str) -> Json:
    title = {"title": file["filename"]} if file.get("filename") else {}
    if "file_url" in file:
        return {"type": "document", "source": {"type": "url", "url": file["file_url"]}, **title}
    data = of_data_url(file["file_data"])
    if data is not None and data[0] == "application/pdf":
        return {"type": "document", "source": {"type": "base64", "media_type": data[0], "data": data[1]}, **title}
    if data is not None and data[0] == "text/plain":
        try:
            text = base64.b64decode(data[1], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise CannotCarry(f"{place}.file", "its text is not UTF-8 in base64") from None
        return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}, **title}
    raise CannotCarry(f"{place}.file", "Anthropic messages take PDF and plain text only")


# OpenAI chat and responses


def checked(part: Json, place: str) -> Json:
    """An `image_url`, `file` or `input_audio` part of a chat client as the hub has it."""
    kind = part.get("type")
    inside = part.get(str(kind))
    if kind == "image_url" and isinstance(inside, str):
        inside = {"url": inside}
    if not isinstance(inside, dict):
        raise InvalidInput(f"`{place}.{kind}` is not an object")
    if kind == "image_url":
        return image_part(text_of(inside.get("url"), f"{place}.image_url.url"), inside.get("detail"))
    if kind == "input_audio":
        return {"type": "input_audio", "input_audio": inside}
    return _file(inside, f"{place}.file")


def from_item_part(part: Json, place: str) -> Json:
    """An `input_image`, `input_file` or `input_audio` part of a responses client as the hub has it."""
    kind = part.get("type")
    if kind == "input_image":
        if not part.get("image_url"):
            raise CannotCarry(f"{place}.file_id", _STORED)
        return image_part(text_of(part["image_url"], f"{place}.image_url"), part.get("detail"))
    if kind == "input_file":
        return _file(part, place)
    return checked(part, place)


def _file(file: Json, place: str) -> Json:
    name = file.get("filename")
    found: Json = {"filename": name} if isinstance(name, str) and name else {}
    data, url = file.get("file_data"), file.get("file_url")
    if isinstance(data, str) and data:
        found["file_data"] = data if of_data_url(data) else data_url("application/pdf", data)
    elif isinstance(url, str) and url:
        found["file_url"] = url
    else:
        raise CannotCarry(f"{place}.file_id", _STORED)
    return {"type": "file", "file": found}


def to_item_part(part: Json) -> Json:
    """A part of the hub as one of a responses item."""
    kind = part["type"]
    if kind == "text":
        return {"type": "input_text", "text": part["text"]}
    if kind == "image_url":
        image = part["image_url"]
        return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail", "auto")}
    if kind == "file":
        return {"type": "input_file", **part["file"]}
    return {"type": kind, kind: part[kind]}
