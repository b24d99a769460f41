"""The entry of the `reef` command: finds the command's module, runs it, turns an error into one message and a status.

Only the module of the command that runs is imported, and none for `reef --help`. No other place decides an exit status.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from reef import __version__
from reef.cli import output, table

if TYPE_CHECKING:
    from typing import Any

    from reef.errors import ReefError

_PIPE_CLOSED = 128 + 13


def main() -> int:
    """Run `reef` with the arguments of this process. Returns the exit status."""
    output.prepare()
    argv = sys.argv[1:]
    try:
        status = _guarded(argv)
        output.flush()
        return status
    except BrokenPipeError:
        output.discard()
        return _PIPE_CLOSED
    except KeyboardInterrupt:
        return 130


def _guarded(argv: list[str]) -> int:
    try:
        return dispatch(argv)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        problem = _as_reef_error(error, argv)
        if os.environ.get("REEF_DEBUG") == "1":
            output.traceback_text(_traceback(error))
        output.problem(problem, _wants_json(argv))
        return problem.exit_code


def dispatch(argv: list[str]) -> int:
    """Run one command line. Returns its status; raises ReefError or what typer raises for a usage mistake."""
    if not argv or argv[0] in ("-h", "--help") or argv == ["help"]:
        output.data(table.top_help(__version__))
        return 0
    if argv[0] in ("-V", "--version"):
        output.data(f"reef {__version__}")
        return 0
    if argv[0] == "__complete":
        from reef.cli import complete

        return complete.run(argv[1:])
    entry = table.find(argv[0])
    if entry is None:
        raise _unknown_command(argv[0])
    if entry.name == "status" and set(argv[1:]) <= {"--json"}:
        from reef.cli.standing import show

        show("--json" in argv)
        return 0
    if entry.name == "usage" and argv[1:] == ["--line"]:
        from reef.cli import usage_line

        usage_line.show()
        return 0
    command = load(entry)
    result = command.main(
        args=_with_default_verb(entry, argv[1:]), prog_name=f"reef {entry.name}", standalone_mode=False
    )
    return result if isinstance(result, int) else 0


def load(entry: table.Command) -> Any:
    """Import the module of a command and return its typer command."""
    import importlib

    from typer.main import get_command

    return get_command(getattr(importlib.import_module(entry.module), entry.app))


def _with_default_verb(entry: table.Command, rest: list[str]) -> list[str]:
    if entry.default is None or (rest and not rest[0].startswith("-")) or any(a in ("-h", "--help") for a in rest[:1]):
        return rest
    return [entry.default, *rest]


def _unknown_command(name: str) -> ReefError:
    import difflib

    from reef.errors import UsageError

    words = [command.name for command in table.COMMANDS] + list(table.TOPICS)
    near = difflib.get_close_matches(name, words, 1, 0.5)
    hint = "reef --help" if not near else f"reef {'help ' if near[0] in table.TOPICS else ''}{near[0]}"
    kind = "flag" if name.startswith("-") else "command"
    return UsageError(f"there is no {kind} {name!r}", hint)


def _as_reef_error(error: Exception, argv: list[str]) -> ReefError:
    from reef.errors import Failed, Interrupted, ReefError, UsageError
    from reef.paths import unusable

    if isinstance(error, ReefError):
        return error
    if _is_a(error, "Abort"):
        return Interrupted("stopped")
    if _is_a(error, "UsageError"):
        return UsageError(_usage_sentence(error), _help_command(argv))
    problem = unusable(error, "the command cannot go on") if isinstance(error, OSError) else None
    if problem is not None:
        return problem
    return Failed(f"reef met a fault of its own: {type(error).__name__}: {_first_line(error)}", _kept(error))


def _is_a(error: Exception, name: str) -> bool:
    # typer has carried its own copy of click since 0.27; the class has the same name in both.
    return any(kind.__name__ == name for kind in type(error).__mro__)


def _usage_sentence(error: Exception) -> str:
    shown = getattr(error, "format_message", None)
    text = str(shown() if callable(shown) else error).strip().rstrip(".")
    for theirs, ours in (("No such command", "There is no command"), ("No such option:", "There is no flag")):
        text = text.replace(theirs, ours)
    return text[:1].lower() + text[1:]


def _help_command(argv: list[str]) -> str:
    entry = table.find(argv[0]) if argv else None
    if entry is None:
        return "reef --help"
    verb = f" {argv[1]}" if len(argv) > 1 and argv[1] in entry.verbs else ""
    return f"reef {entry.name}{verb} --help"


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no message"


def _kept(error: Exception) -> str:
    """Keep the traceback in the state folder and say where; without a folder, say how to see it."""
    from reef.credentials import redact
    from reef.paths import Paths, write_atomic

    place = Paths.from_environ().state / "cli-error.log"
    try:
        write_atomic(place, redact(_traceback(error).encode("utf-8", "replace"))[0])
    except OSError:
        return "set REEF_DEBUG=1 and run it again"
    return f"the traceback is in {place}"


def _traceback(error: Exception) -> str:
    import traceback

    return "".join(traceback.format_exception(error))


def _wants_json(argv: list[str]) -> bool:
    return "--json" in (argv[: argv.index("--")] if "--" in argv else argv)


if __name__ == "__main__":
    sys.exit(main())
