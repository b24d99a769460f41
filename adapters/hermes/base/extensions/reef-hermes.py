"""What reef adds to Hermes: `/reefine` files an ask, `/versions` lists versions and installs one.

A line says that a newer one is there, and every model call carries the session it belongs to. The commands of the
installed version are typed as `/<id>`, and its rules are in force from the next turn on. Without reef's variables the
file does nothing.
"""

import contextlib
import json
import os
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

URL = os.environ.get("REEF_URL", "")
TOKEN = os.environ.get("REEF_SESSION", "")
TREE = Path(os.environ.get("REEF_TREE") or os.environ.get("HERMES_HOME", "."))
POLL_S = 1.0
FOLLOW_S = 30 * 60.0
START_S = 60.0
# Words of a model or of a person may hold anything; nothing of it may steer the terminal.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
TYPED = re.compile(r"/([a-z0-9-]+)(?:\s+(.*))?\Z", re.DOTALL)
# The first and the last line of the rules' file. What stands between them in a prompt is that file's text.
HEAD = "You are Hermes Agent, a coding agent that works in the person's own project."
TAIL = "These instructions come from the person who runs you."


class Refused(Exception):
    """What the daemon or the wrapper said no to, in its own sentence."""


def call(method: str, path: str, body: dict[str, Any] | None = None, timeout: float = 15.0) -> dict[str, Any]:
    """One call to the daemon with the session's token. Raises Refused."""
    headers = {"authorization": f"Bearer {TOKEN}"}
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        headers["content-type"] = "application/json"
    request = urllib.request.Request(URL + path, data=data, headers=headers, method=method)
    try:
        # No proxy of the person's stands between the agent and the daemon.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=timeout) as reply:
            answer: dict[str, Any] = json.load(reply)
            return answer
    except urllib.error.HTTPError as error:
        raise Refused(told(error)) from None
    except (OSError, ValueError):
        raise Refused("the daemon is not running (reef up)") from None


def told(error: urllib.error.HTTPError) -> str:
    """The sentence in an error reply."""
    try:
        found = json.load(error).get("error") or {}
    except (OSError, ValueError, AttributeError):
        found = {}
    message: str = found.get("message") or f"the daemon answered with status {error.code}"
    return message + (f" ({found['hint']})" if found.get("hint") else "")


def safe(text: str) -> str:
    """`text` without anything that could steer the terminal."""
    return CONTROLS.sub("\ufffd", text)


def installed() -> tuple[int, str | None]:
    """The installed version's number and release, read anew: an install may come during the session."""
    try:
        facts = json.loads((TREE.parent / "install.json").read_text(encoding="utf-8"))
        return facts["version"], facts["release_id"]
    except (OSError, ValueError, KeyError):
        number = os.environ.get("REEF_VERSION", "").replace("v", "")
        return int(number) if number.isdigit() else 0, os.environ.get("REEF_RELEASE")


