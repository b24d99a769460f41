"""Backup and restore: one moment of everything, no secret, nothing lost, safe to interrupt anywhere."""

from __future__ import annotations

import fcntl
import io
import os
import sqlite3
import stat
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest
import zstandard
from sqlite_utils import Database

from reef.errors import Conflict, Failed, InvalidInput, NotFound, ReefError
from reef.ids import new_id
from reef.paths import Paths
from reef.records import archive, migrations, restore, schema, swap
from reef.records.backup import back_up, read_refs
from reef.records.reader import Reader
from reef.records.schema import SCHEMA_VERSION, StoreRefused, open_store
from reef.records.writer import Writer
from reef.versions.repository import Repository
from tests.unit.records.calling import recorded

KEYS = (
    "hunter2-upstream-key",
    "the-token-of-this-home",
    "another-token",
    "key-of-the-recipe",
    "an-old-key-in-a-comment",
)
SETTINGS = f"""reef:
  token: {KEYS[1]}
  tokens: [{KEYS[2]}]
  port: 8123
# upstream-api-key: {KEYS[4]}
inference:
  upstream-url: https://me:pass-in-url@example.invalid/v1?api-version=7&code=code-in-url
  upstream-api-key: {KEYS[0]}
recipe:
  config:
    api_key: {KEYS[3]}
    depth: 3
"""


def silent(told: dict[str, Any]) -> None:
    return None


def plain(file: Path) -> bytes:
    """The archive uncompressed."""
    return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(file.read_bytes())).read()


def home(folder: Path) -> Paths:
    found = Paths.from_environ({"REEF_HOME": str(folder), "HOME": str(folder)})
    found.make()
    return found


def fill(paths: Paths, text: str, calls: int = 3) -> list[str]:
    """Calls and one version in a home. Returns the receipts."""
    writer = Writer(paths.database)
    receipts = [recorded(writer, f"{text} {number}".encode()) for number in range(calls)]
    writer.close()
    repository = Repository(paths.versions_git)
    repository.ensure()
    files = {"harness/rules/a.md": text.encode(), "weights/adapter_model.safetensors": text.encode() * 100}
    made = repository.commit(files, {"number": 1}, summary=text)
    repository.advance("default", made, None)
    return receipts


def holds(paths: Paths, receipts: list[str], text: str) -> None:
    """Assert that a home holds exactly these calls and the version of `fill`."""
    reader = Reader(paths.database)
    assert [reader.request_bytes(receipt) for receipt in receipts] == [
        f"{text} {number}".encode() for number in range(len(receipts))
    ]
    assert reader.count_records() == len(receipts)
    reader.close()
    repository = Repository(paths.versions_git)
    assert repository.files(repository.branches()["default"])["harness/rules/a.md"] == text.encode()
    checked = subprocess.run(
        ["git", "-C", str(paths.versions_git), "fsck", "--strict"], capture_output=True, text=True, timeout=60
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    assert [file for file in (paths.versions_git / "lfs").rglob("*") if file.is_file()]


def test_a_backup_restored_into_an_empty_home_is_the_same_home(paths: Paths, tmp_path: Path) -> None:
    receipts = fill(paths, "the first")
    paths.config_file.write_text(SETTINGS)
    saved = back_up(paths, tmp_path / "b", False, silent)["saved"]
    assert (saved["records"], saved["schema"]) == (3, SCHEMA_VERSION)
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600
    other = home(tmp_path / "other")
    assert restore.look(tmp_path / "b")["backup"]["records"] == 3
    restored = restore.restore(other, tmp_path / "b", silent)["restored"]
    assert restored["kept"] is None
    holds(other, receipts, "the first")
    assert "port: 8123" in other.config_file.read_text() and "depth: 3" in other.config_file.read_text()
    private = [file for file in other.data.rglob("*") if stat.S_IMODE(file.stat().st_mode) & 0o077]
    assert not private
    assert sorted(file.name for file in other.data.iterdir()) == ["reef.db", "versions.git"]


def test_no_secret_is_in_a_backup_and_what_was_left_out_is_named(paths: Paths, tmp_path: Path) -> None:
    fill(paths, "x")
    paths.config_file.write_text(SETTINGS)
    secrets = {name: f"secret-{name}-{new_id()}" for name in ("person.key", "token", "last-serve.json")}
    for name, text in secrets.items():
        (paths.state / name).write_text(text)
    subprocess.run(
        ["git", "-C", str(paths.versions_git), "remote", "add", "o", "https://me:pass-of-remote@example.invalid/x"],
        check=True,
        timeout=60,
    )
    saved = back_up(paths, tmp_path / "b", False, silent)["saved"]
    body = plain(tmp_path / "b")
    for secret in (*secrets.values(), *KEYS, "pass-in-url", "code-in-url", "pass-of-remote"):
        assert secret.encode() not in body, secret
    assert b"example.invalid/v1?api-version=7" in body
    assert set(saved["left_out"]) == {
        "reef.token", "reef.tokens", "inference.upstream-url", "inference.upstream-api-key", "recipe.config.api-key",
    }  # fmt: skip
    with tarfile.open(fileobj=io.BytesIO(body)) as tar:
        top = {name.split("/")[0] for name in tar.getnames()}
    assert top == {"reef-backup.json", "reef.db", "versions.git", "config.yaml", "reef-backup.end"}


def test_a_backup_does_not_replace_a_file_unasked(paths: Paths, tmp_path: Path) -> None:
    fill(paths, "x")
    place = tmp_path / "b"
    place.write_text("mine")
    with pytest.raises(Conflict) as refused:
        back_up(paths, place, False, silent)
    assert (place.read_text(), refused.value.hint) == ("mine", f"reef backup {place} --force")
    back_up(paths, place, True, silent)
    assert restore.look(place)["backup"]["records"] == 3
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".b.")] == []
    with pytest.raises(NotFound):
        back_up(paths, tmp_path / "no" / "b", False, silent)


