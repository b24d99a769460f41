"""What the doctor says of the home around the store, and of the daemon; and where it would go on the network."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from reef.doctor import home, network, serving
from reef.paths import Paths

PEOPLE = [
    ("me", os.getuid(), "/bin/sh"),
    ("ann", 501, "/bin/zsh"),
    ("_www", 70, "/usr/bin/false"),
    ("svc", 502, "/sbin/nologin"),
]


def test_a_home_that_others_can_look_into_is_bad_and_the_hint_mends_it(paths: Paths) -> None:
    assert home.modes(paths).state == "ok"
    paths.data.chmod(0o755)
    check = home.modes(paths)
    assert (check.state, check.hint) == ("bad", f"chmod 700 {paths.data}")
    paths.data.chmod(0o700)
    paths.person_key.write_text("0" * 64)
    paths.person_key.chmod(0o644)
    check = home.modes(paths)
    assert (check.state, check.hint) == ("warn", f"chmod 600 {paths.person_key}")


def test_free_space_is_held_against_what_calls_and_an_upgrade_need(paths: Paths) -> None:
    assert [home.room(paths, free).state for free in (10**7, 10**8 * 5, 10**10)] == ["bad", "warn", "ok"]


def test_a_setting_that_is_wrong_is_named_with_its_place(paths: Paths) -> None:
    paths.config_file.write_text("inference:\n  upstrem-url: http://127.0.0.1:1\n")
    settings, check = home.read_settings(paths)
    assert (settings, check.state) == (None, "bad")
    assert "config.yaml:2" in check.sentence and "upstream-url" in str(check.hint)


def test_other_peoples_accounts_matter_where_no_connection_can_be_traced_to_its_user() -> None:
    told = home.accounts("darwin", False, PEOPLE)
    assert (told.state, "1 other account" in told.sentence and "ann" in told.sentence) == ("warn", True)
    assert "reef.token auto" in str(told.hint)
    assert home.accounts("darwin", True, PEOPLE).state == "ok"
    assert home.accounts("darwin", False, PEOPLE[:1]).state == "ok"
    assert home.accounts("linux", False, PEOPLE).state == "ok"


def test_an_engine_that_does_not_answer_is_bad_and_one_that_starts_is_waited_for() -> None:
    assert serving.upstream({"name": "upstream", "model": "m", "state": "ready"}).state == "ok"
    assert serving.upstream({"name": "embedded", "state": "starting"}).state == "warn"
    down = serving.upstream({"name": "upstream", "state": "down", "detail": "refused", "hint": "ollama serve"})
    assert (down.state, down.hint) == ("bad", "ollama serve")


def test_recording_that_fails_now_is_bad(paths: Paths) -> None:
    assert serving.losses(paths, {"lost": 2, "failure": "database or disk is full"}).state == "bad"
    assert serving.losses(paths, {"lost": 2, "failure": None}).state == "warn"
    assert serving.losses(paths, {"lost": 0, "failure": None}).state == "ok"


def test_every_address_is_listed_without_secrets_and_none_is_contacted(paths: Paths) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        env = {
            "HOME": os.environ["HOME"],
            "REEF_HOME": os.environ["REEF_HOME"],
            "REEF_UPSTREAM_URL": f"http://me:secret@127.0.0.1:{port}/v1",
            "PIP_INDEX_URL": f"http://me:secret@127.0.0.1:{port}/simple",
            "NPM_CONFIG_REGISTRY": f"http://127.0.0.1:{port}/npm?token=secret",
        }
        found = list(network.addresses(paths, env))
        shown = [row.address for row in found]
        assert shown[0] == f"http://127.0.0.1:{port}/v1"
        assert {f"http://127.0.0.1:{port}/simple", f"http://127.0.0.1:{port}/npm"} <= set(shown)
        assert "secret" not in str(found)
        try:
            server.accept()
            raise AssertionError("something was contacted")
        except TimeoutError:
            pass


def test_the_program_writes_one_object_a_line_and_ends_with_5_when_a_check_is_bad(paths: Paths) -> None:
    def run() -> tuple[int, dict[str, str]]:
        done = subprocess.run([sys.executable, "-m", "reef.doctor"], capture_output=True, text=True, timeout=60)
        checks = [json.loads(line)["check"] for line in done.stdout.splitlines()]
        return done.returncode, {check["name"]: check["state"] for check in checks}

    status, states = run()
    assert (status, states["daemon"], states["store"]) == (0, "warn", "ok")
    Path(paths.database).write_bytes(b"x" * 9000)
    status, states = run()
    assert (status, states["store"]) == (5, "bad")
