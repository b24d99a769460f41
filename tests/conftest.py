"""The sealed room: every test has its own home, no user configuration, no key, no colour, no proxy.

The run also ends with the list of skipped tests. In CI a skip that `tests/allowed_skips.txt` does not name fails the
run, so a missing tool cannot hide a missing check.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reef import credentials
from reef.paths import Paths

# What finds programs, packages and certificates on this machine, and nothing that says how reef should behave.
KEPT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "CI",
    "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
)
ALLOWED_SKIPS = Path(__file__).parent / "allowed_skips.txt"


@pytest.fixture(autouse=True)
def sealed_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """HOME and REEF_HOME in the test's own folder; every other variable of the person's shell is gone."""
    for name in list(os.environ):
        if name not in KEPT and not name.startswith(("PYTEST_", "COV_", "PIP_")):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("REEF_HOME", str(tmp_path / "reef"))
    monkeypatch.setenv("REEF_BIN_DIR", str(tmp_path / "bin"))
    monkeypatch.setenv("TZ", "UTC")
    # Of this test alone: what another one held must not be cut out of what this one stores.
    monkeypatch.setattr(credentials, "HELD", credentials.Held())
    yield home


@pytest.fixture
def paths(sealed_room: Path) -> Paths:
    """The paths of the test's own reef home, folders made."""
    found = Paths.from_environ()
    found.make()
    return found


@pytest.fixture(scope="session")
def need_tool() -> Callable[[str], str]:
    """`need_tool("tmux")` returns the path of a program; without it the test is skipped, and in CI it fails."""

    def need(name: str) -> str:
        found = shutil.which(name)
        if found is None and os.environ.get("CI") == "true":
            pytest.fail(f"{name} is not installed, and CI=true allows no skip for a missing tool")
        if found is None:
            pytest.skip(f"{name} is not installed")
        return found

    return need


def allowed_skips() -> list[str]:
    """The patterns of `allowed_skips.txt`: test ids with `*`, one a line, `#` starts a comment."""
    lines = ALLOWED_SKIPS.read_text(encoding="utf-8").splitlines()
    return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]


def _skips(config: pytest.Config) -> list[tuple[str, str]]:
    """(test id, reason) of every skipped test, sorted."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return []
    found = []
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        found.append((report.nodeid, reason.removeprefix("Skipped: ")))
    return sorted(found)


def _is_allowed(node: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(node, pattern) for pattern in patterns)


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Give back the signals that `nohup` or a shell's `&` have a run ignore: children would be born deaf to them."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI, a skip that is not allowed turns a passing run into a failing one."""
    patterns = allowed_skips()
    strange = [node for node, _ in _skips(session.config) if not _is_allowed(node, patterns)]
    if strange and os.environ.get("CI") == "true" and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the skips, each with `allowed` or `NOT ALLOWED`."""
    skips = _skips(terminalreporter.config)
    patterns = allowed_skips()
    terminalreporter.section(f"skips: {len(skips)}")
    for node, reason in skips:
        terminalreporter.line(f"{'allowed' if _is_allowed(node, patterns) else 'NOT ALLOWED'}  {node}  {reason}")
