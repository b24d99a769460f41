"""What runs behind the hooks of an agent that has no plugins: `python -P -m reef.harness.hook claude UserPromptSubmit`.

The agent gives a JSON object on standard input and reads one on standard output. A prompt that is one of reef's own
commands is answered here and never reaches the model: `/reefine words`, `/versions`, `/versions v3 install`, and each
without a slash and with a colon for agents that take every slash for a command of their own. Any other prompt goes on;
what is new is said beside it, and rules that were installed since are added to it.

It runs at every turn and is waited for, so it imports little. While the daemon is away it says nothing, unless it was
asked for something.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reef.text import one_line, safe

Json = dict[str, Any]
_COMMAND = re.compile(r"\s*(?:[/$](?:reef:)?(reefine|versions)(?=\s|\Z)|(reefine|versions):)(.*)", re.DOTALL)
_QUICK_S = 2.0
_ASK_S = 15.0
_KEPT_S = 7 * 86400.0
"""How long what was told in a session is kept after it."""
COLON = "colon"
"""Behind the event, for an agent that takes every slash for a command of its own: what is to be typed has a colon."""
REDRAW = "redraw"
"""Behind the event, for an agent that must be made to draw its screen anew after a question stood there."""
SAID_VARIABLE = "REEF_SAID"
"""Names a file for what is said here, where the agent shows nothing of it: its wrapper says it after the run."""


class Trouble(Exception):
    """Something that was asked for cannot be done. The message is for the person."""


class Away(Trouble):
    """The daemon does not answer."""

    def __init__(self) -> None:
        super().__init__("the daemon is not running (reef up)")


def main(argv: list[str]) -> int:
    """Answer one event of one agent. The exit status is 0 whatever happens: an agent works on without reef."""
    event = argv[1] if len(argv) > 1 else ""
    try:
        given = json.load(sys.stdin)
    except ValueError:
        given = {}
    if not all(os.environ.get(name) for name in ("REEF_URL", "REEF_SESSION", "REEF_TREE")):
        return 0
    session = Session(COLON in argv[2:], REDRAW in argv[2:])
    answer: Json = {}
    if event == "SessionStart":
        session.begin()
        answer = _beside(event, session.news(), "")
    elif event == "Stop":
        answer = _beside(event, session.news(), "")
    elif event == "UserPromptSubmit":
        answer = _prompted(session, str(given.get("prompt") or "") if isinstance(given, dict) else "")
    session.keep()
    if answer:
        sys.stdout.write(json.dumps(answer) + "\n")
    return 0


def _prompted(session: Session, prompt: str) -> Json:
    found = _COMMAND.match(prompt)
    if found is None:
        return _beside("UserPromptSubmit", session.news(), session.fresh_rules())
    words = found[3].strip()
    try:
        said = session.reefine(words) if (found[1] or found[2]) == "reefine" else session.versions(words)
    except Trouble as trouble:
        said = f"reef: {trouble}"
    said = safe("\n".join([said, *session.news()]))
    _said(said)
    return {"decision": "block", "reason": said}


def _beside(event: str, news: list[str], context: str) -> Json:
    """An answer that lets the turn go on: lines for the person, a text for the model."""
    answer: Json = {}
    if news:
        answer["systemMessage"] = safe("\n".join(news))
        _said(answer["systemMessage"])
    if context:
        answer["hookSpecificOutput"] = {"hookEventName": event, "additionalContext": context}
    return answer


def _said(text: str) -> None:
    place = os.environ.get(SAID_VARIABLE)
    if place:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(text + "\n")


class Session:
    """What this session has asked for and was told, kept in a file between one event and the next."""

    def __init__(self, colon: bool = False, redraw: bool = False) -> None:
        environ = os.environ
        self._colon = colon
        self._screen = "alternate" if redraw else "main"
        self.scenario = environ.get("REEF_SCENARIO", "")
        self.id = environ.get("REEF_SESSION_ID", "")
        self.tree = Path(environ.get("REEF_TREE", ""))
        self._place = self.tree.parent / "hook" / f"{re.sub(r'[^A-Za-z0-9-]', '', self.id) or 'none'}.json"
        try:
            kept = json.loads(self._place.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            kept = {}
        self._kept: Json = kept if isinstance(kept, dict) else {}
        self._was = json.dumps(self._kept)

    def keep(self) -> None:
        """Write what is to be known at the next event."""
        text = json.dumps(self._kept)
        if text == self._was:
            return
        # Without its place the next event says a thing once more, which harms nobody.
        with suppress(OSError):
            self._place.parent.mkdir(mode=0o700, exist_ok=True)
            fresh = self._place.with_suffix(f".{os.getpid()}")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(self._place)

    def typed(self, word: str, rest: str) -> str:
        """One of reef's own commands as a person types it here."""
        return f"{word}: {rest}" if self._colon else f"/{word} {rest}"

    def begin(self) -> None:
        """The agent has read the rules as they are now."""
        self._kept["rules"] = self._rules()
        with suppress(OSError):
            for old in self._place.parent.iterdir():
                if old.stat().st_mtime < time.time() - _KEPT_S:
                    old.unlink()

    def fresh_rules(self) -> str:
        """What the model must be told of rules that were installed since it was last told any; "" for nothing."""
        now = self._rules()
        before = self._kept.get("rules", now)
        self._kept["rules"] = now
        if now == before:
            return ""
        if not now:
            return "The instructions that reef installed are withdrawn: follow them no longer."
        return f"The instructions that reef installed have changed. These count now, not the earlier ones:\n\n{now}"

    def news(self) -> list[str]:
        """What became of asks of this session, and that a newer version is served; each once."""
        try:
            return [*self._settled(), *self._newer()]
        except Trouble:
            # A turn must go on without the daemon's help.
            return []

    def reefine(self, words: str) -> str:
        """File an ask."""
        if not words:
            return f"usage: {self.typed('reefine', 'what should change, in plain words')}"
        body = {"text": words, "session": self.id, "release_id": self._installed().get("release_id")}
        filed = _call("POST", "/reef/train", body, _ASK_S)
        self._kept.setdefault("asks", []).append({"id": filed["agent_record_id"], "number": filed["number"]})
        follow = f"follow it with: reef asks watch {filed['number']} -s {filed['scenario']}"
        return f"reef: ask #{filed['number']} filed for scenario {filed['scenario']}\n{follow}"

    def versions(self, words: str) -> str:
        """List the versions, or have one installed."""
        wanted, _, verb = words.partition(" ")
        verb = verb.strip()
        if wanted == "install" and not verb:
            return self._install(None)
        rows = self._releases(_ASK_S)
        if not wanted:
            return "\n".join([f"versions of scenario {self.scenario}", *(self._listed(row) for row in rows)])
        row = next((row for row in rows if wanted in (f"v{row['version']}", str(row["version"]))), None)
        if row is None:
            raise Trouble(f"scenario {self.scenario} has no version {wanted}")
        number = int(row["version"])
        if verb == "install":
            return self._install(number)
        show = f"in another terminal: reef versions show v{number} -s {self.scenario}"
        return f"{show}; here: {self.typed('versions', f'v{number} install')}"

    def _listed(self, row: Json) -> str:
        here = self._installed().get("version")
        marks = {
            "served": row.get("current"),
            "installed": row["version"] == here,
            "needs your yes": row.get("pending"),
            "pinned": row.get("pinned"),
        }
        told = ", ".join(word for word, true in marks.items() if true)
        return f"v{row['version']}  {one_line(str(row.get('summary') or row.get('operation')), 90)}  {told}".rstrip()

    def _settled(self) -> list[str]:
        lines: list[str] = []
        for ask in list(self._kept.get("asks", [])):
            now = _call("GET", f"/reef/harness/requests/{ask['id']}/progress", None, _QUICK_S)
            if not now.get("settled"):
                continue
            self._kept["asks"].remove(ask)
            number = now.get("version")
            version = f" v{number}" if number else ""
            then = f"; install it: {self.typed('versions', f'v{number} install')}" if number else ""
            if number and now["version"] > self._kept.get("told", 0):
                self._kept["told"] = number
            why = now.get("reason") or now.get("meaning") or ""
            lines.append(f"reef: ask #{ask['number']} {now['state']}{version}: {why}{then}")
        return lines

    def _newer(self) -> list[str]:
        rows = self._releases(_QUICK_S)
        head = next((int(row["version"]) for row in rows if row.get("current")), 0)
        here = int(self._installed().get("version") or 0)
        if head <= here or head <= self._kept.get("told", 0):
            return []
        self._kept["told"] = head
        pinned = any(row["version"] == here and row.get("pinned") for row in rows)
        then = f"install it: {self.typed('versions', 'install')}"
        then = "pinned, so it stays: reef versions unpin" if pinned else then
        return [f"reef: v{head} of scenario {self.scenario} is served, v{here} is installed here; {then}"]

    def _install(self, version: int | None) -> str:
        """Have the person asked by the wrapper, outside of this agent."""
        # Loaded on use: most events need none of it.
        from reef.errors import ReefError
        from reef.harness.confirming import CONFIRM_VARIABLE, ask_person

        named = "" if version is None else f" v{version}"
        outside = f"reef versions install{named} -s {self.scenario}"
        place = os.environ.get(CONFIRM_VARIABLE)
        if not place:
            raise Trouble(f"nobody can be asked from here; in another terminal: {outside}")
        last: Json = {}
        try:
            for line in ask_person(place, version, self._screen):
                last = line
        except ReefError as error:
            raise Trouble(f"{error.message}; in another terminal: {outside}") from None
        if "error" in last:
            raise Trouble(_sentence(last["error"]))
        if "declined" in last:
            return f"reef: v{last['declined']['version']} was not installed"
        if "installed" not in last:
            raise Trouble("the wrapper gave no answer")
        number = last["installed"]["version"]
        self._kept["told"] = max(number, self._kept.get("told", 0))
        if not last["installed"].get("changed"):
            return f"reef: v{number} is installed already"
        rest = "its rules count from the next turn on, everything else from the next start"
        return f"reef: v{number} is installed; {rest}"

    def _releases(self, seconds: float) -> list[Json]:
        rows: list[Json] = _call("GET", "/reef/harness/releases", None, seconds)["releases"]
        return rows

    def _installed(self) -> Json:
        """The installed version, read anew: it may have changed during the session."""
        try:
            facts: Json = json.loads((self.tree.parent / "install.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            number = os.environ.get("REEF_VERSION", "").removeprefix("v")
            return {"version": int(number) if number.isdigit() else 0, "release_id": os.environ.get("REEF_RELEASE")}
        return facts

    def _rules(self) -> str:
        try:
            return Path(os.environ.get("REEF_RULES", "")).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return ""


def _call(method: str, path: str, body: Json | None, seconds: float) -> Json:
    """One call to the daemon with the session's token. Raises Trouble with the daemon's own sentence."""
    address = urlsplit(os.environ["REEF_URL"])
    headers = {"authorization": f"Bearer {os.environ['REEF_SESSION']}", "content-type": "application/json"}
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=seconds)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        value = json.loads(reply.read() or b"{}")
    except (OSError, http.client.HTTPException, ValueError):
        raise Away from None
    finally:
        connection.close()
    if not isinstance(value, dict):
        raise Trouble("the daemon's answer is no object")
    if reply.status >= 400:
        error = value.get("error")
        if not isinstance(error, dict):
            raise Trouble(f"the daemon answered with status {reply.status}")
        raise Trouble(_sentence(error))
    return value


def _sentence(error: Json) -> str:
    hint = error.get("hint")
    return str(error.get("message")) + (f" ({hint})" if hint else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
