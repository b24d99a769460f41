"""Bodies as parts that are stored once, and chains of parts that share their beginnings.

An agent sends its whole conversation with every call. `reef.records.spans` cuts a body at places that depend only on
what came before them; equal spans are one row of `parts`. A short body is one part without a hash: there is hardly ever
one like it, and finding that out would cost more than it spares. A longer one is a chain of nodes, each its predecessor
plus one part, or plus one child chain: the elements of an array such as the messages. A node's hash stands for
everything up to it, so two bodies with the same beginning share its nodes, and a call costs what is new in it.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import zstandard

from reef.errors import Failed
from reef.records import many
from reef.records.spans import WHOLE_BELOW, Layout, Span, split

_LEVEL = 1
"""Takes half the time of the next levels and makes texts of some kilobytes larger by about one in a hundred."""
_COMPRESS_FROM = 64
_TOGETHER_FROM = 8
"""Bodies from which on compressing them in one call spares more than the state that such a call makes for itself."""
_CHILD = b"c"
_PART = b"p"
_AT_ONCE = 2047
_contexts = threading.local()

Place = tuple[int | None, int | None]
"""Where a body is: the sequence of its only part, or that of its chain's last node; neither when it is not stored."""

_FIND_PART = "SELECT sequence FROM parts WHERE hash = ?"
_ADD_PART = "INSERT INTO parts (hash, size, codec, body) VALUES (?, ?, ?, ?)"
_ADD_NEW_PART = _ADD_PART + " ON CONFLICT (hash) WHERE hash IS NOT NULL DO NOTHING"
_SHORT = ("size", "codec", "body")
_FIND_NODE = "SELECT sequence FROM chains WHERE hash = ?"
_ADD_NODE = "INSERT INTO chains (hash, previous, part, child) VALUES (?, ?, ?, ?)"
_WALK = """WITH RECURSIVE walk(previous, part, child) AS (
    SELECT previous, part, child FROM chains WHERE sequence = ?
    UNION ALL SELECT chains.previous, chains.part, chains.child FROM walk JOIN chains ON chains.sequence = walk.previous
) SELECT part, child FROM walk"""


def digest(data: Span) -> bytes:
    """The 16 bytes that stand for `data`: the first half of its SHA-256, which most processors have built in."""
    if len(data) >= WHOLE_BELOW:
        return hashlib.sha256(data).digest()[:16]
    # Hashlib lets go of the interpreter for more than this, and getting it back takes longer than the hash.
    found = hashlib.sha256(data[:_AT_ONCE])
    for place in range(_AT_ONCE, len(data), _AT_ONCE):
        found.update(data[place : place + _AT_ONCE])
    return found.digest()[:16]


@dataclass
class Node:
    """One node of a chain that is to be stored: everything before it plus `part` or `child`."""

    hash: bytes
    part: Span | None
    part_hash: bytes
    """Hash of the part, or of the child chain's last node."""
    child: list[Node] | None = None


@dataclass
class Prepared:
    """A body that is cut and hashed, ready for `put`. Made outside the writer's thread for large bodies."""

    size: int
    hash: bytes
    whole: bytes | None
    """The body, when it is one part; it has no nodes then."""
    nodes: list[Node]

    def parts(self) -> Iterable[tuple[bytes, Span]]:
        """Every part of the body, as `(hash, bytes)`."""
        if self.whole is not None:
            yield self.hash, self.whole
        for node in self.nodes:
            for inner in node.child or (node,):
                if inner.part is not None:
                    yield inner.part_hash, inner.part


def prepare(body: bytes) -> Prepared:
    """Cut and hash `body`. Pure, needs no connection."""
    layout = split(body)
    if layout[0] is body or not _joins(layout, body):
        return Prepared(len(body), digest(body), body, [])
    return Prepared(len(body), digest(body), None, _nodes(layout))


def put(conn: sqlite3.Connection, body: Prepared) -> Place:
    """Store what is new of a body and return where it is."""
    return put_all(conn, [body])[0]


