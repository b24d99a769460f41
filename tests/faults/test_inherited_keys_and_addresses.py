"""B66: whatever keys and addresses a shell has, an agent sees exactly one address and one token, reef's."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from reef.harness.adapter import load_adapter
from tests.faults.wrapped import AGENTS, contents, furnish, got
from tests.http.running import Home

FOREIGN = {
    "ANTHROPIC_API_KEY": "sk-ant-foreign-1",
    "ANTHROPIC_AUTH_TOKEN": "foreign-token-2",
    "ANTHROPIC_BASE_URL": "http://192.0.2.1/a",
    "ANTHROPIC_CUSTOM_HEADERS": "x-api-key: foreign-header-3",
    "CLAUDE_CODE_OAUTH_TOKEN": "foreign-oauth-4",
    "OPENAI_API_KEY": "sk-foreign-5",
    "OPENAI_BASE_URL": "http://192.0.2.1/b",
    "OPENAI_API_BASE": "http://192.0.2.1/c",
    "OPENROUTER_API_KEY": "sk-or-foreign-6",
    "GEMINI_API_KEY": "foreign-gemini-7",
    "GOOGLE_API_KEY": "foreign-google-8",
    "GROQ_API_KEY": "gsk_foreign-9",
    "DEEPSEEK_API_KEY": "sk-foreign-10",
    "AZURE_OPENAI_API_KEY": "foreign-azure-11",
    "AWS_BEARER_TOKEN_BEDROCK": "foreign-bedrock-12",
    "SOMETHING_BASE_URL": "http://192.0.2.1/d",
}
_ADDRESS = re.compile(r"https?://[^\s\"',]+")


@pytest.fixture(scope="module")
def furnished(home: Home) -> Home:
    return furnish(home)


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_sees_one_address_and_one_token_and_nothing_foreign_is_stored(furnished: Home, name: str) -> None:
    moved = {load_adapter(name).home_variable: "/nowhere/of-mine"}
    own = {"OPENCODE_CONFIG_CONTENT": '{"provider": "foreign-13"}'} if name == "opencode" else {}
    environ = got(furnished, name, "-p", "hi", **FOREIGN, **moved, **own)["env"]
    left = {key: value for key, value in environ.items() if "foreign" in value or "192.0.2.1" in value}
    assert left == {}
    addresses = {
        urlsplit(address).netloc
        for key, value in environ.items()
        if key.endswith(("_URL", "_BASE", "_ENDPOINT", "_CONTENT"))
        for address in _ADDRESS.findall(value)
    }
    assert addresses == {urlsplit(furnished.url).netloc}
    tokens = {value for key, value in environ.items() if re.search(r"(KEY|TOKEN|SECRET)\Z|\AREEF_SESSION\Z", key)}
    assert tokens == {environ["REEF_SESSION"]}
    assert furnished.key not in environ.values()
    kept = contents(furnished.folder / "reef")
    assert [file for file, text in kept.items() if "foreign" in text or "192.0.2.1" in text] == []
    # The session's own token is on no disk either.
    assert [file for file, text in kept.items() if environ["REEF_SESSION"] in text] == []
