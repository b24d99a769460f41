"""Taking an HTTP/1.1 reply apart as its bytes come in: head, then body with a length, in chunks, or until the close."""

from __future__ import annotations

import re
from dataclasses import dataclass

HEAD_LIMIT = 64 * 1024
_LINE_LIMIT = 4096
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?:[ \r\n]|$)")
_CHUNK = re.compile(rb"[0-9a-fA-F]{1,15}")
_NO_BODY = frozenset({204, 304})


class BadReply(ValueError):
    """The bytes are not an HTTP/1.1 reply."""


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers, in the order in which they came."""

    status: int
    headers: list[tuple[str, str]]
    length: int | None
    """The body's announced length; None when it has none."""


class ReplyParser:
    """One reply. `feed` it what comes; it keeps at most one unfinished line."""

    def __init__(self) -> None:
        self.head: Head | None = None
        self.done = False
        """Whether the reply is complete."""
        self.kept = False
        """Whether the connection may carry another call afterwards."""
        self._rest = b""
        self._left: int | None = None
        """Bytes still to come of the body, or of the chunk (0: its line end comes next, None: a size comes next)."""
        self._chunked = False
        self._in_trailer = False

    def feed(self, data: bytes) -> list[bytes]:
        """The parts of the body in `data`. Raises BadReply."""
        if self.head is None:
            self._rest += data
            if not self._read_head():
                return []
            data, self._rest = self._rest, b""
        if self.done:
            if data:
                # Bytes behind the end belong to nobody; the connection cannot be trusted with another call.
                self.kept = False
            return []
        if self._chunked:
            return self._chunks(self._rest + data if self._rest else data)
        if not data:
            return []
        if self._left is None:
            return [data]
        if len(data) > self._left:
            self.kept = False
            data = data[: self._left]
        self._left -= len(data)
        self.done = self._left == 0
        return [data] if data else []

    def close_ends(self) -> bool:
        """The connection was closed: True when that is the end of the body (one without a length)."""
        if self.head is None or self._chunked or self._left is not None:
            return False
        self.done = True
        return True

    def _read_head(self) -> bool:
        while True:
            match = _HEAD_END.search(self._rest)
            if match is None:
                if len(self._rest) > HEAD_LIMIT:
                    raise BadReply("the reply's headers are too long")
                return False
            text, self._rest = self._rest[: match.start()], self._rest[match.end() :]
            found = _STATUS.match(text)
            if found is None:
                raise BadReply("the reply is not HTTP/1.1")
            status = int(found.group(2))
            if status >= 200:
                self._begin(status, _headers(text), found.group(1) == b"1")
                return True
            if status == 101:
                raise BadReply("the server wants another protocol")

    def _begin(self, status: int, headers: list[tuple[str, str]], newer: bool) -> None:
        connection, coding, length = "", "", None
        for name, value in headers:
            lower = name.lower()
            if lower == "content-length":
                if not (value.isascii() and value.isdigit()) or length not in (None, int(value)):
                    raise BadReply("the reply's length is not a number")
                length = int(value)
            elif lower == "transfer-encoding":
                coding = f"{coding},{value.lower()}"
            elif lower == "connection":
                connection = f"{connection},{value.lower()}"
        self._chunked = coding.rpartition(",")[2].strip() == "chunked"
        if status in _NO_BODY:
            self._chunked, length = False, 0
        self._left = None if self._chunked else length
        self.done = self._left == 0
        bounded = self._chunked or self._left is not None
        self.kept = bounded and "close" not in connection and (newer or "keep-alive" in connection)
        self.head = Head(status, headers, None if self._chunked else length)

    def _chunks(self, data: bytes) -> list[bytes]:
        """The bodies of the chunks in `data`; an unfinished size line is kept for the next call."""
        self._rest = b""
        pieces: list[bytes] = []
        place = 0
        while place < len(data):
            if self._left:
                piece = data[place : place + self._left]
                pieces.append(piece)
                self._left -= len(piece)
                place += len(piece)
                continue
            end = data.find(b"\n", place)
            if end < 0:
                self._rest = data[place:]
                if len(self._rest) > _LINE_LIMIT:
                    raise BadReply("a chunk's size is too long")
                break
            line = data[place:end].rstrip(b"\r")
            place = end + 1
            if self._line(line):
                self.done = True
                self.kept = self.kept and place == len(data)
                break
        return pieces

    def _line(self, line: bytes) -> bool:
        """One line between chunks: the end of the last one, a size, or a trailer. True behind the last."""
        if self._in_trailer:
            return not line
        if self._left == 0:
            # The line end that belongs to the chunk before.
            if line:
                raise BadReply("a chunk is longer than its size")
            self._left = None
            return False
        match = _CHUNK.match(line)
        if match is None or line[match.end() :].lstrip(b" \t")[:1] not in (b"", b";"):
            raise BadReply("a chunk has no size")
        size = int(match.group(), 16)
        self._in_trailer = size == 0
        self._left = size or None
        return False


def _headers(text: bytes) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in text.replace(b"\r\n", b"\n").split(b"\n")[1:]:
        if line[:1] in (b" ", b"\t") and found:
            name, value = found[-1]
            found[-1] = (name, f"{value} {_text(line)}")
            continue
        name_bytes, colon, value_bytes = line.partition(b":")
        if not colon or not name_bytes or name_bytes != name_bytes.strip():
            raise BadReply("a header of the reply is malformed")
        found.append((_text(name_bytes), _text(value_bytes)))
    return found


def _text(raw: bytes) -> str:
    return raw.strip().decode("utf-8", "surrogateescape")
