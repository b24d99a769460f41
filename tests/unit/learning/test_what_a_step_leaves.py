"""What a step leaves behind: nothing of a credential on the disk, nothing that breaks the next step."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import pytest

from reef.credentials import Sieve, hold
from reef.learning import output
from reef.learning.models import Budget, Model
from reef.learning.supervisor import Supervisor
from reef.records import rows
from tests.fakes.raw_server import REPLY, answering, whole
from tests.unit.learning.conftest import PASSES, RULE, Room

Write = Callable[..., str]
KEY = "sk-" + "a1B2" * 6
SECRET = "hunter2-secret"


async def test_no_credential_of_a_step_reaches_the_disk(room: Room, recipe: Write) -> None:
    hold(SECRET)
    # Neither stands whole in the recipe's own file.
    recipe(
        head="import os\nWORDS = ' '.join(['sk-' + 'a1B2' * 6, 'hunter2-' + 'secret'])",
        body="""
def grow(self, batch, context):
    print("said", WORDS, flush=True)
    os.system(f"echo {WORDS} >&2; printf -- '-----BEGIN PRIVATE KEY-----\\\\nMIIE'; sleep 0.05; echo MIIE")
    (context.folder / "mine").mkdir()
    (context.folder / "mine" / "note.json").write_text(WORDS)
    context.activity("propose", WORDS)
    text = f"use {WORDS.split()[1]}" if context.step == 1 else f"rule {context.step}"
    rule = {"op": "create", "id": f"r{context.step}", "kind": "rules", "config": {"text": text}}
    return Candidate(WORDS, [rule], notes={WORDS: [WORDS]}, state={"a": WORDS})
def evaluate(self, candidate, context):
    return Evaluation("reach", [Group("admission", "pass", WORDS), Group(WORDS, "pass", WORDS)])
""",
    )
    first = await room.settled(await room.ask("do it"))
    assert (first["state"], "credential" in first["reason"]) == ("rejected", True)
    second = await room.settled(await room.ask("again"))
    assert (second["state"], second["version"]) == ("published", 2), second["reason"]
    assert room.reader.version("s", 2)["summary"] == "[redacted:openai-key] [redacted:secret]"
    assert "said [redacted:openai-key] [redacted:secret]" in room.output(1)
    assert "[redacted:private-key]" in room.output(1)
    for name, content in _stored(room.paths.data).items():
        assert not any(text in content for text in (SECRET.encode(), KEY.encode(), b"MIIE")), name


def _stored(data: Path) -> dict[str, bytes]:
    """Every file below the data folder by name, and what git holds, unpacked."""
    found = {str(file): file.read_bytes() for file in data.rglob("*") if file.is_file()}
    git = subprocess.run(
        ["git", f"--git-dir={data / 'versions.git'}", "cat-file", "--batch-all-objects", "--batch"],
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert b"rule 2" in git
    return found | {"git": git}


async def test_half_a_surrogate_pair_in_what_a_recipe_says_does_not_break_the_next_step(
    room: Room, recipe: Write
) -> None:
    recipe("""
def grow(self, batch, context):
    context.activity("propose", f"found {context.state}")
    config = {"text": f"rule {context.step} \\ud800"}
    rule = {"op": "create", "id": f"r{context.step}", "kind": "rules", "config": config}
    return Candidate("sum \\udfff", [rule], notes={"a": "\\ud800"}, state={"\\ud800": "\\udfff"})
def evaluate(self, candidate, context):
    return Evaluation("reach", [Group("reach \\ud800", "pass", "seen \\ud800")])
