"""Built-in entries: what reef ships in a tree, and how a tree that an older package made gets those of this one.

An entry that differs from every text that reef has shipped was edited by a person, and is theirs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from reef.harness.tree import RESERVED, Entry, Tree


@dataclass(frozen=True)
class Renewal:
    """A tree with the built-in entries of this package."""

    tree: Tree
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Built-in entries that a person has edited or removed, and that stay so."""

    @property
    def reason(self) -> str:
        """What is different, in words; empty when nothing is."""
        told = {"new": self.added, "changed": self.changed, "gone": self.removed}
        parts = [f"{word}: {', '.join(names)}" for word, names in told.items() if names]
        parts += [f"edited and kept: {', '.join(self.kept)}"] if parts and self.kept else []
        return "; ".join(parts)


def built_in(tree: Tree) -> list[Entry]:
    """The entries whose ids are reef's own."""
    return [entry for entry in tree.entries if entry.id.startswith(RESERVED)]


def fingerprints(tree: Tree) -> dict[str, str]:
    """The built-in entries by id, each with the hash by which its text is known again."""
    return {
        entry.id: hashlib.sha256(json.dumps(entry.to_json(), sort_keys=True).encode()).hexdigest()[:32]
        for entry in built_in(tree)
    }


def renew(tree: Tree, shipped: Tree, known: Mapping[str, Collection[str]], agents: Iterable[str]) -> Renewal:
    """`tree` with the built-in entries that are `shipped` now.

    `known` holds the fingerprints of every text of an entry that was shipped before. `agents` are those whose entries
    `shipped` holds: what belongs to another one, which is only away now, is left alone.
    """
    has, fits = fingerprints(tree), fingerprints(shipped)
    added: list[str] = []
    changed: list[str] = []
    removed: list[str] = []
    kept: list[str] = []
    for name in sorted(has | fits):
        if has.get(name) == fits.get(name):
            continue
        if name not in has:
            (kept if known.get(name) else added).append(name)
        elif has[name] not in known.get(name, ()):
            kept += [name] if name in fits else []
        elif name in fits:
            changed.append(name)
        elif any(name == f"{RESERVED}{agent}" or name.startswith(f"{RESERVED}{agent}-") for agent in agents):
            removed.append(name)
    renewed = {*added, *changed}
    entries = [entry for entry in tree.entries if entry.id not in {*changed, *removed}]
    entries += [entry for entry in shipped.entries if entry.id in renewed]
    return Renewal(Tree(entries), tuple(added), tuple(changed), tuple(removed), tuple(kept))
