"""The agent as a program among others: pipes, signals, the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.unit.native.conftest import Native

COMMAND = [sys.executable, "-P", "-m", "reef.native"]


def test_what_is_piped_in_stands_behind_the_words(native: Native) -> None:
    done = subprocess.run([*COMMAND, "-p", "count this"], input="one two", capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "You said: count this\n", "")
    alone = subprocess.run(COMMAND, input="only this", capture_output=True, text=True, timeout=30)
    assert alone.stdout == "You said: only this\n"
    assert [sent["messages"][-1]["content"] for sent in native.requests()] == ["count this\n\none two", "only this"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_run_and_the_command_that_it_waits_for(native: Native, number: int, status: int) -> None:
    words = '[[tool bash {"command": "echo $$ > pid; sleep 60"}]]'
    run = subprocess.Popen(
        [*COMMAND, "-p", words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    place = native.project / "pid"
    deadline = time.monotonic() + 20
    while not (place.exists() and place.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    run.send_signal(number)
    _, err = run.communicate(timeout=20)
    assert run.returncode == status and b"Traceback" not in err
    with pytest.raises(ProcessLookupError):
        os.kill(int(place.read_text()), 0)
    # The session can be gone on with: the call has a result.
    assert native.session()[-1]["message"]["role"] == "tool"