class Plugin:
    """The plugin of one process."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx

    def say(self, text: str) -> None:
        """One line to the person at the terminal; nothing where nobody looks at one."""
        if self.ctx._manager._cli_ref is None:
            return
        from cli import _cprint

        _cprint(safe(text))

    def reefine(self, args: str) -> str:
        text = args.strip()
        if not text:
            return "usage: /reefine what should change, in plain words"
        body = {"text": text, "session": os.environ.get("REEF_SESSION_ID"), "release_id": installed()[1]}
        filed = call("POST", "/reef/train", body)
        if self.ctx._manager._cli_ref is not None:
            wait = threading.Thread(target=self.follow, args=(filed["agent_record_id"], filed["number"]), daemon=True)
            wait.start()
            return f"reef: ask #{filed['number']} filed for scenario {filed['scenario']}"
        again = f"reef asks watch {filed['number']} -s {filed['scenario']}"
        return f"reef: ask #{filed['number']} filed for scenario {filed['scenario']}\nfollow it with: {again}"

    def follow(self, record: str, number: int) -> None:
        """Follow an ask until it is settled, then say what became of it."""
        until = time.monotonic() + FOLLOW_S
        try:
            while time.monotonic() < until:
                now = call("GET", f"/reef/harness/requests/{record}/progress")
                if now.get("settled"):
                    self.say(outcome(number, now))
                    return
                time.sleep(POLL_S)
        except Refused as error:
            self.say(f"reef: {error}")

    def versions(self, args: str) -> str:
        found = call("GET", "/reef/harness/releases")
        scenario, rows = found["scenario"], found["releases"]
        wanted, verb = [*args.split(), "", ""][:2]
        if wanted == "install":
            wanted, verb = "", "install"
        here = installed()[0]
        if not wanted and not verb:
            return "\n".join([f"versions of scenario {scenario}", *(line(row, here) for row in rows)])
        row = next((row for row in rows if str(row["version"]) == wanted.removeprefix("v")), None)
        if wanted and row is None:
            raise Refused(f"scenario {scenario} has no version {wanted}")
        if row is not None and verb != "install":
            return f"in another terminal: reef versions show v{row['version']} -s {scenario}"
        return self.install(row["version"] if row else None, scenario)

    def install(self, version: int | None, scenario: str) -> str:
        """Have the person asked, outside of this session, and install on their yes."""
        place = os.environ.get("REEF_CONFIRM")
        paste = "reef versions install" + (f" v{version}" if version else "") + f" -s {scenario}"
        if not place:
            return f"a session decides nothing: in another terminal: {paste} --adapter hermes"
        last: dict[str, Any] = {}
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
                asking.connect(place)
                asking.sendall(json.dumps({"install": version}).encode() + b"\n")
                for said in asking.makefile("rb"):
                    last = json.loads(said)
        except (OSError, ValueError):
            raise Refused(f"the wrapper does not answer: in another terminal: {paste} --adapter hermes") from None
        if "installed" in last:
            done = last["installed"]
            if not done.get("changed"):
                return f"reef: v{done['version']} is installed already"
            rest = "its rules and commands count from the next turn on, everything else in a new session"
            return f"reef: installed v{done['version']}; {rest}"
        if "declined" in last:
            return f"reef: v{last['declined']['version']} is not installed"
        error = last.get("error") or {"message": "the wrapper broke off"}
        raise Refused(error["message"] + (f" ({error['hint']})" if error.get("hint") else ""))

    def notice(self) -> None:
        """Say once that a newer version is served. Quiet when the daemon does not answer, or nobody looks."""
        try:
            found = call("GET", "/reef/harness/releases", timeout=2.0)
        except Refused:
            return
        self.wait()
        head = next((row for row in found["releases"] if row.get("current")), None)
        here = installed()[0]
        if head is not None and head["version"] > here:
            newer = f"reef: v{head['version']} of scenario {found['scenario']} is served, v{here} is installed here"
            pinned = any(row["version"] == here and row.get("pinned") for row in found["releases"])
            self.say(f"{newer}; {'pinned, so it stays: reef versions unpin' if pinned else '/versions install'}")

    def wait(self) -> None:
        """Until there is a screen to write on: the plugin is loaded before Hermes draws one, or without it."""
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            app = getattr(self.ctx._manager._cli_ref, "_app", None)
            if app is not None and app.is_running:
                return
            time.sleep(0.2)

    def request(self, request: dict[str, Any], session_id: str = "", **_: Any) -> dict[str, Any]:
        """What is changed in every model call: the session's name, the rules as installed now, typed commands."""
        headers = dict(request.get("extra_headers") or {})
        if session_id:
            headers["x-reef-session"] = session_id
        messages = [fresh(message) for message in request.get("messages") or []]
        return {"request": {**request, "extra_headers": headers, "messages": messages}, "source": "reef"}

    def execution(
        self, request: dict[str, Any], next_call: Callable[[dict[str, Any]], Any], model: str = "", **_: Any
    ) -> Any:
        """Answer reef's own commands without a model, also where Hermes takes no commands."""
        found = TYPED.match(last_words(request))
        own = {"reefine": self.reefine, "versions": self.versions}
        if found is None or found[1] not in own:
            return next_call(request)
        return completion(guarded(own[found[1]])(found[2] or ""), model)


