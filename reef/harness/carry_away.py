"""The harness as plain files that work without reef: skills as every agent reads them, or one AGENTS.md.

    skills      <id>/SKILL.md and its files
    agents-md   AGENTS.md with every rule, and .agents/skills/<id>/SKILL.md

What such a folder has no place for is left out and named.
"""

from __future__ import annotations

from typing import Literal

from reef.harness.tree import RESERVED, Entry, Tree

Form = Literal["skills", "agents-md"]
FORMS: tuple[Form, ...] = ("skills", "agents-md")
_SKILLS = {"skills": "", "agents-md": ".agents/skills/"}


def plain_files(tree: Tree, form: Form) -> tuple[dict[str, bytes], list[str]]:
    """Path to bytes, and sentences that name what was left out."""
    files: dict[str, bytes] = {}
    left_out: list[str] = []
    rules: list[str] = []
    for entry in tree.entries:
        if entry.id.startswith(RESERVED):
            left_out.append(f"{entry.kind} {entry.id}: reef's own, of no use without it")
        elif entry.kind == "skill":
            files |= _skill(entry, _SKILLS[form])
        elif entry.kind == "rules" and form == "agents-md":
            rules.append(entry.text.strip("\n"))
        else:
            left_out.append(f"{entry.kind} {entry.id}: has no place in this form")
    if rules:
        files["AGENTS.md"] = ("\n\n".join(rules) + "\n").encode()
    return files, left_out


def _skill(entry: Entry, above: str) -> dict[str, bytes]:
    inner = {"SKILL.md": entry.text, **entry.config.get("files", {})}
    return {f"{above}{entry.id}/{path}": str(text).encode() for path, text in inner.items()}