def put_all(conn: sqlite3.Connection, bodies: Sequence[Prepared | None]) -> list[Place]:
    """`put` for several bodies, the short ones of them in one statement; nowhere for None."""
    places: list[Place] = [(None, None)] * len(bodies)
    short = []
    for number, body in enumerate(bodies):
        if body is None:
            continue
        if body.whole is None:
            places[number] = None, _put_nodes(conn, body.nodes)
        elif body.size < WHOLE_BELOW:
            short.append((number, body.whole))
        else:
            places[number] = _put_whole(conn, body.hash, body.whole), None
    if short:
        packed = _pack_all([whole for _, whole in short])
        rows = [(len(whole), codec, data) for (_, whole), (codec, data) in zip(short, packed, strict=True)]
        for (number, _), sequence in zip(short, many.insert(conn, "parts", _SHORT, rows), strict=True):
            places[number] = sequence, None
    return places


def put_parts(conn: sqlite3.Connection, packed: dict[bytes, tuple[int, str, Span]]) -> None:
    """Store compressed parts ahead of the chain that will name them; `packed`: hash to `(size, codec, bytes)`."""
    for name, (size, codec, data) in packed.items():
        if conn.execute(_FIND_PART, (name,)).fetchone() is None:
            conn.execute(_ADD_PART, (name, size, codec, data))


def missing(conn: sqlite3.Connection, body: Prepared) -> set[bytes]:
    """The hashes of the parts of `body` that are not stored yet."""
    return {name for name, _ in body.parts() if conn.execute(_FIND_PART, (name,)).fetchone() is None}


def get_body(conn: sqlite3.Connection, place: Place) -> bytes | None:
    """The bytes that are stored at `place`, None for nowhere. Raises Failed when the store has lost a piece."""
    part, chain = place
    if part is not None:
        return _get_part(conn, part)
    if chain is None:
        return None
    pieces: list[bytes] = []
    _collect(conn, chain, pieces, {})
    return b"".join(pieces)


def pack(data: Span) -> tuple[str, Span]:
    """`data` as stored: `("zstd", …)`, or `("raw", …)` where compressing does not help."""
    if len(data) >= _COMPRESS_FROM:
        packed = _compressor().compress(data)
        if len(packed) < len(data):
            return "zstd", packed
    return "raw", data


def _pack_all(bodies: list[bytes]) -> list[tuple[str, Span]]:
    """`pack` for several bodies; many of them without letting go of the interpreter for each."""
    if len(bodies) < _TOGETHER_FROM:
        return [pack(body) for body in bodies]
    found: list[tuple[str, Span]] = [("raw", body) for body in bodies]
    wanted = [number for number, body in enumerate(bodies) if len(body) >= _COMPRESS_FROM]
    if wanted:
        frames = _compressor().multi_compress_to_buffer([bodies[number] for number in wanted])
        for place, number in enumerate(wanted):
            if len(frames[place]) < len(bodies[number]):
                found[number] = "zstd", frames[place].tobytes()
    return found


def _compressor() -> zstandard.ZstdCompressor:
    compressor: zstandard.ZstdCompressor | None = getattr(_contexts, "compressor", None)
    if compressor is None:
        compressor = _contexts.compressor = zstandard.ZstdCompressor(level=_LEVEL)
    return compressor


def unpack(codec: str, size: int, data: bytes) -> bytes:
    """The `size` bytes that `pack` was given. Raises Failed when they cannot be had back."""
    if codec == "raw":
        return data
    if codec != "zstd":
        raise Failed(f"a stored part has the unknown codec {codec!r}", "./install.sh")
    decompressor = getattr(_contexts, "decompressor", None)
    if decompressor is None:
        decompressor = _contexts.decompressor = zstandard.ZstdDecompressor()
    try:
        plain: bytes = decompressor.decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise Failed(f"a stored part cannot be decompressed: {error}", "reef status") from error
    return plain


