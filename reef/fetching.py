"""The variables that say how packages are fetched: proxies, certificates, package indexes.

The daemon outlives the shell that started it, so whoever asks it for an installation sends the variables of the shell
they are in. Only these names travel; their values may hold a password, and are neither stored nor logged.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from reef.errors import InvalidInput

NAMES = (
    "PIP_CERT",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_REGISTRY",
)
"""In capitals; a proxy's variable is any name that ends in `_PROXY`. Programs read many of them in either case."""
CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
"""Variables that name a file of certificate authorities, each for other programs; the first that is set counts."""
_LONGEST = 4096


def travels(name: str) -> bool:
    """Whether a variable of this name is sent with an installation."""
    return name.upper() in NAMES or name.upper().endswith("_PROXY")


def of_caller(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of `environ` (default: the process's) that an installation is asked for with."""
    source = os.environ if environ is None else environ
    return {name: value for name, value in source.items() if travels(name)}


def checked(sent: object) -> dict[str, str] | None:
    """What a request holds as its `environment`; None when it holds none. Raises InvalidInput."""
    if sent is None:
        return None
    if not isinstance(sent, dict):
        raise InvalidInput("'environment' is not an object of names and values")
    for name, value in sent.items():
        if not travels(name):
            raise InvalidInput(f"'environment' takes proxies, certificates and package indexes, not {name[:80]!r}")
        if not isinstance(value, str) or len(value) > _LONGEST or "\0" in value:
            raise InvalidInput(f"{name[:80]!r} in 'environment' is not a text of at most {_LONGEST} characters")
    return dict(sent)


def merged(sent: Mapping[str, str] | None, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """`environ` (default: the process's) with the caller's way to the registries in place of its own.

    None for `sent` means that the caller said nothing, so `environ` stays as it is.
    """
    own = dict(os.environ if environ is None else environ)
    if sent is None:
        return own
    return {name: value for name, value in own.items() if not travels(name)} | dict(sent)


def certificates(environ: Mapping[str, str]) -> str | None:
    """The file of certificate authorities that the person named for any program; None when for none."""
    return next((environ[name] for name in CERTIFICATES if environ.get(name)), None)
