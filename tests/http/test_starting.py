"""One daemon a home: the lock, the port, the discovery file, and what a second start says."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reef import __version__
from reef.discovery import is_ours, read_discovery
from reef.ids import utc_now
from reef.records import rows
from reef.records.reader import Reader
from reef.records.writer import Writer
from tests.http.running import Home, chat, wait_for


@pytest.fixture
def stranger() -> Iterator[socket.socket]:
    """A listening socket of somebody else, with a free port after it most of the time."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        found.listen()
        yield found


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=30)
    return process.returncode, out.decode(), err.decode()


def test_the_discovery_file_says_who_answers_and_is_gone_after_the_stop(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    found = read_discovery(home.paths)
    assert found is not None and home.process is not None
    assert (found["pid"], found["version"], found["host"]) == (home.process.pid, __version__, "127.0.0.1")
    assert found["url"] == f"http://127.0.0.1:{found['port']}"
    assert found["facts"] == {"recipe": "basic", "upstream": home.upstream, "model": "fake-model", "port": None}
    assert is_ours(found, home.paths)
    assert home.stop() == 0
    assert not home.paths.discovery.exists()


def test_everything_in_the_home_is_the_persons_alone(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    chat(home.nobody, "hi")
    home.stop()
    for path in (home.folder / "reef").rglob("*"):
        # git makes its objects readable by all; the folder above them is closed.
        if path.is_dir() or home.paths.versions_git not in path.parents:
            mode = stat.S_IMODE(path.stat().st_mode)
            assert not mode & 0o077, f"{path} has mode {mode:o}"


def test_a_second_start_with_the_same_settings_says_already_running(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    status, out, _ = ended(home.launch(foreground=True))
    assert (status, out.split(" · ")[:2]) == (0, ["already running", home.url])
    assert ended(home.launch())[0] == 0


@pytest.mark.parametrize(
    ("flag", "word"),
    [
        (["recipe.implementation", "reefine"], "recipe (running: basic, asked for: reefine)"),
        (["inference.upstream-url", "http://127.0.0.1:9"], "upstream (running: http"),
        (["inference.upstream-model", "other"], "model (running: fake-model, asked for: other)"),
        (["reef.port", "9"], "port (running: "),
    ],
)
def test_a_second_start_with_other_settings_fails_and_names_what_differs(
    home: Home, flag: list[str], word: str
) -> None:
    status, _, err = ended(home.launch(flag, foreground=True))
    assert status == 1
    assert word in err
    assert err.startswith("error: ") and err.endswith("\n\nhint: reef down && reef up\n")
    assert err.count("already runs") == 1
    status, _, err = ended(home.launch(flag))
    assert (status, json.loads(err)["error"]["code"]) == (1, "conflict")


def test_a_start_in_the_background_that_asks_for_nothing_takes_the_daemon_that_runs(home: Home) -> None:
    assert ended(home.launch(base=False))[0] == 0
    status, _, err = ended(home.launch(base=False, foreground=True))
    assert (status, "upstream (running: http" in err) == (1, True)


def test_an_explicit_port_that_is_taken_fails_and_names_the_holder(
    new_home: Callable[..., Home], stranger: socket.socket
) -> None:
    port = stranger.getsockname()[1]
    status, _, err = ended(new_home().launch(["reef.port", str(port)], foreground=True))
    assert status == 1
    assert f"port {port} is taken by pid {os.getpid()} (" in err
    assert "hint: " in err


def test_a_port_that_a_profile_chose_moves_to_the_next_free_one(
    new_home: Callable[..., Home], stranger: socket.socket
) -> None:
    home = new_home()
    port = stranger.getsockname()[1]
    folder = home.paths.config / "recipes" / "mine"
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(f'name = "mine"\nhelp = "x"\nsurface = []\n[profile.reef]\nport = {port}\n')
    serve = {"flags": [["recipe.implementation", "mine"], ["inference.upstream-url", home.upstream]]}
    home.process = subprocess.Popen(
        [sys.executable, "-P", "-m", "reef.daemon"],
        env=home.env | {"REEF_SERVE": json.dumps(serve)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    home.wait_up(home.process)
    found = read_discovery(home.paths)
    assert found is not None and port < found["port"] <= port + 50
    assert home.nobody.get("/healthz").json() == {"ok": True}


def test_a_stale_discovery_file_is_no_daemon_and_its_pid_is_left_alone(
    new_home: Callable[..., Home], stranger: socket.socket
) -> None:
    home = new_home()
    bystander = subprocess.Popen(["sleep", "60"])
    home.paths.make()
    url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
    home.paths.discovery.write_text(json.dumps({"pid": bystander.pid, "port": 1, "url": url, "version": "0"}))
    home.start()
    assert home.nobody.get("/healthz").status_code == 200
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_setting_that_is_wrong_ends_the_start_with_2_and_a_hint(new_home: Callable[..., Home]) -> None:
    status, _, err = ended(new_home().launch(["reef.prot", "1"], foreground=True))
    assert status == 2
    assert "reef.prot" in err and "hint: did you mean 'reef.port'?" in err


def test_what_the_settings_choose_and_is_not_there_ends_the_start_with_2_before_anything_is_made(
    new_home: Callable[..., Home],
) -> None:
    home = new_home()
    status, _, err = ended(home.launch(["harness.adapter", "nope"], foreground=True))
    assert status == 2
    assert re.match(r"error: harness\.adapter: there is no adapter 'nope' \(known: .*\bpi\b", err)
    assert not home.paths.data.exists() and not home.paths.state.exists()


def test_no_secret_of_the_environment_reaches_a_child(new_home: Callable[..., Home]) -> None:
    secrets = {"REEF_TOKEN": "t" * 20, "REEF_UPSTREAM_API_KEY": "k" * 20}
    home = new_home(environ=secrets).start()
    assert home.process is not None
    home.http("t" * 20).post("/reef/scenarios", json={"name": "child", "recipe": "reefine"})
    home.http("t" * 20, **{"x-reef-scenario": "child"}).post("/reef/train", json={"text": "[[propose no]] x"})

    def of_step() -> list[bytes]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command, environ = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
            except OSError:
                continue
            if b"reef.learning.step" in command and str(home.folder).encode() in environ:
                found.append(environ)
        return found

    for environ in wait_for(of_step):
        assert b"tttttttttt" not in environ and b"kkkkkkkkkk" not in environ and b"REEF_SERVE" not in environ


def test_what_an_earlier_daemon_left_half_made_is_finished_or_undone_behind_the_start(
    new_home: Callable[..., Home],
) -> None:
    home = new_home()
    home.paths.make()
    writer = Writer(home.paths.database)
    writer.submit(lambda conn: rows.add_scenario(conn, "half", recipe="basic", adapter="pi")).result()
    writer.submit(lambda conn: rows.add_scenario(conn, "broken", recipe="basic", adapter="gone")).result()
    writer.close()
    home.start()

    def names() -> dict[str, str]:
        return {row["name"]: row["state"] for row in home.nobody.get("/reef/scenarios").json()["scenarios"]}

    wait_for(lambda: names() == {"half": "ready", "default": "ready"})
    assert Reader(home.paths.database).version("half", 1)["state"] == "published"
    assert chat(home.nobody, "hi", **{"x-reef-scenario": "half"}).status_code == 200


def test_a_call_to_a_half_made_scenario_finishes_it(new_home: Callable[..., Home]) -> None:
    home = new_home()
    home.paths.make()
    writer = Writer(home.paths.database)
    for number in range(30):
        name = f"half{number}"
        writer.submit(lambda conn, name=name: rows.add_scenario(conn, name, recipe="basic", adapter="pi")).result()  # type: ignore[misc]
    writer.close()
    home.start()
    assert chat(home.nobody, "hi", **{"x-reef-scenario": "half29"}).status_code == 200


def test_a_session_whose_process_has_gone_is_closed_at_the_start(new_home: Callable[..., Home]) -> None:
    home = new_home()
    home.paths.make()
    gone = subprocess.Popen(["true"])
    gone.wait()
    writer = Writer(home.paths.database)
    id = writer.submit(
        lambda conn: rows.open_session(conn, "default", adapter="pi", token_hash=b"h" * 32, pid=gone.pid)
    ).result()
    writer.close()
    home.start()
    assert wait_for(lambda: Reader(home.paths.database).session(id)["closed_at"]) <= utc_now()


def test_a_start_while_the_daemon_ends_waits_and_takes_over(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    first = home.process
    assert first is not None
    first.terminate()
    home.start()
    assert first.wait(10) == 0
    assert home.process is not first
    assert home.nobody.get("/healthz").json() == {"ok": True}


def test_of_many_starts_at_once_one_runs_and_the_others_find_it(new_home: Callable[..., Home]) -> None:
    home = new_home()
    started = [home.launch() for _ in range(4)]
    deadline = time.monotonic() + 60
    while sum(process.poll() is None for process in started) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    (home.process,) = [process for process in started if process.poll() is None]
    assert [process.returncode for process in started if process is not home.process] == [0, 0, 0]
    home.wait_up(home.process)
