"""Usage over HTTP: for whom, of what time, by what."""

from __future__ import annotations

from tests.http.running import Home, chat

SCENARIO = {"x-reef-scenario": "used"}


def test_usage_is_counted_by_what_is_asked_for_since_a_time_of_any_zone(home: Home) -> None:
    chat(home.nobody, "count me", **SCENARIO)
    found = home.person.get("/reef/usage?scenario=used&by=version").json()
    assert [(row["key"].split(" ")[0], row["calls"]) for row in found["rows"]] == [("used", 1)]
    assert found["total"]["calls"] == 1
    for since, calls in (("2026-01-01T00:00:00%2B05:30", 1), ("2126-01-01T00:00:00Z", 0)):
        assert home.person.get(f"/reef/usage?scenario=used&since={since}").json()["total"]["calls"] == calls
    assert home.person.get("/reef/usage?scenario=used&by=tool").json()["replies_read"] == 1


def test_what_cannot_be_asked_for_is_named(home: Home) -> None:
    for query, said in (("by=colour", "not by 'colour'"), ("since=yesterday", "'since' is not a time")):
        reply = home.person.get(f"/reef/usage?{query}")
        message = reply.json()["error"]["message"]
        assert (reply.status_code, said in message) == (400, True), message
    assert home.person.get("/reef/usage?scenario=nobody").status_code == 404