def test_a_backup_taken_while_calls_are_recorded_is_one_whole_moment(paths: Paths, tmp_path: Path) -> None:
    receipts = fill(paths, "before", calls=200)
    writer, stop = Writer(paths.database), threading.Event()

    def write() -> None:
        while not stop.is_set():
            recorded(writer, os.urandom(2000))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        back_up(paths, tmp_path / "b", False, silent)
    finally:
        stop.set()
        thread.join()
        writer.close()
    other = home(tmp_path / "other")
    restore.restore(other, tmp_path / "b", silent)
    connection = sqlite3.connect(other.database)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
    reader = Reader(other.database)
    assert reader.count_records() >= 200
    assert reader.request_bytes(receipts[-1]) == b"before 199"
    reader.close()


def test_refs_are_read_from_files_and_from_the_packed_table_alike(paths: Paths) -> None:
    fill(paths, "x")
    loose = read_refs(paths.versions_git)
    subprocess.run(["git", "-C", str(paths.versions_git), "pack-refs", "--all"], check=True, timeout=60)
    assert read_refs(paths.versions_git) == loose
    assert "refs/heads/default" in loose


def test_what_a_restore_replaces_is_kept_and_there_is_a_way_back(paths: Paths, tmp_path: Path) -> None:
    first = fill(paths, "first")
    paths.config_file.write_text("reef:\n  port: 1111\n")
    back_up(paths, tmp_path / "b", False, silent)
    (paths.versions_git / "HEAD").touch()
    paths.config_file.write_text("reef:\n  port: 2222\n")
    writer = Writer(paths.database)
    later = recorded(writer, b"later")
    writer.close()
    kept = Path(restore.restore(paths, tmp_path / "b", silent)["restored"]["kept"])
    holds(paths, first, "first")
    assert "1111" in paths.config_file.read_text()
    restore.restore(paths, kept, silent)
    reader = Reader(paths.database)
    assert (reader.count_records(), reader.request_bytes(later)) == (4, b"later")
    reader.close()
    assert "2222" in paths.config_file.read_text()
    assert not kept.exists()


