"""What may come next on a command line: read by the completion scripts, silent on every error, bounded in time.

Commands and verbs come from the static table and ids from the database; only flags need a command's module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from reef.cli import output, table

Found = list[tuple[str, str]]
_MOST = 50
_ANSWERS = ("good", "bad", "skip")


def run(words: list[str]) -> int:
    """Print the candidates for the last of `words`, one a line with its meaning after a tab."""
    if words and words[0] == "--":
        words = words[1:]
    *before, now = words or [""]
    try:
        found = candidates(before, now)
    except Exception:
        # A completion that prints an error into the middle of a typed line is worse than none.
        return 0
    for name, line in found:
        output.data(f"{name}\t{line}" if line else name)
    return 0


def candidates(before: list[str], now: str) -> Found:
    """The words that may follow `before` and begin with `now`."""
    if not before:
        return _fitting(((entry.name, entry.line) for entry in table.COMMANDS), now)
    entry = table.find(before[0])
    if entry is None:
        return []
    if before[-1] in ("--scenario", "-s"):
        return _fitting(_scenarios(), now)
    if now.startswith("-"):
        return _fitting(_flags(entry, before), now)
    if entry.verbs and len(before) == 1:
        return _fitting(entry.verbs.items(), now)
    return _fitting(_arguments(entry.name, before[1] if entry.verbs else "", before), now)


def _fitting(found: Iterable[tuple[str, str]], now: str) -> Found:
    return [(name, line) for name, line in found if name.startswith(now)][:_MOST]


def _arguments(name: str, verb: str, before: list[str]) -> Found:
    if name == "help":
        return [*table.TOPICS.items(), *((entry.name, entry.line) for entry in table.COMMANDS)]
    if name == "completion":
        return [(shell, "") for shell in table.SHELLS]
    if name == "use":
        return _scenarios()
    if name == "records" and verb == "show":
        return _read(
            lambda reader, _: [(r["agent_record_id"], _line(r.get("preview"))) for r in reader.records(limit=_MOST)],
            before,
        )
    if name == "versions" and verb == "bisect" and not set(before) & set(_ANSWERS):
        return [(action, "") for action in ("start", *_ANSWERS, "status", "reset")]
    if name == "versions" and verb not in ("list", "log", "unpin", "import"):
        return _read(
            lambda reader, chosen: [(f"v{v['version']}", _line(v.get("summary"))) for v in reader.versions(chosen)],
            before,
        )
    if name == "asks" and verb != "list":
        return _read(lambda reader, chosen: [(str(a["number"]), _line(a["text"])) for a in reader.asks(chosen)], before)
    if name == "steps" and verb != "list":
        return _read(
            lambda reader, chosen: [(str(s["number"]), _line(s.get("summary"))) for s in reader.steps(chosen)], before
        )
    return []


def _scenarios() -> Found:
    return _read(lambda reader, _: [(s["name"], f"recipe {s['recipe']}") for s in reader.scenarios()], [])


def _read(ask: Callable[..., Found], before: list[str]) -> Found:
    from reef.client import current_scenario, in_session
    from reef.paths import Paths

    paths = Paths.from_environ()
    if in_session() or not paths.database.is_file():
        return []
    from reef.records.reader import Reader

    explicit = next((word for flag, word in pairwise(before) if flag in ("-s", "--scenario")), None)
    reader = Reader(paths.database)
    try:
        return ask(reader, current_scenario(paths, explicit)[0])
    finally:
        reader.close()


def _line(text: str | None) -> str:
    from reef.text import one_line

    return one_line(text or "", 60)


def _flags(entry: table.Command, before: list[str]) -> Found:
    from reef.cli.app import load

    command = load(entry)
    if entry.verbs:
        verb = before[1] if len(before) > 1 and before[1] in entry.verbs else entry.default
        command = command.commands[verb]
    found = [(flag, (option.help or "")) for option in command.params for flag in option.opts if flag.startswith("--")]
    if entry.name in ("serve", "up"):
        from reef.cli.flags import setting_keys

        found += [(f"--{key}", "setting") for key in setting_keys()]
    return [*found, ("--help", "Show this message and exit.")]