""")
    for number in (1, 2):
        ask = await room.settled(await room.ask("do it"))
        assert (ask["state"], ask["version"]) == ("published", number + 1), ask["reason"]
    step = room.step(2)
    assert (step["summary"], step["notes"]) == ("sum ?", {"a": "?"})
    assert step["activity"][0]["text"] == "found {'?': '?'}"
    head = (await room.home.publisher.head("s")).release_id
    assert room.home.repository.files(head)["harness/rules/r2.md"] == b"rule 2 ?"


@pytest.mark.parametrize(
    "usage", ['{"total_tokens":"abc"}', "[1]", '{"total_tokens":1e999}', '{"total_tokens":-5}', "5"]
)
async def test_a_reply_that_counts_its_tokens_oddly_is_a_reply(usage: str, tmp_path: Path) -> None:
    body = REPLY.removesuffix(b"}") + b',"usage":' + usage.encode() + b"}"
    async with answering(whole(body.replace(b'"hi"', b'"hi \\ud800"'))) as url:
        model = Model(url, "token", "m", Budget(1), tmp_path / "proposer.jsonl", timeout_s=10)
        reply = await asyncio.to_thread(model.chat, [])
        model.close()
    assert (reply.text, reply.finish_reason, model.budget.spent_tokens) == ("hi ?", "stop", 0)


async def test_a_log_is_whole_up_to_its_limit_however_the_pieces_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"one {KEY} two\n".encode() * 50
    for room, size in ((10_000, 7), (10_000, 64 * 1024), (300, 7)):
        monkeypatch.setattr(output, "MAX_BYTES", room)
        reading, writing = os.pipe()
        copying = asyncio.create_task(output.copy(reading, FileIO(tmp_path / f"{room}-{size}", "a")))
        for start in range(0, len(text), size):
            os.write(writing, text[start : start + size])
            await asyncio.sleep(0)
        os.close(writing)
        await copying
        found = (tmp_path / f"{room}-{size}").read_bytes()
        expected = b"one [redacted:openai-key] two\n" * 50
        assert found == (expected if room > 300 else expected[:300] + b"\n(more was printed and is not kept)\n")


@pytest.mark.parametrize("size", [1, 3, 11, 1000])
def test_a_credential_that_comes_in_pieces_is_cut_out_as_if_at_once(size: int) -> None:
    hold(SECRET)
    end = "-----END PRIVATE KEY-----"
    whole_text = f'x{{"a":"{KEY}","b":"{SECRET}"}} -----BEGIN PRIVATE KEY-----\nMI IE\nMIIE\n{end} é {"z" * 100} {KEY}'
    text, sieve = whole_text.encode(), Sieve()
    found = b"".join(sieve.feed(text[start : start + size]) for start in range(0, len(text), size)) + sieve.rest()
    assert (
        found.decode()
        == ('x{"a":"[redacted:openai-key]","b":"[redacted:secret]"} [redacted:private-key] é ' + "z" * 100)
        + " [redacted:openai-key]"
    )


def test_text_without_a_blank_is_not_held_back_for_ever() -> None:
    sieve = Sieve()
    passed = sum(len(sieve.feed(b'{"a":"b"},' * 100)) for _ in range(100))
    assert passed > 90_000
    sieve = Sieve()
    assert sum(len(sieve.feed(b"A" * 1000)) for _ in range(200)) > 100_000


def test_only_regular_files_of_the_folder_itself_are_looked_through(tmp_path: Path) -> None:
    folder, outside = tmp_path / "step", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    for place in (outside / "note", folder / "note"):
        place.write_text(json.dumps({"key": KEY}))
    (folder / "link").symlink_to(outside / "note")
    (folder / "linked").symlink_to(outside)
    os.mkfifo(folder / "fifo")
    output.sweep(folder)
    assert json.loads((folder / "note").read_text()) == {"key": "[redacted:openai-key]"}
    assert json.loads((outside / "note").read_text()) == {"key": KEY}
    (tmp_path / "turned").symlink_to(outside)
    output.sweep(tmp_path / "turned")
    assert json.loads((outside / "note").read_text()) == {"key": KEY}


async def test_what_a_step_left_when_the_daemon_died_is_looked_through_at_the_next_start(
    room: Room, recipe: Write
) -> None:
    recipe(RULE + PASSES)
    folder = room.paths.steps / "s" / "1"
    folder.mkdir(parents=True)
    (folder / "proposer.jsonl").write_text(KEY)
    await room.home.writer.write(lambda conn: rows.add_step(conn, "s", recipe="tried"))
    assert await Supervisor(room.home).start() == [("s", 1)]
    assert (folder / "proposer.jsonl").read_text() == "[redacted:openai-key]"
