"""The one table of everything a person can do: bindings, help, palette and the line of keys are made from it.

An action has an id that stays, so that a key can be changed in the settings: `tui.keys: {rate_good: g}`. A screen that
offers it has a method `do_<id>`; what is offered everywhere is a method of the app.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from textual.binding import Binding

from reef.errors import ConfigError

EVERYWHERE: frozenset[str] = frozenset()
LISTS = frozenset({"now", "traces", "asks", "versions"})


@dataclass(frozen=True)
class Action:
    """One row of the table."""

    id: str
    keys: tuple[str, ...]
    """Default keys, as Textual names them; none: only in the palette."""
    label: str
    """The word beside the key at the bottom line; empty: not shown there."""
    help: str
    """A sentence without a full stop."""
    group: str
    places: frozenset[str] = EVERYWHERE
    """Places that offer it; empty: everywhere."""
    weight: int = 0
    """Order at the bottom line: small first."""


ACTIONS: tuple[Action, ...] = (
    Action("open", ("enter",), "open", "open what is under the cursor, or unfold it", "list", LISTS, 1),
    Action("down", ("j", "down"), "", "one down", "list", LISTS),
    Action("up", ("k", "up"), "", "one up", "list", LISTS),
    Action("page_down", ("pagedown", "space"), "", "a page down", "list", LISTS),
    Action("page_up", ("pageup",), "", "a page up", "list", LISTS),
    Action("top", ("g", "home"), "", "to the top", "list", LISTS),
    Action("bottom", ("G", "end"), "", "to the bottom", "list", LISTS),
    Action("other_pane", ("tab", "shift+tab"), "", "to the other column", "list", LISTS),
    Action("filter", ("slash",), "filter", "filter the list; esc clears", "list", LISTS - {"now"}, 30),
    Action(
        "pause", ("p",), "pause", "stop following, or follow again", "list", frozenset({"now", "traces", "asks"}), 31
    ),
    Action(
        "rate_good", ("plus", "equals_sign"), "good", "rate the call: good", "call", frozenset({"now", "traces"}), 10
    ),
    Action("rate_bad", ("minus",), "bad", "rate the call: bad", "call", frozenset({"now", "traces"}), 11),
    Action("note", ("n",), "note", "rate the call with a note", "call", frozenset({"now", "traces"}), 12),
    Action("undo", ("z",), "", "take the last rating back", "call"),
    Action(
        "raw", ("r",), "raw request", "raw request, raw reply, conversation in turn", "call", frozenset({"traces"}), 13
    ),
    Action("ask", ("a",), "ask", "ask for a change in plain words", "ask", EVERYWHERE, 20),
    Action("cancel", ("x",), "cancel", "cancel the ask and its step", "ask", frozenset({"asks"}), 10),
    Action(
        "go_version", ("v",), "its version", "go to the version it led to", "ask", frozenset({"asks", "traces"}), 14
    ),
    Action("install", ("i",), "install", "install the version on this machine", "version", frozenset({"versions"}), 10),
    Action(
        "promote", ("p",), "promote", "serve the pending version from now on", "version", frozenset({"versions"}), 11
    ),
    Action(
        "rollback", ("R",), "roll back", "go back to a version that was served", "version", frozenset({"versions"}), 12
    ),
    Action("diff", ("d",), "diff with …", "compare with another version", "version", frozenset({"versions"}), 13),
    Action(
        "try_version",
        ("t",),
        "try once",
        "one session with the version; what is installed stays",
        "version",
        frozenset({"versions"}),
        14,
    ),
    Action("pin", ("P",), "pin", "keep the version installed, or let go of it", "version", frozenset({"versions"}), 15),
    Action("bisect", ("b",), "bisect", "find the version that broke things", "version", frozenset({"versions"}), 16),
    Action("copy", ("y",), "copy", "copy the id, or the part under the cursor", "any", LISTS, 40),
    Action("copy_json", ("Y",), "", "copy all of it as JSON", "any", LISTS),
    Action("export", ("e",), "", "export: write all of it to a file", "any", LISTS),
    Action("scenario", ("s",), "scenario", "choose the scenario", "any", EVERYWHERE, 50),
    Action("reload", ("f5", "ctrl+r"), "", "fetch again", "any"),
    Action("place_now", ("1",), "", "go to Now", "go"),
    Action("place_traces", ("2",), "", "go to Traces", "go"),
    Action("place_asks", ("3",), "", "go to Asks", "go"),
    Action("place_versions", ("5",), "", "go to Versions", "go"),
    Action("start_daemon", ("u",), "", "start the daemon", "reef"),
    Action("theme", (), "", "change between dark and light", "reef"),
    Action("palette", ("ctrl+p",), "all actions", "every action, by name", "reef", EVERYWHERE, 60),
    Action("help", ("question_mark", "f1"), "help", "the keys of this place", "reef", EVERYWHERE, 70),
    Action("back", ("escape",), "", "back one level; never quits", "reef"),
    Action("quit", ("q", "ctrl+q"), "quit (reef keeps running)", "quit; reef keeps running", "reef", EVERYWHERE, 80),
)
BY_ID = {action.id: action for action in ACTIONS}
GROUPS = {
    "list": "lists",
    "call": "calls",
    "ask": "asks",
    "version": "versions",
    "any": "anywhere",
    "go": "places",
    "reef": "reef",
}
_SHOWN = {
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "slash": "/",
    "question_mark": "?",
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


def offered(place: str) -> list[Action]:
    """The actions of a place: its own, then those of everywhere."""
    own = [action for action in ACTIONS if place in action.places]
    return own + [action for action in ACTIONS if not action.places]


def keys_of(action: Action, changed: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of an action after the person's changes (a key or several with commas between)."""
    if action.id in changed:
        return tuple(key.strip() for key in changed[action.id].split(",") if key.strip())
    return action.keys


def key_name(key: str) -> str:
    """A key as it is printed: `+`, `esc`, `ctrl+p`."""
    return _SHOWN.get(key, key)


def bindings(actions: Iterable[Action]) -> list[Binding | tuple[str, str] | tuple[str, str, str]]:
    """The Textual bindings of actions, with their ids so that keys can be changed."""
    return [
        Binding(",".join(action.keys), f"act('{action.id}')", action.help, show=False, id=action.id)
        for action in actions
        if action.keys
    ]


def check_keys(changed: Mapping[str, str]) -> None:
    """Refuse changed keys that name no action, are empty, or take a key of another action in the same place."""
    for name, key in changed.items():
        if name not in BY_ID:
            near = difflib.get_close_matches(name, BY_ID, 1, 0.4)
            raise ConfigError(
                f"tui.keys: there is no action {name!r}", f"did you mean {near[0]!r}?" if near else "reef help config"
            )
        if not [part for part in key.split(",") if part.strip()]:
            raise ConfigError(f"tui.keys.{name}: a key is needed", "reef config show")
    for place in LISTS:
        taken: dict[str, str] = {}
        for action in offered(place):
            for key in keys_of(action, changed):
                other = taken.setdefault(key, action.id)
                if other != action.id:
                    raise ConfigError(
                        f"tui.keys: {key_name(key)!r} would be both {other} and {action.id}", "reef config show"
                    )
