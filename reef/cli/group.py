"""How every command is declared: plain help without markup, two examples, the options that many share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

F = TypeVar("F", bound=Callable[..., Any])

ScenarioOption = Annotated[
    str | None,
    typer.Option(
        "--scenario", "-s", metavar="NAME", help="Scenario; else REEF_SCENARIO, `reef use`, the last install."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON: whole ids, times in RFC 3339 UTC.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many to show.")]

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def noun(text: str) -> typer.Typer:
    """The app of a noun with verbs; `text` is its help."""
    app = _typer()
    app.callback(help=text, context_settings=_SETTINGS)(_nothing)
    return app


def single() -> typer.Typer:
    """The app of a command without verbs."""
    return _typer()


def command(
    app: typer.Typer, name: str | None = None, *, examples: tuple[str, ...], free: bool = False
) -> Callable[[F], F]:
    """Declare a command. `examples` are lines to paste; `free` lets unknown flags through to the function's context."""
    settings: dict[str, Any] = dict(_SETTINGS)
    if free:
        settings |= {"ignore_unknown_options": True, "allow_extra_args": True}
    epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)
    return app.command(name, epilog=epilog, context_settings=settings)


def _typer() -> typer.Typer:
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _nothing() -> None:
    return None
