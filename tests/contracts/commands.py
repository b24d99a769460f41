"""Checks a typed command line against the real commands, without running it."""

from __future__ import annotations

import re
import shlex
from typing import Any

from reef.cli import table
from reef.cli.app import load
from reef.harness.wrapper import COMMANDS as WRAPPER_WORDS

SCRIPT = {"": 0, "install": 0, "--with": 1, "quickstart": 1, "test": 1, "uninstall": 1}
SCRIPT_FLAGS = {"--with": {"providers"}, "quickstart": {"--prove"}, "test": {"--all"}, "uninstall": {"--purge"}}


def split(line: str) -> list[list[str]]:
    """The simple commands of a line, as words; comments and what a pipe feeds are separate commands."""
    words = shlex.split(line, comments=True)
    words = words[: next((place for place, word in enumerate(words) if word.startswith((">", "2>"))), len(words))]
    found: list[list[str]] = [[]]
    for word in words:
        if word in ("&&", "||", "|", ";", "&"):
            found.append([])
        elif "=" not in word or found[-1] or not word.split("=")[0].isupper():
            found[-1].append(word)
    return [command for command in found if command]


def problem(words: list[str]) -> str | None:
    """What is wrong with a command, None when it is one that exists."""
    if words[0] == "reef":
        return _reef_problem(words[1:])
    if words[0] == "reef-pi":
        known = len(words) == 1 or words[1] in WRAPPER_WORDS or words[1] in ("-p", "--continue", "--help")
        return None if known else f"reef-pi has no word {words[1]}"
    if words[0] == "./install.sh":
        verb = words[1] if len(words) > 1 else ""
        if verb not in SCRIPT or not set(words[2:]) <= SCRIPT_FLAGS.get(verb, set()):
            return f"install.sh has no {' '.join(words[1:])}"
    return None


def _reef_problem(arguments: list[str]) -> str | None:
    if arguments[:1] in ([], ["--help"], ["--version"]):
        return None
    entry = table.find(arguments[0])
    if entry is None:
        return f"reef has no command {arguments[0]}"
    if arguments[0] == "help":
        known = len(arguments) == 1 or arguments[1] in table.TOPICS or table.find(arguments[1])
        return None if known else f"there is no help on {arguments[1]}"
    command: Any = load(entry)
    rest = arguments[1:]
    if entry.default is not None and (not rest or rest[0].startswith("-")) and "--help" not in rest[:1]:
        rest = [entry.default, *rest]
    return _parses(command, rest, f"reef {arguments[0]}")


def _parses(command: Any, arguments: list[str], name: str) -> str | None:
    try:
        context = command.make_context(name, list(arguments))
        if hasattr(command, "resolve_command"):
            # A noun's own context holds its verb and the verb's arguments as what is left.
            left = [*context._protected_args, *context.args]
            verb, child, rest = command.resolve_command(context, left)
            child.make_context(verb, rest, parent=context)
    except SystemExit as ended:
        return None if not ended.code else f"{name} {' '.join(arguments)} ends with {ended.code}"
    except Exception as error:
        # `--help` ends a context by an exception too, with status 0.
        if getattr(error, "exit_code", None) == 0:
            return None
        return f"{name} {' '.join(arguments)}: {error}"
    return None


def unknown_words(text: str) -> list[str]:
    """What a string that begins like a reef command says that no command, verb or topic has."""
    match = re.match(r"reef ([a-z]+)(?: ([a-z-]+))?(?= |$)", text)
    if match is None:
        return []
    entry = table.find(match[1])
    if entry is None:
        return [f"reef has no command {match[1]}"]
    if entry.name == "help" and match[2] and match[2] not in table.TOPICS and table.find(match[2]) is None:
        return [f"there is no help on {match[2]}"]
    if entry.verbs and match[2] and match[2] not in entry.verbs and not match[2].startswith("-"):
        return [f"reef {match[1]} has no {match[2]}"]
    return []
