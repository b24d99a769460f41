"""doctor, disk, backup, restore and usage as they are typed, before a daemon that runs and after it."""

from __future__ import annotations

import json
from pathlib import Path

from reef.records.schema import open_store
from reef.records.writer import Writer
from tests.cli.conftest import Live, home_environment
from tests.cli.shell import on_terminal, reef
from tests.unit.records.calling import opened, recorded, settled


def test_doctor_finds_a_running_home_well(live: Live) -> None:
    shown = live.reef("doctor")
    assert (shown.status, shown.err) == (0, "")
    checks = {check["name"]: check["state"] for check in live.json("doctor")}
    assert checks.keys() >= {
        "settings", "disk", "modes", "accounts", "daemon", "recording", "engine", "store", "references", "log", "clock",
        "prompts", "tools", "words",
    }  # fmt: skip
    assert "bad" not in checks.values()
    assert (checks["daemon"], checks["store"], checks["references"]) == ("ok", "ok", "ok")


def test_doctor_ends_with_5_and_says_which_check_says_no(tmp_path: Path) -> None:
    env = home_environment(tmp_path)
    store = tmp_path / "reef" / "data" / "reef.db"
    store.parent.mkdir(parents=True)
    store.write_bytes(b"not a database" * 1000)
    shown = reef("doctor", env=env)
    assert shown.status == 5
    assert "THE STORE IS DAMAGED" in shown.out and ".recover" in shown.out
    assert "store" in shown.err.splitlines()[0]
    status, screen = on_terminal("doctor", env=env)
    assert (status, "✗ bad" in screen) == (5, True)


def test_every_address_that_reef_would_contact_is_listed(live: Live) -> None:
    rows = live.json("doctor", "--network")
    assert "model calls" in {row["why"] for row in rows}
    assert all(row["address"] and row["when"] for row in rows)


def test_disk_lists_what_takes_how_much(live: Live) -> None:
    found = live.json("disk")
    names = {share["name"] for share in found["shares"]}
    assert names >= {
        "bodies",
        "index",
        "events",
        "log",
        "versions",
        "lfs",
        "steps",
        "logs",
        "agents",
        "models",
        "backups",
    }
    assert found["total"] == sum(share["size"] for share in found["shares"]) > 0
    assert "free on this disk" in live.reef("disk").out


def test_a_running_home_is_saved_and_restored_elsewhere_but_not_over_itself(live: Live, tmp_path: Path) -> None:
    receipt = live.chat("keep this")
    file = tmp_path / "reef.backup"
    saved = live.json("backup", str(file))
    assert saved["records"] >= 1
    again = live.reef("backup", str(file))
    assert (again.status, f"hint: reef backup {file} --force" in again.err) == (1, True)
    refused = live.reef("restore", str(file), "--yes")
    assert (refused.status, "hint: reef down" in refused.err) == (1, True)
    unsure = live.reef("restore", str(file))
    assert (unsure.status, "needs your yes" in unsure.err) == (2, True)
    env = home_environment(tmp_path / "other")
    done = reef("restore", str(file), env=env)
    assert (done.status, done.err.strip()) == (0, "next: reef up")
    assert "keep this" in reef("records", "show", receipt, "--request", env=env).out
    person = live.paths.person_key.read_bytes().strip()
    assert person not in b"".join(
        file.read_bytes() for file in (tmp_path / "other" / "reef").rglob("*") if file.is_file()
    )


def test_a_backup_on_a_terminal_shows_how_far_it_is(live: Live, tmp_path: Path) -> None:
    status, screen = live.on_terminal("backup", str(tmp_path / "b"))
    assert status == 0
    assert "copying the database" in screen and "writing the archive" in screen
    assert screen.splitlines()[-1].rpartition("\x1b[K")[2].startswith(f"saved {tmp_path}"[:40])


def test_a_session_may_neither_save_nor_restore_nor_read_usage(live: Live, tmp_path: Path) -> None:
    _, token = live.session(tmp_path)
    for arguments in (("backup", str(tmp_path / "b")), ("restore", str(tmp_path / "b")), ("usage",)):
        refused = live.reef(*arguments, env={"REEF_SESSION": token})
        assert (refused.status, "an agent's session cannot" in refused.err) == (5, True)


def test_usage_is_the_same_from_the_daemon_and_from_the_database(live: Live, tmp_path: Path) -> None:
    live.chat("count this", scenario="counted")
    online = live.json("usage", "--by", "model", "-s", "counted")
    assert online["total"]["calls"] == 1
    assert [row["key"] for row in online["rows"]] == ["fake-model"]
    file = tmp_path / "b"
    live.json("backup", str(file))
    env = home_environment(tmp_path / "other")
    reef("restore", str(file), env=env)
    offline = json.loads(reef("usage", "-s", "counted", "--json", env=env).out)
    assert offline["total"] == online["total"] and offline["rows"] == online["rows"]
    assert live.json("usage", "--by", "tool", "-s", "counted")["replies_read"] == 1
    assert "list prices of 20" in live.reef("usage", "-s", "counted").err


def test_one_line_about_today_for_a_status_line(tmp_path: Path) -> None:
    env = home_environment(tmp_path)
    assert reef("usage", "--line", env=env).out == "reef –\n"
    (tmp_path / "reef" / "data").mkdir(parents=True)
    writer = Writer(tmp_path / "reef" / "data" / "reef.db")
    settled(writer, opened(writer, model="gpt-5.4"), prompt_tokens=1_200_000, completion_tokens=30_000)
    settled(writer, opened(writer, model="gpt-5.4", started_at="2026-01-01T00:00:00.000Z"), prompt_tokens=9)
    recorded(writer)
    writer.close()
    assert reef("usage", "--line", env=env).out == "2 calls · 1.2M in · 30k out · $3.45\n"
    (tmp_path / "reef" / "config").mkdir()
    (tmp_path / "reef" / "config" / "config.yaml").write_text("usage: {prices: {gpt-5.4: {input: 0.001, output: 0}}}")
    assert reef("usage", "--line", env=env).out == "2 calls · 1.2M in · 30k out · $0.0012\n"


def test_usage_of_a_home_without_calls_says_so(tmp_path: Path) -> None:
    env = home_environment(tmp_path)
    store = tmp_path / "reef" / "data" / "reef.db"
    store.parent.mkdir(parents=True)
    open_store(store).close()
    shown = reef("usage", env=env)
    assert (shown.status, shown.out) == (0, "")
    assert "no calls since" in shown.err
