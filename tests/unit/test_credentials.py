"""The secrets of this process are cut out whatever they look like, in every form in which a server says them back."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from reef.config import load
from reef.credentials import clean, clean_json, find_credentials, hold, hold_address, redact
from reef.daemon.secrets_on_disk import person_key, tokens
from reef.engines.discovery import build
from reef.engines.upstream import UpstreamEngine
from reef.paths import Paths

ODD = 'hunter2/"sécret"\\ + more'
KEY = "sk-" + "a1B2" * 6


@pytest.mark.parametrize(
    "written",
    [
        ODD,
        json.dumps(ODD),
        json.dumps(ODD, ensure_ascii=False),
        json.dumps({"arguments": json.dumps({"key": ODD})}),
        json.dumps(ODD).replace("/", "\\/"),
        f"http://h/v1?key={quote(ODD, safe='')}",
    ],
)
def test_a_secret_of_this_process_is_cut_out_in_every_form(written: str) -> None:
    hold(ODD)
    body, count = redact(f"before {written} after".encode())
    assert count == 1
    assert body.startswith(b"before ") and body.endswith(b" after") and b"[redacted:secret]" in body
    assert b"hunter2" not in body and b"more" not in body


def test_only_the_secrets_of_this_process_are_cut_out_when_shapes_are_left_alone() -> None:
    hold("hunter2-secret")
    assert redact(f"{KEY} hunter2-secret".encode(), shaped=False) == (f"{KEY} [redacted:secret]".encode(), 1)


def test_a_secret_that_a_pattern_knows_in_part_is_cut_out_whole() -> None:
    hold(f"{KEY}.tail-of-it")
    assert redact(f"x {KEY}.tail-of-it y".encode()) == (b"x [redacted:secret] y", 1)


def test_a_secret_at_the_border_of_two_pieces_of_a_large_body_is_found() -> None:
    hold("hunter2-secret")
    for shift in range(-15, 2):
        body = b"x" * (256 * 1024 + shift) + b"hunter2-secret" + b"y" * 300_000
        assert redact(body)[1] == 1


@pytest.mark.parametrize("word", ["", "  ", "ollama", "none", "EMPTY", "lm-studio", "not-needed", None])
def test_a_word_that_keyless_servers_are_given_for_a_key_is_no_secret(word: str | None) -> None:
    hold(word)
    assert redact(b"ollama none EMPTY lm-studio not-needed") == (b"ollama none EMPTY lm-studio not-needed", 0)


@pytest.mark.parametrize(
    "url",
    [
        "https://h/v1?api_key=hunter2-secret&api-version=2024-02-15-preview",
        "https://h/v1?hunter2-secret",
        "https://h/v1?k=hunter2%2Dsecret",
        "https://person:hunter2-secret@h/v1",
        "https://person:hunter2%2Dsecret@h/v1",
        "https://hunter2-secret@h/v1",
    ],
)
def test_what_an_address_holds_is_a_secret_but_not_the_version_of_an_api(url: str) -> None:
    hold_address(url)
    assert redact(b"api-version 2024-02-15-preview at h by person: hunter2-secret")[0] == (
        b"api-version 2024-02-15-preview at h by person: [redacted:secret]"
    )


def test_a_password_is_known_as_the_header_that_it_is_sent_in() -> None:
    hold_address("https://person:hunter2-secret@h/v1")
    sent = base64.b64encode(b"person:hunter2-secret")
    assert redact(b"Authorization: Basic " + sent) == (b"Authorization: Basic [redacted:secret]", 1)


def test_texts_in_a_json_value_are_cleaned_at_every_depth_and_so_are_names() -> None:
    hold("hunter2-secret")
    deep: list[object] = [f"x {KEY}"]
    for _ in range(5000):
        deep = [deep]
    value = {"a": ["hunter2-secret", 5, None, {KEY: "half \ud800 pair"}], "b": deep}
    found = clean_json(value)
    assert found["a"] == ["[redacted:secret]", 5, None, {"[redacted:openai-key]": "half ? pair"}]
    inner = found["b"]
    while isinstance(inner[0], list):
        inner = inner[0]
    assert inner == ["x [redacted:openai-key]"]


def test_a_private_key_in_one_text_does_not_take_the_rest_of_the_value_along() -> None:
    value = clean_json({"a": "-----BEGIN PRIVATE KEY-----\nMIIE", "b": "stays"})
    assert value == {"a": "[redacted:private-key]", "b": "stays"}


def test_a_plain_text_is_the_same_object() -> None:
    text = "a task-specific rule"
    assert clean(text) is text


def test_a_secret_of_this_process_is_found_like_one_that_is_shaped_like_a_key() -> None:
    hold("hunter2-secret")
    assert find_credentials("say hunter2-secret") == ["secret"]
    assert find_credentials(f"say {KEY}") == ["openai-key"]


def test_an_engine_holds_its_key_and_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:hunter4-secret@127.0.0.1:9")
    UpstreamEngine("http://models.invalid:1/v1?code=hunter3-secret", None, " hunter2-secret ")
    assert redact(b"hunter2-secret hunter3-secret hunter4-secret")[1] == 3


def test_a_daemon_holds_its_tokens_and_the_keys_of_providers(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "hunter3-secret")
    flags = [("inference.backend", "embedded"), ("inference.upstream-api-key", "hunter2-secret")]
    settings = load([*flags, ("reef.token", "auto"), ("reef.tokens", '["hunter4-secret"]')], paths=paths).settings
    build(settings, paths)
    own = [person_key(paths), *tokens(settings, paths), "hunter2-secret", "hunter3-secret"]
    assert len(own) == 5
    for secret in own:
        assert redact(f"is {secret}.".encode()) == (b"is [redacted:secret].", 1)
    assert (paths.state / "token").read_text().strip() in own


def test_many_secrets_cost_a_large_body_little_time(tmp_path: Path) -> None:
    for number in range(20):
        hold(f"hunter{number}-secret")
    body = b"hunter and secrets, hunter1-secre " * 500_000
    started = time.process_time()
    assert redact(body)[1] == 0
    assert time.process_time() - started < 3


def test_a_name_that_was_clean_is_looked_at_again_when_a_secret_is_added() -> None:
    assert clean("kept-open-sesame") == "kept-open-sesame"
    hold("open-sesame")
    assert clean("kept-open-sesame") == "kept-[redacted:secret]"
