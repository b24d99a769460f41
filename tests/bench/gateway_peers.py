"""The peers of the gateway's bench: litellm's proxy where it is on PATH, and whatever runs already (`--peer`)."""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench.gateway_load import Target

_START_S = 60
_SCENARIO = "x-reef-scenario: bench\r\n"
"""reef-infra answers no call without it; to others it says nothing."""


def given(text: str) -> Target:
    """A peer that runs already: NAME=URL:PID."""
    name, _, rest = text.partition("=")
    url, _, pid = rest.rpartition(":")
    if not name or not pid.isdecimal() or urlsplit(url).port is None:
        raise argparse.ArgumentTypeError(f"{text} is not NAME=URL:PID, such as reef-infra=http://127.0.0.1:8700:4711")
    return Target(name, url.rstrip("/"), int(pid), headers=_SCENARIO)


def start_litellm(stub_url: str, folder: Path) -> tuple[subprocess.Popen[bytes], Target] | None:
    """litellm's proxy in front of the stub; None where its command is absent or does not come up, which is said."""
    program = shutil.which("litellm")
    if program is None:
        return None
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = folder / "litellm.yaml"
    parameters = f"{{model: openai/m, api_base: '{stub_url}/v1', api_key: none}}"
    config.write_text(f"model_list:\n  - model_name: m\n    litellm_params: {parameters}\n")
    said = folder / "litellm.log"
    with said.open("wb") as file:
        process = subprocess.Popen(
            [program, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)],
            env=os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    url = f"http://127.0.0.1:{port}"
    end = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < end:
        if _answers(f"{url}/health/liveliness"):
            return process, Target("litellm", url, process.pid)
        time.sleep(0.2)
    process.kill()
    process.wait()
    lines = said.read_text(errors="replace").split("\n")
    print(f"litellm is left out, it does not start: {next((line for line in reversed(lines) if line.strip()), '')}")
    return None


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False
