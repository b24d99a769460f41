"""The official SDKs get the same objects from reef as from the upstream itself, and the same errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.http import sdk_calls as sdk
from tests.http.running import Home, Upstream, start_upstream
from tests.http.sdk_calls import Clients

TOOL = '[[tool read {"path": "a/ü.py"}]]'
COUNTED = " [[prompt 100]] [[cached 40]] [[completion 7]]"
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "chat": (sdk.chat, {"tools": sdk.CHAT_TOOLS}),
    "chat stream": (sdk.chat_stream, {"tools": sdk.CHAT_TOOLS}),
    "chat stream with usage": (sdk.chat_stream, {"tools": sdk.CHAT_TOOLS, "stream_options": sdk.USAGE}),
    "chat helper": (sdk.chat_helper, {"tools": sdk.CHAT_TOOLS, "stream_options": sdk.USAGE}),
    "response": (sdk.response, {"tools": sdk.RESPONSES_TOOLS}),
    "response stream": (sdk.response_stream, {"tools": sdk.RESPONSES_TOOLS}),
    "response helper": (sdk.response_helper, {"tools": sdk.RESPONSES_TOOLS}),
    "message": (sdk.message, {"tools": sdk.MESSAGES_TOOLS}),
    "message stream": (sdk.message_stream, {"tools": sdk.MESSAGES_TOOLS}),
    "message helper": (sdk.message_helper, {"tools": sdk.MESSAGES_TOOLS}),
}
WORDS = (
    "hello",
    f"look {TOOL}",
    "[[reasoning hm, let me see]] [[say Grüße\n😀 at last]]",
    "[[length]] cut",
    "[[paced 30]]",
    "[[extra]] more fields",
    "[[framing torn]] [[say in pieces]]",
)
ERRORS = {
    "[[status 400]] [[say no such parameter]]": (openai.BadRequestError, anthropic.BadRequestError),
    "[[status 401]]": (openai.AuthenticationError, anthropic.AuthenticationError),
    "[[status 404]]": (openai.NotFoundError, anthropic.NotFoundError),
    "[[status 429 retry-after 7]]": (openai.RateLimitError, anthropic.RateLimitError),
    "[[status 500]]": (openai.InternalServerError, anthropic.InternalServerError),
    "[[status 529 retry-after 3]]": (openai.InternalServerError, anthropic.OverloadedError),
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Upstream]]:
    """Model servers, each of which numbers its calls: one is asked directly, its twin and all the others by reef."""
    found = {
        "direct": start_upstream(tmp_path_factory.mktemp("direct")),
        "behind": start_upstream(tmp_path_factory.mktemp("behind")),
        "alone": start_upstream(tmp_path_factory.mktemp("alone")),
        "chat": start_upstream(tmp_path_factory.mktemp("chat"), "--dialects", "chat", "--more", ""),
        "messages": start_upstream(tmp_path_factory.mktemp("messages"), "--dialects", "messages"),
    }
    yield found
    for server in found.values():
        server.process.terminate()
        server.process.wait()


@pytest.fixture(scope="module")
def at(servers: dict[str, Upstream], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Clients]]:
    """Clients of the upstream itself (`direct`), of reef before its twin (`reef`), and before the others by name."""
    home = Home(tmp_path_factory.mktemp("house"), servers["behind"].url).start()
    others = ("alone", "chat", "messages")
    for name in others:
        engine = json.dumps({"url": servers[name].url, "model": "m"})
        made = home.person.post("/reef/scenarios", json={"name": name, "engine": engine})
        assert made.status_code in (200, 201), made.text
    places = {name: f"{home.url}/s/{name}" for name in others}
    found = {name: Clients(url) for name, url in {"direct": servers["direct"].url, "reef": home.url, **places}.items()}
    yield found
    for clients in found.values():
        clients.close()
    home.close()


def both(at: dict[str, Clients], ask: Callable[..., Any], *words: Any, **more: Any) -> Any:
    """Asks both places the same; returns what both said."""
    direct, through = (sdk.outcome(at[place], ask, *words, **more) for place in ("direct", "reef"))
    assert through == direct
    return direct


@pytest.mark.parametrize("call", CALLS)
def test_a_call_gives_the_same_objects_as_the_upstream_itself(at: dict[str, Clients], call: str) -> None:
    ask, more = CALLS[call]
    for words in WORDS:
        found = both(at, ask, words, **more)
        # The helpers themselves refuse a reply that was cut.
        assert found and ("class" not in found or ("helper" in call and "length" in words)), (words, found)


@pytest.mark.parametrize("call", CALLS)
def test_an_error_has_the_same_class_status_and_body(at: dict[str, Clients], call: str) -> None:
    ask, more = CALLS[call]
    for words, (of_openai, of_anthropic) in ERRORS.items():
        found = both(at, ask, words, **more)
        assert found["class"] is (of_anthropic if call.startswith("message") else of_openai), words
        assert found["body"] and found["status_code"] == int(words.partition("status ")[2][:3])
        if "retry-after" in words:
            assert found["retry-after"] == words.partition("retry-after ")[2][:1]


@pytest.mark.parametrize("call", [name for name in CALLS if "stream" in name or "helper" in name])
@pytest.mark.parametrize("words", ["[[error first]]", "[[error after 2]] [[say one two three four five six]]"])
def test_an_error_inside_a_stream_is_raised_as_it_is_from_the_upstream(
    at: dict[str, Clients], call: str, words: str
) -> None:
    ask, more = CALLS[call]
    found = both(at, ask, words, **more)
    # OpenAI's client gives the error events of a response out like any other.
    raised = not call.startswith("response") or words == "[[error first]]"
    assert not raised or issubclass(found["class"], openai.APIError | anthropic.APIError)


@pytest.mark.parametrize("call", [name for name in CALLS if "stream" in name or "helper" in name])
def test_a_stream_that_breaks_off_is_an_error_and_no_short_answer(at: dict[str, Clients], call: str) -> None:
    ask, more = CALLS[call]
    words = "[[die after 4]] [[say one two three four five six seven eight]]"
    found = sdk.outcome(at["alone"], ask, words, **more)
    if isinstance(found, list):
        assert (found[-1]["type"], found[-1]["response"]["error"]["code"]) == ("response.failed", "server_error")
    else:
        assert issubclass(found["class"], openai.APIError | anthropic.APIError) and "broke" in found["said"]


def test_lists_and_token_counts_are_the_upstreams_own(at: dict[str, Clients]) -> None:
    listed = both(at, lambda here: list(here.openai.models.list()))
    assert [model["id"] for model in listed] == ["fake-model"]
    counted = both(at, lambda here: here.anthropic.messages.count_tokens(model="m", messages=sdk.said("count me")))
    assert counted["input_tokens"] > 0
    found = at["alone"].openai.models.retrieve("m")
    assert found.id == "m"
    assert [model.display_name for model in at["alone"].anthropic.models.list()] == ["fake-model"]
    with pytest.raises(openai.NotFoundError):
        at["alone"].openai.models.retrieve("another")


def test_raw_replies_carry_the_receipt_where_each_sdk_looks_for_a_request_id(at: dict[str, Clients]) -> None:
    raw = at["alone"].anthropic.messages.with_raw_response.create(model="m", max_tokens=9, messages=sdk.said("x"))
    assert raw.parse()._request_id == raw.headers["x-reef-agent-record-id"]
    plain = at["alone"].openai.chat.completions.with_raw_response.create(model="m", messages=sdk.said("x"))
    assert len(plain.headers["x-reef-agent-record-id"]) == 32


TRANSLATED = [
    ("messages", "chat"),
    ("messages", "chat helper"),
    ("messages", "response"),
    ("messages", "response helper"),
    ("chat", "response"),
    ("chat", "response helper"),
    ("chat", "message"),
    ("chat", "message helper"),
]


@pytest.mark.parametrize(("upstream", "call"), TRANSLATED)
def test_a_translated_call_says_what_an_upstream_of_the_clients_own_dialect_says(
    at: dict[str, Clients], upstream: str, call: str
) -> None:
    ask, more = CALLS[call]
    # The helpers themselves refuse a reply that was cut.
    cut = [] if "helper" in call else ["[[length]] cut"]
    for words in ("[[say Grüße\n😀 at last]]", f"look {TOOL}", *cut):
        own, through = (ask(at[place], words + COUNTED, **more) for place in ("alone", upstream))
        if isinstance(own, list):
            own, through = own[-1], through[-1]
        assert sdk.gist(through) == sdk.gist(own), words


@pytest.mark.parametrize(("upstream", "call"), TRANSLATED)
def test_a_translated_error_has_the_class_and_status_of_the_clients_dialect(
    at: dict[str, Clients], upstream: str, call: str
) -> None:
    ask, more = CALLS[call]
    for words, (of_openai, of_anthropic) in ERRORS.items():
        found = sdk.outcome(at[upstream], ask, words, **more)
        assert found["class"] is (of_anthropic if call.startswith("message") else of_openai), words
        assert found["status_code"] == int(words.partition("status ")[2][:3])
        assert found["retry-after"] == (words.partition("retry-after ")[2][:1] or None)
        assert ("no such parameter" if "say" in words else "scripted error") in str(found["body"])


def test_an_openai_client_finishes_a_tool_session_on_an_anthropic_upstream(at: dict[str, Clients]) -> None:
    client, turns = at["messages"].openai, sdk.said(f"look {TOOL}")
    first = client.chat.completions.create(model="m", messages=turns, tools=sdk.CHAT_TOOLS).choices[0].message
    assert first.tool_calls is not None
    answer = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "seven lines"}
    turns += [first.model_dump(exclude_none=True), answer]
    second = client.chat.completions.create(model="m", messages=turns, tools=sdk.CHAT_TOOLS)
    assert (second.choices[0].message.content, second.choices[0].finish_reason) == (
        "The tool said: seven lines",
        "stop",
    )


def test_an_anthropic_client_finishes_a_tool_session_on_a_chat_only_upstream(at: dict[str, Clients]) -> None:
    client, turns = at["chat"].anthropic, sdk.said(f"look {TOOL}")
    with client.messages.stream(model="m", max_tokens=99, messages=turns, tools=sdk.MESSAGES_TOOLS) as events:
        first = events.get_final_message()
    assert (first.stop_reason, first.content[-1].input) == ("tool_use", {"path": "a/ü.py"})
    result = {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "seven lines"}
    turns += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    with client.messages.stream(model="m", max_tokens=99, messages=turns, tools=sdk.MESSAGES_TOOLS) as events:
        second = events.get_final_message()
    assert (second.content[0].text, second.stop_reason) == ("The tool said: seven lines", "end_turn")


@pytest.mark.parametrize("upstream", ["chat", "messages"])
def test_a_responses_client_finishes_a_tool_session_on_an_upstream_without_responses(
    at: dict[str, Clients], upstream: str
) -> None:
    client, turns = at[upstream].openai, sdk.said(f"look {TOOL}")
    with client.responses.stream(model="m", input=turns, tools=sdk.RESPONSES_TOOLS) as events:
        first = events.get_final_response()
    call = first.output[-1]
    assert (call.type, json.loads(call.arguments)) == ("function_call", {"path": "a/ü.py"})
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "seven lines"}
    turns += [*(item.model_dump(exclude_none=True) for item in first.output), result]
    second = client.responses.create(model="m", input=turns, tools=sdk.RESPONSES_TOOLS)
    assert (second.output_text, second.status) == ("The tool said: seven lines", "completed")


def test_what_an_upstream_without_the_route_cannot_count_is_estimated(at: dict[str, Clients]) -> None:
    counted = at["chat"].anthropic.messages.count_tokens(model="m", messages=sdk.said("count me " * 40))
    assert 40 <= counted.input_tokens <= 200
