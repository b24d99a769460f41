"""Versions that leave this reef, and versions that come from another one."""

from __future__ import annotations

import asyncio
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from reef.credentials import find_credentials
from reef.daemon.asking import read_requires
from reef.daemon.house import House
from reef.daemon.scenarios import Scenario
from reef.errors import Conflict, InvalidInput
from reef.harness.adapter import load_adapter, readable_adapters
from reef.harness.admission import NEEDS_SANDBOX, admit, code_elsewhere, code_reasons
from reef.harness.carry_away import Form, plain_files
from reef.harness.tree import PREFIX, RESERVED, Tree
from reef.paths import ensure_private
from reef.text import one_line
from reef.versions import carry, large
from reef.versions.carry import Carried
from reef.versions.child_git import ChildGit
from reef.versions.publish import Proposal

Json = dict[str, Any]
Kind = Literal["archive", "bundle", "skills", "agents-md", "git"]
KINDS: tuple[Kind, ...] = ("archive", "bundle", "skills", "agents-md", "git")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


@contextmanager
def workplace(house: House) -> Iterator[Path]:
    """A private folder that is gone afterwards. What a killed daemon left goes first: one runs for each home."""
    above, own = ensure_private(house.paths.cache), f"carry-{os.getpid()}-"
    for left in above.glob("carry-*"):
        if not left.name.startswith(own):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=own, dir=above))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def pack(house: House, version: Json, kind: Kind, folder: Path) -> Path:
    """Make the file that leaves reef: an archive, a bundle, or a tar of a plain folder. Blocks."""
    release, target = str(version["release_id"]), folder / "carried"
    facts = {name: version[name] for name in ("scenario", "version", "release_id", "content_id", "summary", "requires")}
    if kind == "archive":
        carry.write_archive(house.repository, release, facts, target)
    elif kind == "bundle":
        carry.write_bundle(house.repository, release, str(version["scenario"]), target)
    else:
        with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as packed:
            if kind == "git":
                _pack_repository(house, version, facts, packed, folder / "repository")
            else:
                _pack_plain(house, release, facts, kind, packed)
    return target


def _pack_plain(house: House, release: str, facts: Json, kind: Form, packed: tarfile.TarFile) -> None:
    tree = Tree.from_files(house.repository.files(release, "harness"))
    files, left_out = plain_files(tree, kind)
    others = sorted({path.partition("/")[0] for path in house.repository.listing(release)} - {"harness"})
    left_out += [f"{name}: has no place in this form" for name in others]
    carry.add(packed, carry.LOCK, carry.lock_text({**facts, "as": kind, "left_out": left_out}, dict(files)))
    for path, body in sorted(files.items()):
        carry.add(packed, path, body)


def _pack_repository(house: House, version: Json, facts: Json, packed: tarfile.TarFile, place: Path) -> None:
    """A repository with the version's history, and its files beside it; large files are whole in both."""
    release, scenario = str(version["release_id"]), str(version["scenario"])
    files = carry.whole_files(house.repository, release)
    carry.add(packed, carry.LOCK, carry.lock_text({**facts, "as": "git", "left_out": []}, files))
    own = place / ".git"
    place.mkdir()
    ChildGit(own).run("init", "--quiet", "--template=", str(place), inside=False)
    git = ChildGit(own, timeout_s=600)
    with carry.borrowed(house.repository, release, scenario, place.with_name("borrowed.git")) as lent:
        git.run("fetch", "--quiet", "--no-tags", str(lent.path), f"refs/heads/{scenario}:refs/heads/{scenario}")
    git.run("symbolic-ref", "HEAD", f"refs/heads/{scenario}")
    git.run("read-tree", "HEAD")
    (own / "info").mkdir(exist_ok=True)
    (own / "info" / "exclude").write_text(f"{carry.LOCK}\n", encoding="utf-8")
    for file in sorted(file for file in own.rglob("*") if file.is_file()):
        carry.add(packed, file.relative_to(place).as_posix(), file)
    for path, content in files.items():
        carry.add(packed, path, content)
        if isinstance(content, Path):
            carry.add(packed, f".git/lfs/objects/{content.relative_to(house.repository.path / 'lfs/objects')}", content)
    carry.add(packed, ".gitattributes", large.ATTRIBUTES)


@dataclass(frozen=True)
class Arrival:
    """A version that came in a file, judged for the scenario that is to have it."""

    proposal: Proposal
    named: str
    """Where it came from: `v3 of scenario coding`."""
    reasons: list[str]
    """Why it is code, each naming its entry; empty when it is not."""