def line(row: dict[str, Any], here: int) -> str:
    marks = [row.get("current") and "served", row["version"] == here and "installed"]
    marks += [row.get("pending") and "needs your yes", row.get("pinned") and "pinned"]
    told = ", ".join(mark for mark in marks if mark)
    return f"v{row['version']}  {row.get('summary') or row.get('operation')}  {told}".rstrip()


def outcome(number: int, now: dict[str, Any]) -> str:
    """What became of an ask, in one line."""
    version = f" v{now['version']}" if now.get("version") else ""
    reason = now.get("reason") or now.get("meaning") or ""
    can = now.get("state") in ("published", "pending") and version
    then = f"; /versions{version} install" if can else ""
    return f"reef: ask #{number} {now.get('state')}{version}: {reason}{then}"


def fresh(message: dict[str, Any]) -> dict[str, Any]:
    """A message of a request with the installed rules, or with the text of the command that was typed."""
    content = message.get("content")
    if not isinstance(content, str):
        return message
    if message.get("role") == "system" and HEAD in content and TAIL in content:
        start, end = content.index(HEAD), content.index(TAIL) + len(TAIL)
        rules = rules_now()
        return {**message, "content": content[:start] + rules + content[end:]} if rules else message
    if message.get("role") == "user" and (text := expanded(content)) is not None:
        return {**message, "content": text}
    return message


def rules_now() -> str | None:
    """The text of the installed rules; None when it is not the one that reef wrote."""
    try:
        text = (TREE / "SOUL.md").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return text if text.startswith(HEAD) and text.endswith(TAIL) else None


def expanded(typed: str) -> str | None:
    """The text of the command that `typed` names, with what was typed behind it; None when it names none."""
    found = TYPED.match(typed.strip())
    if found is None:
        return None
    try:
        text = (TREE / "commands" / f"{found[1]}.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    body = re.sub(r"\A---\n.*?\n---\n", "", text, count=1, flags=re.DOTALL)
    return body.strip().replace("$ARGUMENTS", (found[2] or "").strip())


def commands() -> list[str]:
    """The ids of the installed version's commands."""
    return sorted(file.stem for file in (TREE / "commands").glob("*.md"))


def last_words(request: dict[str, Any]) -> str:
    messages = request.get("messages") or [{}]
    content = messages[-1].get("content")
    return content.strip() if messages[-1].get("role") == "user" and isinstance(content, str) else ""


def completion(text: str, model: str) -> Any:
    """`text` as a model's reply."""
    from openai.types.chat import ChatCompletion

    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    facts = {"id": "reef", "object": "chat.completion", "created": int(time.time()), "model": model or "reef"}
    return ChatCompletion.model_validate({**facts, "choices": [choice], "usage": usage})


def guarded(run: Callable[[str], str]) -> Callable[[str], str]:
    """`run` with a refusal as the text that is shown."""

    def guard(args: str) -> str:
        try:
            return safe(run(args))
        except Refused as error:
            return safe(f"reef: {error}")

    return guard


def stay_here() -> None:
    """Keep Hermes from asking somebody else's server for a catalogue of models: reef names the one that is served."""
    with contextlib.suppress(ImportError):
        from agent import models_dev

        models_dev.fetch_models_dev = lambda force_refresh=False: {}


def register(ctx: Any) -> None:
    if not TOKEN:
        return
    stay_here()
    plugin = Plugin(ctx)
    if URL:
        change = "Ask reef for a change in how this agent works"
        ctx.register_command("reefine", guarded(plugin.reefine), change, "<words>")
        ctx.register_command("versions", guarded(plugin.versions), "reef's versions of this harness", "[vN] [install]")
        ctx.register_middleware("llm_execution", plugin.execution)
    for name in commands():

        def start(args: str, name: str = name) -> None:
            ctx.inject_message(expanded(f"/{name} {args}") or "")

        ctx.register_command(name, start, "A command of this harness", "<words>")
    ctx.register_middleware("llm_request", plugin.request)
    if URL:
        threading.Thread(target=plugin.notice, daemon=True).start()
