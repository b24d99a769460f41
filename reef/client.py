"""The one way that commands, screens and wrappers talk to the daemon: HTTP over loopback, a method for each route."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from reef import fetching, needs
from reef.connection import LONG_S, Connection, Json
from reef.discovery import (
    current_scenario,
    in_session,
    is_ours,
    prove,
    read_discovery,
    read_person_key,
    running,
    start_daemon,
    wait_stopped,
)

__all__ = [
    "Client",
    "current_scenario",
    "in_session",
    "is_ours",
    "prove",
    "read_discovery",
    "read_person_key",
    "running",
    "start_daemon",
    "wait_stopped",
]


class Client(Connection):
    """Calls to one daemon. Every method returns the parsed JSON of its route and raises the daemon's own ReefError."""

    # status

    def status(self) -> Json:
        return self._json("GET", "/reef/status", anyone=True)

    def stop(self, now: bool = False) -> Json:
        """Ask the daemon to stop; `now` cuts running calls. `wait_stopped` says when it is gone."""
        return self._json("POST", "/reef/stop", body={"now": now}, any_version=True)

    def recipes(self) -> Json:
        return self._json("GET", "/reef/recipes")

    def config(self) -> Json:
        return self._json("GET", "/reef/config")

    def events(self, after: int | None = None) -> Iterator[Json]:
        """Each event after sequence `after` (None: from now on), for as long as the daemon runs."""
        params = {} if after is None else {"after": after}
        with self._stream("GET", "/reef/events", params=params) as reply:
            for line in reply.iter_lines():
                if line.startswith("data:"):
                    yield json.loads(line[5:])

    # scenarios and versions

    def scenarios(self, archived: bool = False) -> Json:
        params = {"archived": 1} if archived else {}
        return self._json("GET", "/reef/scenarios", params=params, anyone=True)

    def archive_scenario(self, name: str) -> Json:
        return self._json("DELETE", f"/reef/scenarios/{_part(name)}")

    def restore_scenario(self, name: str) -> Json:
        return self._json("POST", f"/reef/scenarios/{_part(name)}/restore", body={})

    def create_scenario(
        self, name: str, recipe: str | None = None, engine: str | None = None, adapter: str | None = None
    ) -> Json:
        body = _present(name=name, recipe=recipe, engine=engine, adapter=adapter)
        return self._json("POST", "/reef/scenarios", body=body, timeout=300)

    def releases(self, scenario: str) -> Json:
        return self._json("GET", "/reef/harness/releases", scenario=scenario)

    def commits(self, scenario: str, after_step: int = 0, limit: int = 50, record_id: list[str] | None = None) -> Json:
        """Versions with what each consumed and measured, oldest first; `next_after_step` is where to go on."""
        params = _present(after_step=after_step, limit=limit, record_id=record_id)
        return self._json("GET", f"/reef/scenarios/{_part(scenario)}/commits", params=params)

    def version(self, scenario: str, number: int) -> Json:
        return self._json("GET", f"/reef/scenarios/{_part(scenario)}/versions/{number}")

    def diff(self, scenario: str, old: str, new: str) -> Json:
        """The difference of two contents: each `v1`, a release id, `s12` (what step 12 made) or `base`."""
        return self._json("GET", f"/reef/scenarios/{_part(scenario)}/diff", params={"from": old, "to": new})

    def why(self, scenario: str, **wanted: Any) -> Json:
        """Where something came from: `file`, `line`, `adapter`; `entry`; or neither; `version` (default: the head)."""
        return self._json("GET", f"/reef/scenarios/{_part(scenario)}/why", params=_present(**wanted))

    def promote(self, scenario: str, version: int | str, expected_head: int | str | None = None) -> Json:
        return self._decide(scenario, "promote", version, expected_head)

    def rollback(self, scenario: str, version: int | str, expected_head: int | str | None = None) -> Json:
        return self._decide(scenario, "rollback", version, expected_head)

    def _decide(self, scenario: str, verb: str, version: int | str, expected_head: int | str | None) -> Json:
        body = _present(version=version, expected_head=expected_head)
        return self._json("POST", f"/reef/scenarios/{_part(scenario)}/{verb}", body=body)

    def export_version(self, scenario: str, version: int | str, kind: str) -> Iterator[bytes]:
        """A version in one file: `archive`, `bundle`, or a tar of the plain folder `skills`, `agents-md`, `git`."""
        path = f"/reef/scenarios/{_part(scenario)}/versions/{_part(str(version))}/export"
        with self._stream("GET", path, params={"as": kind}, timeout=LONG_S) as reply:
            yield from reply.iter_bytes()

    def import_version(self, scenario: str, path: str, look: bool = False, expected: str | None = None) -> Json:
        """Make a version of a file of this machine; `look` only says what would be, `expected` is what was seen."""
        body = _present(path=path, look=look or None, expected=expected)
        return self._json("POST", f"/reef/scenarios/{_part(scenario)}/import", body=body, timeout=LONG_S)

    def pins(self, scenario: str) -> Json:
        """The versions that stay installed: `{"pins": [{"adapter", "version", "at"}]}`; adapter None is every agent."""
        return self._json("GET", f"/reef/scenarios/{_part(scenario)}/pins")

    def pin(self, scenario: str, version: int | str, adapter: str | None = None) -> Json:
        """Keep a version installed, for one agent or for every one. Returns every pin of the scenario."""
        body = _present(version=version, adapter=adapter)
        return self._json("POST", f"/reef/scenarios/{_part(scenario)}/pin", body=body)

    def unpin(self, scenario: str, adapter: str | None = None) -> Json:
        """Let what is installed follow the head again; without an adapter for every agent."""
        return self._json("POST", f"/reef/scenarios/{_part(scenario)}/unpin", body=_present(adapter=adapter))

    # reports and asks

    def report(self, scenario: str, body: Json) -> Json:
        return self._json("POST", "/reef/report", scenario=scenario, body=body)

    def reports(
        self,
        scenario: str | None = None,
        receipt: str | None = None,
        source: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> Json:
        """Reports, newest first; an agent's session sees its own alone."""
        params = _present(scenario=scenario, receipt=receipt, source=source, limit=limit, before=before)
        return self._json("GET", "/reef/reports", params=params)

    def shown_report(self, report_id: str) -> Json:
        return self._json("GET", f"/reef/reports/{_part(report_id)}")

    def revise_report(self, report_id: str, changes: Json) -> Json:
        """Change `score`, `feedback` or `metadata` of a report; null takes one away."""
        return self._json("PATCH", f"/reef/reports/{_part(report_id)}", body=changes)

    def undo_revision(self, report_id: str, number: int) -> Json:
        return self._json("DELETE", f"/reef/reports/{_part(report_id)}/revisions/{number}")

    def withdraw_report(self, report_id: str) -> Json:
        return self._json("DELETE", f"/reef/reports/{_part(report_id)}")

    def train(
        self,
        scenario: str,
        text: str,
        session: str | None = None,
        release_id: str | None = None,
        requires: list[Json] | None = None,
        id: str | None = None,
    ) -> Json:
        """Queue an ask. `id` makes a retry safe: the same id with the same content answers the same."""
        body = _present(text=text, session=session, release_id=release_id, requires=requires, agent_record_id=id)
        return self._json("POST", "/reef/train", scenario=scenario, body=body)

    def ask_progress(self, ask_id: str) -> Json:
        return self._json("GET", f"/reef/harness/requests/{_part(ask_id)}/progress")

    def asks(self, scenario: str | None = None) -> Json:
        return self._json("GET", "/reef/asks", params=_present(scenario=scenario))

    def ask(self, reference: str, scenario: str | None = None) -> Json:
        """One ask by id, or by number within `scenario`."""
        return self._json("GET", f"/reef/asks/{_part(reference)}", params=_present(scenario=scenario))

    def cancel_ask(self, ask_id: str) -> Json:
        return self._json("POST", f"/reef/asks/{_part(ask_id)}/cancel", body={})

    def propose(self, scenario: str, mutations: list[Json], reason: str, release_id: str | None = None) -> Json:
        """Put a change into the scenario's inbox; `admitted` says whether it is there, `reason` why not."""
        body = _present(mutations=mutations, reason=reason, release_id=release_id)
        return self._json("POST", "/reef/harness/proposals", scenario=scenario, body=body)

    def proposals(self, scenario: str | None = None) -> Json:
        return self._json("GET", "/reef/proposals", params=_present(scenario=scenario))

    def steps(self, scenario: str | None = None) -> Json:
        return self._json("GET", "/reef/steps", params=_present(scenario=scenario))

    def step(self, scenario: str, number: int) -> Json:
        return self._json("GET", f"/reef/steps/{_part(scenario)}/{number}")

    def cancel_step(self, scenario: str, number: int) -> Json:
        return self._json("POST", f"/reef/steps/{_part(scenario)}/{number}/cancel", body={})

    # records and sessions

    def records(self, limit: int = 100, **wanted: Any) -> Json:
        return self._json("GET", "/reef/records", params=_present(limit=limit, **wanted))

    def search(self, q: str, limit: int = 20, **wanted: Any) -> Json:
        return self._json("GET", "/reef/records/search", params=_present(q=q, limit=limit, **wanted))

    def record(self, receipt: str) -> Json:
        return self._json("GET", f"/reef/records/{_part(receipt)}")

    def record_body(self, receipt: str, part: str) -> bytes:
        """The exact stored bytes of `request`, `response` or `raw`."""
        return self._send("GET", f"/reef/records/{_part(receipt)}/{part}").content

    def import_records(self, scenario: str, body: bytes, alone: bool = False) -> int:
        """Store a batch of envelopes, `{"records": […]}`, or one `alone`. Returns how many of them were new."""
        path = "/reef/records" if alone else "/reef/records/batch"
        reply = self._send("POST", path, scenario=scenario, content=body)
        return int(reply.headers["x-reef-imported"])

    def look_at_forgetting(self, wish: Json) -> Iterator[Json]:
        """What would go with records: `{"progress": …}` objects, then `{"found": …}` with its `token`."""
        return self._lines("/reef/forget/look", wish)

    def forget(self, token: str) -> Iterator[Json]:
        """Remove what was shown with `token`: progress, then `{"forgotten": …}`."""
        return self._lines("/reef/forget", {"expected": token})

    def finish_forgetting(self) -> Iterator[Json]:
        """Go on with a forgetting that was broken off: progress, then `{"forgotten": …}`, empty without one."""
        return self._lines("/reef/forget/finish", {})

    def prune(self, keep_bytes: int) -> Iterator[Json]:
        """Remove the oldest bodies until so many bytes are left: progress, then `{"pruned": …}`."""
        return self._lines("/reef/records/prune", {"keep_bytes": keep_bytes})

    def sessions(self, limit: int = 20, **wanted: Any) -> Json:
        return self._json("GET", "/reef/sessions", params=_present(limit=limit, **wanted))

    def session(self, name: str, scenario: str | None = None) -> Json:
        return self._json("GET", f"/reef/sessions/{_part(name)}", params=_present(scenario=scenario))

    def usage(self, by: str, since: str | None = None, scenario: str | None = None) -> Json:
        """Calls, tokens, cost and time by `agent`, `model`, `version`, `tool` or `day`, since a time in RFC 3339."""
        return self._json("GET", "/reef/usage", params=_present(by=by, since=since, scenario=scenario), timeout=300)

    def open_session(self, scenario: str, adapter: str, version: int | None, cwd: str, pid: int) -> Json:
        """A session token for one agent run; it dies with process `pid`."""
        body = {"scenario": scenario, "adapter": adapter, "version": version, "cwd": cwd, "pid": pid}
        return self._json("POST", "/reef/sessions", body=body)

    def close_session(self, session_id: str) -> Json:
        return self._json("DELETE", f"/reef/sessions/{_part(session_id)}")

    # harness and agents

    def harness(self, scenario: str, release_id: str | None = None, adapter: str | None = None) -> Json:
        params = _present(release_id=release_id, adapter=adapter)
        return self._json("GET", "/reef/harness", scenario=scenario, params=params)

    def install_harness(
        self, scenario: str, adapter: str, version: int | str | None = None, expected_head: int | str | None = None
    ) -> Iterator[Json]:
        """Install a version, given by number or release id: `{"progress": …}` objects, then `{"installed": …}`.

        What the version needs and this process's environment has goes along by name.
        """
        body = _present(scenario=scenario, adapter=adapter, version=version, expected_head=expected_head)
        met = self._met(scenario, version)
        more = {"environment": fetching.of_caller()} | ({"met": met} if met else {})
        return self._lines("/reef/harness/install", body | more)

    def _met(self, scenario: str, version: int | str | None) -> list[str]:
        found = self.releases(scenario)
        wanted = version or found.get("pinned")
        for row in found["releases"]:
            if row.get("current") if wanted is None else wanted in (row["version"], row["release_id"]):
                return [needs.key(need) for need in needs.of(row) if needs.met(need)]
        return []

    def remove_harness(self, scenario: str, adapter: str) -> Json:
        """Remove what is installed for an agent: `{"scenario", "adapter", "version", "removed": [path, …]}`."""
        return self._json("POST", "/reef/harness/remove", body={"scenario": scenario, "adapter": adapter})

    def adapters(self) -> Json:
        return self._json("GET", "/reef/harness/adapters", anyone=True)

    def install_agent(self, name: str) -> Iterator[Json]:
        """Install the agent's own program: `{"progress": …}` objects, then `{"installed": …}`."""
        return self._lines(f"/reef/agents/{_part(name)}", {"environment": fetching.of_caller()})

    # model calls

    def models(self, scenario: str | None = None) -> Json:
        return self._json("GET", "/v1/models", scenario=scenario)

    def chat(self, scenario: str, body: Json) -> tuple[Json, str | None]:
        """One chat completion. Returns the reply and its receipt, None when the call was not recorded."""
        reply = self._send("POST", "/v1/chat/completions", scenario=scenario, body=body, timeout=LONG_S)
        return reply.json(), reply.headers.get("x-reef-agent-record-id")


def _present(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _part(text: str) -> str:
    from urllib.parse import quote

    return quote(str(text), safe="")
