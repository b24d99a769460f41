"""`reef versions export` and `import`: a version that leaves this reef, or comes from another one."""

from __future__ import annotations

import json as json_module
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from reef import needs
from reef.cli import output
from reef.cli.difference import lines_of
from reef.cli.group import JsonOption, ScenarioOption, YesOption
from reef.cli.look import ERR, OUT, counted, size
from reef.cli.scope import daemon, person_only, scenario, versions_of
from reef.cli.version_rows import Json, VersionArgument, existing
from reef.errors import Failed, Refused, UsageError
from reef.paths import Paths

FOLDERS = ("skills", "agents-md", "git")
_LOCK = "reef.lock.json"


def export(
    version: VersionArgument,
    form: Annotated[
        str | None,
        typer.Option("--as", metavar="FORM", help="A folder that works without reef: skills, agents-md, git."),
    ] = None,
    bundle: Annotated[bool, typer.Option("--bundle", help="A git bundle with the history, for another reef.")] = False,
    to: Annotated[
        str | None, typer.Option("-o", "--output", metavar="PATH", help="Where to; nothing may be there.")
    ] = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Carry a version away.

    Without --as it is one file for `reef versions import` of another reef: an archive with the hash of every file, or
    with --bundle a git bundle. With --as it is a plain folder that works without reef, with a `reef.lock.json` of
    hashes: `skills` as every agent reads them, `agents-md` with all rules in AGENTS.md, `git` with the whole content
    and its history.
    """
    person_only("carry a version away")
    if form is not None and (bundle or form not in FOLDERS):
        raise UsageError(
            "a folder is no bundle" if bundle else f"there is no form {form!r} (forms: {', '.join(FOLDERS)})",
            "reef versions export v1 --as skills",
        )
    kind = form or ("bundle" if bundle else "archive")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    with daemon(paths, start=False) as client:
        number = existing(versions_of(client, name), name, version)
        ends = {"archive": ".reef.tar.gz", "bundle": ".bundle"}
        place = Path(to or f"{name}-v{number}{ends.get(kind, f'-{kind}')}").absolute()
        if place.exists() or place.is_symlink():
            raise Refused(f"{place} is there already and is left alone", f"reef versions export v{number} -o OTHER")
        if not place.parent.is_dir():
            raise Failed(f"{place.parent} is not a folder", f"mkdir -p {place.parent}")
        pieces = client.export_version(name, number, kind)
        told = _unpack(pieces, place) if form else _save(pieces, place)
    if json:
        output.json_value({"scenario": name, "version": number, "as": kind, "path": str(place)} | told)
        return
    how_much = counted(len(told["files"]), "file") if form else size(told["bytes"])
    output.data(OUT.joined(f"v{number} of scenario {name}", OUT.line(str(place)), how_much))
    for reason in told.get("left_out") or []:
        output.say(f"left out   {OUT.line(reason)}")
    if not form:
        output.say(f"{ERR.paint('next', 'dim')}   reef versions import {place.name}, in another reef")


def import_version(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `reef versions export` made.")],
    scenario_name: ScenarioOption = None,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Make a version of what another reef exported.

    It becomes a new version of the scenario, whatever scenario it came from, and takes nobody's place. What it changes
    is shown first. One that adds or changes code waits for your yes as every such version does; another is served from
    then on. A file whose hashes are wrong, or with a name that leads out of the tree, is refused.
    """
    person_only("import a version")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    place = Path(file).absolute()
    with daemon(paths) as client:
        found = client.import_version(name, str(place), look=True)
        if not yes or not json:
            _show(found)
        served = "waits for your yes before it is served" if found["pending"] else "is served from then on"
        output.agree(
            f"import it into scenario {name}? It {served}", yes, f"reef versions import {file} -s {name} --yes"
        )
        done = client.import_version(name, str(place), expected=found["content_id"])
    if json:
        output.json_value(done)
        return
    output.data(OUT.joined(f"imported v{done['version']}", f"scenario {name}", OUT.line(done["state"])))
    verb = "show" if done["pending"] else "install"
    output.say(f"{ERR.paint('next', 'dim')}   reef versions {verb} v{done['version']} -s {name}")


def _show(found: Json) -> None:
    output.say(ERR.line(found["from"]))
    for reason in found["code"]:
        output.say(f"code   {ERR.line(reason)}")
    for need in found["requires"]:
        output.say(f"needs  {needs.shown(need)}")
    for line in lines_of(found, ERR):
        output.say(line)


def _save(pieces: Iterable[bytes], place: Path) -> dict[str, Any]:
    """The file whole at its place, or not at all."""
    with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".reef-", delete=False) as fresh:
        half = Path(fresh.name)
        try:
            for piece in pieces:
                fresh.write(piece)
            fresh.flush()
            # A link fails where something has come to be meanwhile; a rename would take its place.
            place.hardlink_to(half)
        finally:
            half.unlink()
    return {"bytes": place.stat().st_size}


def _unpack(pieces: Iterable[bytes], place: Path) -> dict[str, Any]:
    """The folder whole at its place, or not at all."""
    half = Path(tempfile.mkdtemp(dir=place.parent, prefix=".reef-"))
    try:
        with tempfile.TemporaryFile() as spool:
            for piece in pieces:
                spool.write(piece)
            spool.seek(0)
            with tarfile.open(fileobj=spool, mode="r") as packed:
                for entry in packed:
                    _put(packed, entry, half)
        half.chmod(0o755)
        half.rename(place)
    finally:
        shutil.rmtree(half, ignore_errors=True)
    lock = json_module.loads((place / _LOCK).read_text(encoding="utf-8"))
    return {"files": sorted(lock["files"]), "left_out": lock["left_out"]}


def _put(packed: tarfile.TarFile, entry: tarfile.TarInfo, folder: Path) -> None:
    target = folder / entry.name
    body = packed.extractfile(entry) if entry.isreg() else None
    if body is None or ".." in target.parts or not target.is_relative_to(folder):
        raise Failed(f"the daemon sent {entry.name!r}, which is no plain file of a version", "reef logs")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(body, file)