@pytest.mark.parametrize("at", range(6))
def test_a_restore_that_is_interrupted_at_any_move_is_finished_by_whoever_comes_next(
    paths: Paths, tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fill(paths, "first")
    back_up(paths, tmp_path / "b", False, silent)
    writer = Writer(paths.database)
    later = recorded(writer, b"later")
    # A reader keeps the write-ahead log beside the database, as a screen that is open does.
    reader = Reader(paths.database)
    assert reader.count_records() == 4
    writer.close()
    real, moves = Path.rename, iter(range(100))

    def rename(self: Path, target: Any) -> Any:
        if next(moves) == at:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        restore.restore(paths, tmp_path / "b", silent)
    monkeypatch.setattr(Path, "rename", real)
    reader.close()
    assert swap.finish(paths)
    assert not swap.finish(paths)
    holds(paths, first, "first")
    (kept,) = paths.data.glob(f"{swap.KEPT}*")
    before = Reader(kept / "reef.db")
    assert (before.count_records(), before.request_bytes(later)) == (4, b"later")
    before.close()


def test_backup_upgrade_restore_and_a_refused_downgrade_lose_nothing(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipts = fill(paths, "old")
    back_up(paths, tmp_path / "old", False, silent)
    with monkeypatch.context() as newer:
        for module in (schema, migrations, restore):
            newer.setattr(module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
        newer.setattr(migrations.store, "_migrations", list(migrations.store._migrations))

        @migrations.store(name="a_column_more")
        def a_column_more(db: Database) -> None:
            db.execute("ALTER TABLE records ADD COLUMN mood TEXT")
            db.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")

        open_store(paths.database).close()
        holds(paths, receipts, "old")
        back_up(paths, tmp_path / "new", False, silent)
        restore.restore(paths, tmp_path / "old", silent)
        # The next start brings it up to date again.
        connection = open_store(paths.database)
        assert connection.execute("SELECT count(mood), count(*) FROM records").fetchone() == (0, 3)
        connection.close()
        holds(paths, receipts, "old")
    before = {file: file.read_bytes() for file in (paths.database, paths.versions_git / "HEAD")}
    for refused in (lambda: restore.look(tmp_path / "new"), lambda: restore.restore(paths, tmp_path / "new", silent)):
        with pytest.raises(StoreRefused, match="schemas up to") as caught:
            refused()
        assert caught.value.hint == "./install.sh"
    assert before == {file: file.read_bytes() for file in before}
    # The store itself is of the newer schema now and is refused too, but the old backup goes in.
    with pytest.raises(StoreRefused, match="newer reef"):
        open_store(paths.database)
    restore.restore(paths, tmp_path / "old", silent)
    holds(paths, receipts, "old")


def test_a_store_that_is_not_migrated_yet_can_be_saved_and_comes_back_as_it_was(tmp_path: Path) -> None:
    paths = home(tmp_path / "h")
    open_store(paths.database).close()
    with sqlite3.connect(paths.database) as connection:
        connection.execute(f"PRAGMA user_version={SCHEMA_VERSION - 1}")
    connection.close()
    assert back_up(paths, tmp_path / "b", False, silent)["saved"]["schema"] == SCHEMA_VERSION - 1


def test_nothing_is_restored_while_the_daemon_holds_the_home(paths: Paths, tmp_path: Path) -> None:
    receipts = fill(paths, "x")
    back_up(paths, tmp_path / "b", False, silent)
    with paths.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, "-m", "reef.records.restore", str(tmp_path / "b")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert '"hint": "reef down"' in done.stdout
    holds(paths, receipts, "x")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_backup_that_is_cut_off_or_damaged_changes_nothing(paths: Paths, tmp_path: Path, share: float) -> None:
    receipts = fill(paths, "x")
    back_up(paths, tmp_path / "b", False, silent)
    whole = (tmp_path / "b").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: int(len(whole) * share)])
    at = int(len(whole) * share)
    (tmp_path / "bad").write_bytes(whole[:at] + bytes(16) + whole[at + 16 :])
    for name in ("cut", "bad"):
        with pytest.raises(ReefError) as refused:
            restore.restore(paths, tmp_path / name, silent)
        assert isinstance(refused.value, Failed | InvalidInput)
    holds(paths, receipts, "x")
    names = {"reef.db", "reef.db-wal", "reef.db-shm", "reef.db.lock"}
    assert {file.name for file in paths.data.iterdir()} <= {*names, "versions.git"}


@pytest.mark.parametrize("name", ["../outside", "reef.db/../../x", "versions.git/hooks/post-checkout", "person.key"])
def test_an_archive_with_any_other_name_in_it_is_refused(paths: Paths, tmp_path: Path, name: str) -> None:
    manifest = archive.Manifest("0", SCHEMA_VERSION, "now", 1, 0, [])
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as tar:
        for member, content in ((archive.MANIFEST, manifest.encoded()), (name, b"x")):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    (tmp_path / "b").write_bytes(zstandard.compress(body.getvalue()))
    with pytest.raises(InvalidInput, match="no backup of reef has"):
        restore.restore(paths, tmp_path / "b", silent)
    assert list(paths.data.iterdir()) == []


def test_a_damaged_store_is_not_saved_as_if_it_were_whole(paths: Paths, tmp_path: Path) -> None:
    writer = Writer(paths.database)
    for _ in range(20):
        recorded(writer, os.urandom(4000).hex().encode())
    writer.close()
    with paths.database.open("r+b") as file:
        for page in range(paths.database.stat().st_size // 8192, paths.database.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    with pytest.raises(ReefError) as refused:
        back_up(paths, tmp_path / "b", False, silent)
    assert refused.value.hint
    assert not (tmp_path / "b").exists()