def _node_hash(previous: bytes, kind: bytes, content: bytes) -> bytes:
    return hashlib.sha256(previous + kind + content).digest()[:16]


def _nodes(layout: Layout) -> list[Node]:
    nodes: list[Node] = []
    previous = b""
    for item in layout:
        if isinstance(item, list):
            child = _nodes(list(item))
            node = Node(_node_hash(previous, _CHILD, child[-1].hash), None, child[-1].hash, child)
        else:
            content = digest(item)
            node = Node(_node_hash(previous, _PART, content), item, content)
        nodes.append(node)
        previous = node.hash
    return nodes


def _joins(layout: Layout, body: bytes) -> bool:
    """Whether the spans are the body, byte for byte and in order."""
    at = 0
    for item in layout:
        for span in item if isinstance(item, list) else (item,):
            if not body.startswith(span, at):
                return False
            at += len(span)
    return at == len(body)


def _put_nodes(conn: sqlite3.Connection, nodes: list[Node]) -> int:
    stored, previous = _longest_stored(conn, nodes)
    for node in nodes[stored:]:
        child = None if node.child is None else _put_nodes(conn, node.child)
        part = None if node.part is None else _put_part(conn, node.part_hash, node.part)
        previous = conn.execute(_ADD_NODE, (node.hash, previous, part, child)).lastrowid
    assert previous is not None
    return previous


def _longest_stored(conn: sqlite3.Connection, nodes: list[Node]) -> tuple[int, int | None]:
    """How many of the first nodes are stored, and the sequence of the last of them.

    A stored node has all its predecessors, so this is a search for one border: with growing steps from the end, where
    a conversation grows, then by halves.
    """
    high, step, probe = len(nodes), 1, len(nodes) - 1
    found: tuple[int] | None = None
    while probe >= 0:
        found = conn.execute(_FIND_NODE, (nodes[probe].hash,)).fetchone()
        if found is not None:
            break
        high, probe, step = probe, probe - step, step * 2
    low, sequence = (probe, found[0]) if found is not None else (-1, None)
    while high - low > 1:
        middle = (low + high) // 2
        found = conn.execute(_FIND_NODE, (nodes[middle].hash,)).fetchone()
        if found is None:
            high = middle
        else:
            low, sequence = middle, found[0]
    return low + 1, sequence


def _put_part(conn: sqlite3.Connection, name: bytes, data: Span) -> int:
    found = conn.execute(_FIND_PART, (name,)).fetchone()
    if found is not None:
        return int(found[0])
    codec, body = pack(data)
    return int(conn.execute(_ADD_PART, (name, len(data), codec, body)).lastrowid or 0)


def _put_whole(conn: sqlite3.Connection, name: bytes, data: bytes) -> int:
    """A long body that is one part is nearly always new, so it is compressed and stored without asking first."""
    codec, stored = pack(data)
    cursor = conn.execute(_ADD_NEW_PART, (name, len(data), codec, stored))
    if cursor.rowcount:
        return int(cursor.lastrowid or 0)
    return int(conn.execute(_FIND_PART, (name,)).fetchone()[0])


def _get_part(conn: sqlite3.Connection, part: int) -> bytes:
    row = conn.execute("SELECT codec, size, body FROM parts WHERE sequence = ?", (part,)).fetchone()
    if row is None:
        raise Failed(f"the store has lost part {part}", "reef status")
    return unpack(*row)


def _collect(conn: sqlite3.Connection, chain: int, pieces: list[bytes], known: dict[int, bytes]) -> None:
    nodes = conn.execute(_WALK, (chain,)).fetchall()
    if not nodes:
        raise Failed(f"the store has lost chain {chain}", "reef status")
    for part, child in reversed(nodes):
        if child is not None:
            _collect(conn, child, pieces, known)
        else:
            if part not in known:
                known[part] = _get_part(conn, part)
            pieces.append(known[part])