async def judge(house: House, scenario: Scenario, carried: Carried, file: str) -> Arrival:
    """What importing would publish. Raises InvalidInput that names what may not enter."""
    head = await house.publisher.head(scenario.name)
    current = Tree.from_files(await asyncio.to_thread(house.repository.files, head.release_id, "harness"))
    tree = _with_own_entries(current, Tree.from_files(_small(carried)))
    changes = carried.components
    reasons: list[str] = []
    if "harness" not in changes:
        tree = current
    elif tree != current:
        reasons = _admitted(house, scenario, current, tree, file)
    others = {path: body for path, body in carried.files.items() if not path.startswith(PREFIX)}
    reasons += _loaded_code(others, file)
    if tree == current and not others:
        raise InvalidInput(
            f"{file} holds what v{head.number} of scenario {scenario.name} has already",
            f"reef versions list -s {scenario.name}",
        )
    named = _named(carried.facts)
    proposal = Proposal(
        scenario=scenario.name,
        files={**tree.to_files(), **others},
        parent=head.release_id,
        summary=f"imported: {named}",
        pending=bool(reasons),
        requires=read_requires(carried.facts.get("requires")),
        changes=tuple(sorted({"harness", *changes})),
        operation="import",
    )
    return Arrival(proposal, named, reasons)


async def publish(house: House, arrival: Arrival, expected: str | None) -> Json:
    """Make it a version. Raises Conflict when the content is another than the person saw (`expected`, a tree id)."""
    proposal = arrival.proposal
    if expected is not None and (await look(house, arrival))["content_id"] != expected:
        raise Conflict("the file or the head changed since it was shown", f"reef versions list -s {proposal.scenario}")
    made = await house.publisher.publish(proposal)
    return {"version": made.number, "release_id": made.release_id, "content_id": made.content_id, "state": made.state}


async def look(house: House, arrival: Arrival) -> Json:
    """What publishing would make, without a version: its content and its release, which no branch names."""
    proposal = arrival.proposal
    facts = {"scenario": proposal.scenario, "candidate": True, "parent": proposal.parent}

    def work() -> Json:
        release = house.repository.commit(proposal.files, facts, proposal.parent, proposal.summary, proposal.changes)
        return {"release_id": release, "content_id": house.repository.content_id(release)}

    return await asyncio.to_thread(work)


def _small(carried: Carried) -> dict[str, bytes]:
    return {path: body for path, body in carried.files.items() if isinstance(body, bytes)}


def _with_own_entries(current: Tree, arrived: Tree) -> Tree:
    """The arrived tree with this reef's own entries in the place of the other one's."""
    own = [entry for entry in current.entries if entry.id.startswith(RESERVED)]
    return Tree([*own, *(entry for entry in arrived.entries if not entry.id.startswith(RESERVED))])


def _admitted(house: House, scenario: Scenario, current: Tree, tree: Tree, file: str) -> list[str]:
    """Why the change is code. Raises InvalidInput for what no version may hold."""
    adapter = load_adapter(scenario.adapter, house.paths)
    changes = current.changes(tree)
    mutations = [
        {"op": change.op, "id": change.entry.id}
        | ({} if change.after is None else {"kind": change.after.kind, "config": change.after.config})
        for change in changes
    ]
    found = admit(current, mutations, adapter)
    wrong = [reason for reason in found.reasons if f": {NEEDS_SANDBOX}: " not in reason]
    if wrong:
        raise InvalidInput(f"{file}: {one_line('; '.join(wrong), 600)}", "reef versions export v1")
    code = [reason for change in changes for reason in code_reasons(change, adapter)]
    return list(dict.fromkeys(code + code_elsewhere(changes, readable_adapters(house.paths))))


def _loaded_code(others: Mapping[str, bytes | Path], file: str) -> list[str]:
    """Why files outside the harness are code. Raises InvalidInput that names one which holds a credential."""
    for path, body in others.items():
        kinds = find_credentials(body.decode("utf-8", "replace")) if isinstance(body, bytes) else []
        if kinds:
            raise InvalidInput(f"{file}: {path} holds a credential ({kinds[0]})", "reef versions export v1")
    return [f"{path}: a pickle can run code when it is loaded" for path in others if path.endswith(_PICKLES)]


def _named(facts: Json) -> str:
    """Where a version came from, in words that are safe anywhere."""
    number, scenario = facts.get("version"), facts.get("scenario")
    from_there = f"v{number} of scenario {one_line(scenario, 64)}" if isinstance(scenario, str) else "a version"
    summary = facts.get("summary")
    return from_there + (f", {one_line(summary, 120)}" if isinstance(summary, str) and summary else "")


def checked_path(value: object) -> Path:
    """The file that a person named. Raises InvalidInput unless it is the whole path of a file."""
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise InvalidInput(
            "the body needs 'path', the whole path of a file", 'use {"path": "/…/coding-v3.reef.tar.gz"}'
        )
    place = Path(os.path.normpath(value))
    if not place.is_file():
        raise InvalidInput(f"{one_line(value, 400)} is not a file", "reef versions export v1")
    return place
