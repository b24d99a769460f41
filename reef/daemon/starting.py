"""What a start of the daemon is asked to be: typed by a person, or by itself as the last one that was typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef.config import Resolved, load
from reef.daemon import last_serve
from reef.daemon.chosen import check_chosen
from reef.engines.discovery import why_chosen
from reef.paths import Paths


@dataclass(frozen=True)
class Start:
    """One start, its settings checked."""

    resolved: Resolved
    foreground: bool
    asked: bool
    """Whether a person named settings, so that a daemon with others is an error."""
    typed: last_serve.LastServe | None
    """What is to be remembered; None for a start that nobody typed."""
    reason: str
    """Why its engine is the one it is."""


def understand(wanted: Mapping[str, Any], environ: Mapping[str, str], paths: Paths) -> Start:
    """The start that `REEF_SERVE` asks for.

    Raises ConfigError, and CredentialMissing when it is to be made again and a secret of the last one is not set.
    """
    if wanted.get("again"):
        last = last_serve.recall(paths)
        if last is not None:
            resolved = last_serve.settings_again(last, environ, paths)
            check_chosen(resolved, environ, paths)
            return Start(resolved, False, False, None, "as the last reef up")
        resolved = load(environ=environ, paths=paths)
        check_chosen(resolved, environ, paths)
        return Start(resolved, False, False, None, why_chosen(resolved.settings, resolved.origins, paths))
    deployment = Path(wanted["deployment"]) if wanted.get("deployment") else None
    flags = [(str(key), str(text)) for key, text in wanted.get("flags", [])]
    foreground = bool(wanted.get("foreground", True))
    resolved = load(flags, deployment, environ, paths)
    check_chosen(resolved, environ, paths)
    typed = last_serve.describe(flags, deployment, resolved, environ, paths)
    reason = why_chosen(resolved.settings, resolved.origins, paths)
    return Start(resolved, foreground, foreground or bool(flags) or deployment is not None, typed, reason)
