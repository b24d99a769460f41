"""Which variables travel with an installation, and how the caller's replace the daemon's."""

from __future__ import annotations

import pytest

from reef import fetching
from reef.errors import InvalidInput


def test_only_the_way_to_the_registries_travels() -> None:
    way = {
        "HTTPS_PROXY": "http://p:1",
        "no_proxy": "localhost",
        "PIP_CERT": "/ca.pem",
        "npm_config_registry": "http://mine",
        "UV_DEFAULT_INDEX": "http://mine/simple",
    }
    other = {"HOME": "/me", "PATH": "/bin", "OPENAI_API_KEY": "k", "REEF_TOKEN": "t", "NODE_OPTIONS": "--require x"}
    assert fetching.of_caller(way | other) == way


def test_the_callers_variables_replace_the_daemons_and_nothing_else_does() -> None:
    own = {"PATH": "/bin", "HTTPS_PROXY": "http://old:1", "PIP_CERT": "/old.pem"}
    assert fetching.merged({"PIP_CERT": "/new.pem"}, own) == {"PATH": "/bin", "PIP_CERT": "/new.pem"}
    assert fetching.merged({}, own) == {"PATH": "/bin"}
    assert fetching.merged(None, own) == own


@pytest.mark.parametrize(
    "sent",
    [["PIP_CERT"], {"PATH": "/evil"}, {"NODE_OPTIONS": "--require x"}, {"PIP_CERT": 1}, {"PIP_CERT": "a\0b"}],
)
def test_what_is_not_such_a_variable_is_refused(sent: object) -> None:
    with pytest.raises(InvalidInput, match="'environment'"):
        fetching.checked(sent)
