"""The parts of a first run: what is fetched, what is called, and how a request is searched for a line.

`reef.cli.quickstart` puts them in order. Each part is timed by the monotonic clock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef.cli import output, watch
from reef.cli.look import OUT
from reef.client import Client
from reef.errors import Failed, from_json
from reef.paths import Paths
from reef.text import one_line, safe

_AGENT_S = 300
_ASK_S = 600
_POLL_S = 0.1


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start


@dataclass(frozen=True)
class Exchange:
    """One model call as a person sees it."""

    model: str
    text: str
    receipt: str
    tokens: int
    """Prompt and answer together, as the model server counted them."""
    seconds: float


def tell(text: str = "") -> None:
    """One line of the transcript, at once: whoever reads it through a pipe watches it as well."""
    for line in OUT.folded(text):
        output.data(line)
    output.flush()


def part_line(name: str, seconds: float | None, size_bytes: int, note: str = "") -> str:
    """`  ✓ pi 1.6.0    7 s   168 MB   note`; no seconds for what was there already."""
    took = "there" if seconds is None else f"{max(1, round(seconds))} s"
    line = f"  {OUT.symbol('✓')} {name:<20} {took:>6} {size_bytes / 1e6:>6.0f} MB"
    return f"{line}   {note}" if note else line


def folder_size(folder: Path) -> int:
    """Bytes of the files under `folder`; 0 when it is not there. A hard-linked file counts once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            facts = (Path(place) / name).lstat()
            if (facts.st_dev, facts.st_ino) not in seen:
                seen.add((facts.st_dev, facts.st_ino))
                total += facts.st_size
    return total


def short_path(path: Path) -> str:
    """A path as people write it, with `~` for their home."""
    home = Path.home()
    return safe(f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path))


def fetch_weights(paths: Paths) -> None:
    """Fetch the embedded model, in the same program that the daemon would use. Raises what that program says."""
    clock = Clock()
    fetched = False
    progress = output.Progress()
    try:
        for fact in _json_lines([sys.executable, "-P", "-m", "reef.engines.weights"]):
            if "error" in fact:
                raise from_json(500, fact)
            if "done" in fact:
                fetched = True
                total = max(1, int(fact["total"]))
                progress.show(f"embedded model: {fact['done'] / 1e6:.0f} of {total / 1e6:.0f} MB")
    finally:
        progress.clear()
    files = sorted(paths.models.glob("*.gguf"))
    name = files[0].name.split(".")[0] if files else "model"
    tell(part_line("embedded model", clock.seconds if fetched else None, folder_size(paths.models), f"{name}, checked"))


def _json_lines(arguments: list[str]) -> Iterator[dict[str, Any]]:
    """Each line that a program prints, as JSON. Raises Failed with its last words when it fails without saying why."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said)
        assert child.stdout is not None
        try:
            for line in child.stdout:
                yield json.loads(line)
            status = child.wait()
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
        if status != 0:
            said.seek(0)
            last = said.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            raise Failed(f"{arguments[-1]} ended with {status}: {''.join(last) or 'no reason given'}", "reef logs")


def install_agent(client: Client, paths: Paths, adapter: str) -> None:
    """Install the agent's own program and a Node for it, a line for each with what it took."""
    clock = Clock()
    agent_began = 0.0
    changed = False
    facts: dict[str, Any] = {}
    node = paths.agents / "node"
    node_was_there = node.is_dir()
    progress = output.Progress()
    try:
        for item in client.install_agent(adapter):
            if "progress" in item:
                changed = True
                text = str(item["progress"])
                if not agent_began and text.startswith(f"installing {adapter}"):
                    agent_began = clock.seconds
                progress.show(one_line(text, 200))
            facts = item.get("installed") or facts
    finally:
        progress.clear()
    if node.is_dir():
        took = None if node_was_there else agent_began or clock.seconds
        tell(part_line("node for agents", took, folder_size(node)))
    version = one_line(str(facts.get("version") or ""), 20)
    size = folder_size(paths.agents / adapter)
    tell(part_line(f"{adapter} {version}".rstrip(), clock.seconds - agent_began if changed else None, size))


def exchange(client: Client, scenario: str, question: str) -> Exchange:
    """One chat completion. Raises Failed when the call was not recorded or the answer has no text."""
    model = str(client.models(scenario)["data"][0]["id"])
    clock = Clock()
    # Without a system text the embedded model answers many an English question in French.
    messages = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": question}]
    reply, receipt = client.chat(scenario, {"model": model, "messages": messages, "temperature": 0, "max_tokens": 64})
    seconds = clock.seconds
    text = ((reply.get("choices") or [{}])[0].get("message") or {}).get("content") or ""
    if receipt is None:
        raise Failed("the call was answered and not recorded", "reef logs")
    if not text:
        raise Failed("the model answered without text", f"reef records show {receipt}")
    tokens = int((reply.get("usage") or {}).get("total_tokens") or 0)
    return Exchange(one_line(str(reply.get("model") or model), 40), text, receipt, tokens, seconds)


def follow_ask(client: Client, ask: str, indent: str) -> dict[str, Any]:
    """Tell each thing that a step does while it does it. Returns the settled progress; raises Failed after 10 min."""
    clock = Clock()
    told = 0
    while clock.seconds < _ASK_S:
        state = client.ask_progress(ask)
        activity = state.get("activity") or []
        for item in activity[told:]:
            tell(indent + watch.activity_line(item, state.get("started_at")).strip())
        told = len(activity)
        if state["settled"]:
            return state
        time.sleep(_POLL_S)
    raise Failed(f"the ask is not settled after {_ASK_S} s", "reef asks list")


def run_agent(wrapper: Path, scenario: str, prompt: str) -> subprocess.CompletedProcess[str]:
    """Run the wrapped agent once without a terminal, in an empty folder, looking at no network of its own.

    Raises Failed when it does not end.
    """
    env = os.environ | {"REEF_SCENARIO": scenario, "PI_OFFLINE": "1", "PI_TELEMETRY": "0"}
    with tempfile.TemporaryDirectory(prefix="reef-") as folder:
        try:
            return subprocess.run(
                [str(wrapper), "-p", prompt],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_AGENT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"{wrapper.name} did not end within {_AGENT_S} s", "reef records list") from None


def find_in_request(body: bytes, words: str) -> str | None:
    """The line of a chat request that holds `words`, after who says it; None when no message does."""
    try:
        messages = json.loads(body)["messages"]
    except (ValueError, KeyError, TypeError):
        return None
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else [{"text": content}]:
            text = part.get("text") if isinstance(part, dict) else None
            for line in text.splitlines() if isinstance(text, str) else []:
                if words in line:
                    return f"{message.get('role')} {OUT.symbol('›')} … {line.strip()} …"
    return None
