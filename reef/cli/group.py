"""How every command is declared: plain help without markup, two examples, the options that many share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand

F = TypeVar("F", bound=Callable[..., Any])

ScenarioOption = Annotated[
    str | None,
    typer.Option(
        "--scenario", "-s", metavar="NAME", help="Scenario; else REEF_SCENARIO, `reef use`, the last install."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON: whole ids, times in RFC 3339 UTC.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", metavar="COUNT", min=1, max=1000, help="How many to show.")]

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def noun(text: str, *examples: str) -> typer.Typer:
    """The app of a noun with verbs; `text` is its help, `examples` are lines to paste."""
    app = _typer()
    app.callback(help=text, epilog=_shown(examples), context_settings=_SETTINGS)(_nothing)
    return app


def single() -> typer.Typer:
    """The app of a command without verbs."""
    return _typer()


def command(
    app: typer.Typer, name: str | None = None, *, examples: tuple[str, ...], free: bool = False, usage: str = ""
) -> Callable[[F], F]:
    """Declare a command. `examples` are lines to paste; `free` lets unknown flags through to the function's context.

    `usage` is what the usage line has to say of those.
    """
    settings: dict[str, Any] = dict(_SETTINGS)
    if free:
        settings |= {"ignore_unknown_options": True, "allow_extra_args": True}
    line = f"[OPTIONS] {usage}".strip()
    return app.command(name, cls=_Command, epilog=_shown(examples), options_metavar=line, context_settings=settings)


class _Command(TyperCommand):
    """A command whose help names an argument without the Python type that it becomes."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument):
                parameter.display_type_rich = _no_type  # type: ignore[method-assign]


def _no_type(ctx: Any) -> str:
    return ""


def _shown(examples: tuple[str, ...]) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


def _typer() -> typer.Typer:
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _nothing() -> None:
    return None
