"""Forgetting a session: nothing of it is left in any page, log, index or git object; what stays is named."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard

from reef.daemon.forgetting import Forgetting, Wish
from reef.errors import Conflict, Unavailable
from reef.paths import Paths
from reef.records import packing, reports, rows, search, texts
from reef.records.reader import Reader
from reef.records.shrink import LogHeld
from reef.records.writer import Writer
from reef.versions.repository import Repository
from tests.unit.records.calling import recorded

MAGIC = bytes.fromhex("28b52ffd")
WINDOW = 24
SYSTEM = "You are a careful assistant. " * 300


def quiet(text: str) -> None:
    return None


@dataclass
class House:
    """A store, a repository and what forgets in them."""

    paths: Paths
    writer: Writer
    repository: Repository
    forgetting: Forgetting
    reader: Reader
    random: random.Random = field(default_factory=lambda: random.Random(7))

    def session(self, key: str, turns: int, word: str, system: str = SYSTEM) -> list[str]:
        """A session whose every call repeats all before it. `word` is in each of its messages.

        Without a long `system` text its first bodies are stored whole.
        """
        messages: list[dict[str, str]] = []
        receipts = []
        for turn in range(turns):
            messages.append({"role": "user", "content": f"{word} asks {turn}: {self.noise(80)}"})
            body = {"model": "m", "system": system, "messages": messages}
            answer = {"role": "assistant", "content": f"{word} answers {turn}: {self.noise(60)}"}
            receipts.append(
                recorded(
                    self.writer,
                    orjson.dumps(body),
                    orjson.dumps({"choices": [{"message": answer}]}),
                    session=key,
                    preview=f"{word} preview {turn}",
                )
            )
            messages.append(answer)
        return receipts

    def noise(self, words: int) -> str:
        return " ".join("".join(self.random.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(words))

    def index(self) -> None:
        def some(conn: sqlite3.Connection) -> bool:
            if not search.ready(conn):
                search.begin_anew(conn)
            found = search.next_records(conn, 20)
            search.index(conn, [texts.extract(conn, sequence) for sequence in found])
            return bool(found)

        while self.writer.submit(some).result(30):
            pass

    def write(self, operation: Callable[[sqlite3.Connection], Any]) -> Any:
        return self.writer.submit(operation).result(30)

    def forget(self, wish: Wish) -> dict[str, Any]:
        return self.forgetting.forget(self.forgetting.look(wish, quiet)["token"], quiet)


@pytest.fixture
def house(paths: Paths) -> Iterator[House]:
    writer = Writer(paths.database)
    repository = Repository(paths.versions_git)
    repository.ensure()
    reader = Reader(paths.database)
    yield House(paths, writer, repository, Forgetting(paths, writer, repository, threading.Lock()), reader)
    reader.close()
    writer.close()


@dataclass
class Traces:
    """What a session has left before it is forgotten."""

    packed: list[bytes]
    words: set[bytes]
    terms: set[str]
    blobs: set[str]


def traces(house: House, receipts: list[str], word: str, blobs: set[str]) -> Traces:
    """The stored bytes of every part that only these records use, as pieces that no page boundary cuts."""
    packed: list[bytes] = []
    others = b""
    conn = sqlite3.connect(house.paths.database)
    for codec, size, body in conn.execute("SELECT codec, size, body FROM parts").fetchall():
        if word.encode() in packing.unpack(codec, size, body):
            packed += [body[at : at + WINDOW] for at in range(0, len(body) - WINDOW, WINDOW)]
        else:
            others += body
    conn.close()
    # Two texts that end alike may be packed into the same last bytes.
    packed = [piece for piece in packed if piece not in others]
    assert len(packed) > 100
    return Traces(packed, {word.encode(), f"{word} preview".encode()}, terms(house), blobs)


def terms(house: House) -> set[str]:
    conn = sqlite3.connect(house.paths.database)
    conn.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, search_texts, row)")
    found = {str(row[0]) for row in conn.execute("SELECT term FROM temp.terms").fetchall()}
    conn.close()
    return found


def left(house: House, before: Traces, word: str) -> list[str]:
    """Every trace that is still there, in words."""
    found = []
    database = house.paths.database
    for place in [database, *database.parent.glob(f"{database.name}?*")]:
        data = place.read_bytes()
        found += [f"{place.name} holds {sum(piece in data for piece in before.packed)} packed pieces"] * any(
            piece in data for piece in before.packed
        )
        found += [f"{place.name} holds {text!r}" for text in before.words if text in data]
        found += [f"{place.name} holds a frame with the word" for text in frames(data) if word.encode() in text]
    found += [f"the index has {term}" for term in terms(house) if word in term]
    for name, body in objects(house.repository.path):
        found += [f"git has {name}"] * (name in before.blobs or word.encode() in body)
    for file in house.paths.steps.rglob("*"):
        found += [f"{file} is there"] * (file.is_file() and word.encode() in file.read_bytes())
    if house.paths.daemon_log.exists():
        found += ["the log names it"] * (b"secret-session" in house.paths.daemon_log.read_bytes())
    return found


def frames(data: bytes) -> Iterator[bytes]:
    """What can be had of each zstd frame that begins anywhere, with and without the dictionary."""
    at = data.find(MAGIC)
    while at >= 0:
        for dictionary in (None, packing.dictionary(3)):
            reader = zstandard.ZstdDecompressor(dict_data=dictionary).stream_reader(data[at : at + 8192])
            text = b""
            try:
                while piece := reader.read(512):
                    text += piece
            except zstandard.ZstdError:
                pass
            yield text
        at = data.find(MAGIC, at + 1)


def objects(repository: Path) -> Iterator[tuple[str, bytes]]:
    """Every object that git has, reached or not."""
    listed = git(repository, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").decode()
    for name, kind in (line.split() for line in listed.splitlines()):
        yield name, git(repository, "cat-file", kind, name)


def git(repository: Path, *arguments: str) -> bytes:
    command = ["git", f"--git-dir={repository}", *arguments]
    return subprocess.run(command, check=True, capture_output=True, timeout=60).stdout


def grown(house: House, word: str) -> tuple[list[str], set[str]]:
    """A kept and a secret session with all that can be made from the secret one; its receipts and its candidate."""
    house.session("kept-session", 15, "plain")
    secret: list[str] = []
    for round in range(3):
        secret += house.session("secret-session", 6, word, SYSTEM if round < 2 else "")
        house.session(f"kept-{round}", 4, "plain", "")
    house.index()
    house.write(lambda conn: rows.open_session(conn, "default", key="secret-session", title=f"{word} title"))
    body = {"score": 0.0, "feedback": f"{word} was bad", "references": secret[:2]}
    report = house.write(lambda conn: reports.store_report(conn, "default", body, "person"))[0]["id"]
    ask = house.write(lambda conn: rows.add_ask(conn, "default", f"never {word} again", session="secret-session"))[0]
    blobs = candidate(house, word, report, ask)
    house.paths.daemon_log.parent.mkdir(parents=True, exist_ok=True)
    house.paths.daemon_log.write_text("INFO fine\nINFO session secret-session ended\nINFO fine too\n")
    (house.paths.database.parent / "reef.db.schema-5").write_bytes(f"{word} of before".encode())
    return secret, blobs


def candidate(house: House, word: str, report: str, ask: str) -> set[str]:
    """A rejected step made from a report and an ask, with its candidate, folder and one model call."""
    base = house.repository.commit({"harness/rules/base.md": b"be kind"}, {"number": 1})
    house.repository.advance("default", base, None)
    text = f"do not say {word}".encode()
    release = house.repository.commit({"harness/rules/new.md": text}, {"candidate": True}, base, f"about {word}")
    house.repository.keep_candidate("default", 1, release)
    house.write(
        lambda conn: rows.add_step(
            conn, "default", recipe="reefine", state="rejected", asks=[ask], consumed=[report, ask],
            summary=f"about {word}", candidate=release, mutations=[{"text": word}],
        )
    )  # fmt: skip
    house.write(lambda conn: rows.add_activity(conn, "default", 1, "wrote", f"wrote {word}", False))
    house.write(lambda conn: rows.open_session(conn, "default", kind="step", step=1, key="step-one"))
    house.session("step-one", 1, word)
    house.index()
    folder = house.paths.steps / "default" / "1"
    folder.mkdir(parents=True)
    (folder / "proposer.json").write_text(f"{{{word}}}")
    return set(house.repository.listing(release).values()) - set(house.repository.listing(base).values()) | {release}


@pytest.mark.parametrize("secure", [True, False], ids=["as it is", "without secure_delete"])
def test_nothing_of_a_forgotten_session_is_left_anywhere(
    house: House, secure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = "zanzibarine"
    if not secure:
        # The control: the same look finds what is left then. What clears the free room of pages would hide it.
        monkeypatch.setattr("reef.records.shrink.scrub", lambda path, turn: None)
        house.write(lambda conn: conn.execute("PRAGMA secure_delete=OFF").fetchall())
    secret, blobs = grown(house, word)
    before = traces(house, secret, word, blobs)
    assert before.terms >= {word} and left(house, before, word)
    done = house.forget(Wish(session="secret-session"))
    assert done["records"] == len(secret) + 1
    if secure:
        assert left(house, before, word) == []
        assert house.paths.daemon_log.read_text() == "INFO fine\nINFO fine too\n"
    else:
        assert left(house, before, word)


def test_what_was_not_chosen_can_still_be_read_and_found(house: House) -> None:
    grown(house, "zanzibarine")
    kept = [row["agent_record_id"] for row in house.reader.records(limit=1000) if row["session"] != "secret-session"]
    kept = [receipt for receipt in kept if house.reader.record(receipt)["session"] != "step-one"]
    bodies = {receipt: house.reader.request_bytes(receipt) for receipt in kept}
    house.forget(Wish(session="secret-session"))
    assert {receipt: house.reader.request_bytes(receipt) for receipt in kept} == bodies
    assert house.reader.count_records() == len(kept)
    assert house.repository.files(house.repository.head("default") or "") == {"harness/rules/base.md": b"be kind"}
    with sqlite3.connect(house.paths.database) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert conn.execute("PRAGMA foreign_key_check").fetchall() == []
    conn.close()


def test_a_look_names_everything_that_goes_and_what_stays(house: House) -> None:
    secret, _ = grown(house, "zanzibarine")
    found = house.forgetting.look(Wish(receipts=(secret[0],)), quiet)
    assert (found["records"], len(found["reports"]), found["asks"]) == (2, 1, [])
    # The report that named this record was used by the step, whose own call is a record as well.
    assert [(row["step"], row["state"]) for row in found["steps"]] == [(1, "rejected")]
    assert found["reports"][0]["others"] == 1
    assert found["copies"] == ["reef.db.schema-5"]
    # Its message is repeated by every later call of its session.
    assert found["shared"]["records"] >= 5 and found["shared"]["receipts"]
    assert found["same_session"] == len(secret) - 1
    whole = house.forgetting.look(Wish(session="secret-session"), quiet)
    assert len(whole["asks"]) == 1 and whole["records"] == len(secret) + 1


def test_records_are_found_by_a_text_in_any_of_their_bodies(house: House) -> None:
    secret, _ = grown(house, "zanzibarine")
    found = house.forgetting.look(Wish(matching="ZANZIBARINE asks 0"), quiet)
    assert set(secret) <= set(found["receipts"])
    assert house.forgetting.look(Wish(matching="zanzibarine", scenario="default"), quiet)["records"] == len(secret) + 1


def test_what_was_not_shown_is_not_removed(house: House) -> None:
    secret = house.session("secret-session", 2, "zanzibarine")
    token = house.forgetting.look(Wish(session="secret-session"), quiet)["token"]
    body = {"score": 1, "references": [secret[0]]}
    house.write(lambda conn: reports.store_report(conn, "default", body, "person"))
    with pytest.raises(Conflict, match="something else"):
        house.forgetting.forget(token, quiet)
    assert house.reader.count_records() == 2


def test_kinds_that_are_kept_stay(house: House) -> None:
    secret, _ = grown(house, "zanzibarine")
    house.forget(Wish(session="secret-session", keep=frozenset({"reports", "asks", "steps"})))
    assert [row["feedback"] for row in house.reader.reports()] == ["zanzibarine was bad"]
    assert house.reader.asks()[0]["text"] == "never zanzibarine again"
    assert house.reader.step("default", 1)["summary"] == "about zanzibarine"
    assert (house.paths.steps / "default" / "1").is_dir()
    assert house.reader.receipts(secret[0]) == []


def test_a_reader_that_holds_the_log_is_named_and_asking_again_finishes(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reef.records.shrink.HELD_S", 0.2)
    house.session("secret-session", 3, "zanzibarine")
    program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN');"
    program += "c.execute('SELECT count(*) FROM records').fetchone(); print('reading', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(house.paths.database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"reading\n"
        with pytest.raises(LogHeld, match=rf"pid {other.pid} \(python"):
            house.forget(Wish(session="secret-session"))
        assert house.forgetting.unfinished()
        other.kill()
    assert house.forgetting.finish(quiet) is not None
    assert house.forgetting.finish(quiet) is None and house.reader.count_records() == 0


def test_a_forgetting_that_a_stop_broke_off_is_finished_by_the_next_start(house: House) -> None:
    word = "zanzibarine"
    secret, blobs = grown(house, word)
    before = traces(house, secret, word, blobs)
    turns = iter([None] * 6)

    def stop_soon() -> None:
        if next(turns, "over") == "over":
            raise Unavailable("stopping")

    token = house.forgetting.look(Wish(session="secret-session"), quiet)["token"]
    house.forgetting.turn = stop_soon  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        house.forgetting.forget(token, quiet)
    later = Forgetting(house.paths, house.writer, house.repository, threading.Lock())
    assert later.unfinished() and later.finish(quiet)
    assert left(house, before, word) == []


def test_a_call_that_is_recorded_meanwhile_keeps_what_it_repeats(house: House) -> None:
    """A call that goes on from what is being forgotten stands on nodes that are about to be deleted."""
    house.session("kept-session", 3, "plain")
    late: dict[str, bytes] = {}
    for turn in range(1, 14):
        house.session(f"secret-{turn}", 6, "zanzibarine")
        newest = house.reader.records(session=f"secret-{turn}")[0]["agent_record_id"]
        again = (house.reader.request_bytes(newest) or b"")[:-2] + b',{"role":"user","content":"again"}]}'
        token = house.forgetting.look(Wish(session=f"secret-{turn}"), quiet)["token"]
        turns = iter(range(1, 1000))

        def record(turns: Iterator[int] = turns, wanted: int = turn, body: bytes = again) -> None:
            if next(turns) == wanted:
                late[recorded(house.writer, body, session="later")] = body

        house.forgetting.turn = record  # type: ignore[method-assign]
        house.forgetting.forget(token, quiet)
    assert len(late) == 13
    assert {receipt: house.reader.request_bytes(receipt) for receipt in late} == late
    conn = sqlite3.connect(house.paths.database)
    assert conn.execute("PRAGMA foreign_key_check").fetchall() == []
    conn.close()


def test_a_published_version_stays_whole_and_is_named(house: House) -> None:
    grown(house, "zanzibarine")
    base = house.repository.head("default") or ""
    made = house.repository.commit({"harness/rules/new.md": b"zanzibarine"}, {"number": 2}, base)
    house.repository.advance("default", made, base)
    house.write(lambda conn: rows.update_step(conn, "default", 1, state="published", version=2))
    house.write(
        lambda conn: rows.add_version(
            conn, "default", 2, release_id=made, content_id=house.repository.content_id(made), parent=base, step=1,
            operation="training", state="published", summary="about it",
        )
    )  # fmt: skip
    done = house.forget(Wish(session="secret-session"))
    assert done["versions"] == [{"scenario": "default", "version": 2}]
    assert house.repository.files(made) == {"harness/rules/new.md": b"zanzibarine"}
