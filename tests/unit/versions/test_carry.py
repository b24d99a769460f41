"""Archives and bundles of versions: what goes in comes out, and nothing of a foreign file is believed."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reef.errors import InvalidInput, Refused, TooLarge
from reef.versions import carry
from reef.versions.repository import Repository

FILES = {"harness/rules/tests.md": b"Write a test first.\n", "harness/skills/a/SKILL.md": b"---\nname: a\n---\nDo.\n"}
FACTS = {"scenario": "coding", "version": 2, "summary": "a rule", "requires": []}


def release(repository: Repository, files: dict[str, bytes]) -> str:
    """A version with these files after another one."""
    first = repository.commit(
        {"harness/rules/tests.md": b"first\n"}, {"scenario": "coding", "number": 1}, None, "v1: base"
    )
    facts = {"scenario": "coding", "number": 2, "requires": []}
    return repository.commit(files, facts, first, "v2: a rule")


@pytest.fixture
def taken(tmp_path: Path) -> Callable[[Path], carry.Carried]:
    """Reads a file with a folder of its own for what is large."""

    def read(file: Path) -> carry.Carried:
        folder = tmp_path / "large"
        folder.mkdir(exist_ok=True)
        return carry.read(file, folder)

    return read


def packed(target: Path, members: list[tuple[tarfile.TarInfo, bytes]], compress: bool = True) -> Path:
    """An archive with exactly these members."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry, body in members:
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    target.write_bytes(gzip.compress(raw.getvalue()) if compress else raw.getvalue())
    return target


def member(name: str, body: bytes, **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    for key, value in more.items():
        setattr(entry, key, value)
    return entry, body


def lock(files: dict[str, bytes], **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    """A lock that is true of these files."""
    said = {path: {"sha256": hashlib.sha256(body).hexdigest(), "size": len(body)} for path, body in files.items()}
    return member("reef.lock.json", json.dumps({"format": carry.FORMAT, **FACTS, "files": said, **more}).encode())


def test_an_archive_brings_back_what_went_in_and_is_the_same_bytes_each_time(
    repository: Repository, tmp_path: Path, taken: Callable[[Path], carry.Carried]
) -> None:
    files = FILES | {"weights/adapter_model.safetensors": b"w" * 70_000, "weights/adapter_config.json": b"{}"}
    made = release(repository, files)
    carry.write_archive(repository, made, FACTS, tmp_path / "a.tar.gz")
    carry.write_archive(repository, made, FACTS, tmp_path / "b.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    found = taken(tmp_path / "a.tar.gz")
    assert found.facts == FACTS
    assert found.components == ["harness", "weights"]
    large = found.files.pop("weights/adapter_model.safetensors")
    assert isinstance(large, Path) and large.read_bytes() == b"w" * 70_000
    assert found.files == {path: body for path, body in files.items() if not path.endswith(".safetensors")}


def test_a_bundle_brings_back_the_version_and_refuses_large_files(
    repository: Repository, tmp_path: Path, taken: Callable[[Path], carry.Carried]
) -> None:
    made = release(repository, FILES)
    carry.write_bundle(repository, made, "coding", tmp_path / "a.bundle")
    found = taken(tmp_path / "a.bundle")
    assert found.files == FILES
    assert (found.facts["version"], found.facts["summary"], found.facts["release_id"]) == (2, "a rule", made)
    assert repository.branches() == {}
    heavy = release(repository, FILES | {"weights/a.safetensors": b"w"})
    with pytest.raises(Refused, match=r"weights/a\.safetensors"):
        carry.write_bundle(repository, heavy, "coding", tmp_path / "b.bundle")
    assert [file.name for file in tmp_path.glob("*.bundle*")] == ["a.bundle"]


def test_a_bundle_that_unpacks_to_more_than_a_version_may_hold_is_refused_before_it_is_unpacked(
    repository: Repository, tmp_path: Path, taken: Callable[[Path], carry.Carried]
) -> None:
    bomb = release(repository, {"harness/rules/tests.md": b"a" * (9 * 1024 * 1024)})
    carry.write_bundle(repository, bomb, "coding", tmp_path / "a.bundle")
    assert (tmp_path / "a.bundle").stat().st_size < 100_000
    with pytest.raises(TooLarge):
        taken(tmp_path / "a.bundle")


NAMES = (
    "content/../../outside.md", "content//etc/x", "/etc/x", "content/harness/rules/../../../x.md", "../x",
    "content/harness/skills/.git/hooks/post-checkout", "content/harness/rules/a\\..\\b.md",
    "content/harness/rules/x\x01y.md",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_out_of_the_tree_is_refused_and_nothing_is_written(
    name: str, tmp_path: Path, taken: Callable[[Path], carry.Carried]
) -> None:
    path = name.removeprefix("content/")
    file = packed(tmp_path / "a.tar.gz", [lock({path: b"x"}), member(name, b"x")])
    with pytest.raises(InvalidInput):
        taken(file)
    assert list((tmp_path / "large").iterdir()) == []
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.tar.gz", "home", "large"]


RULE = {"harness/rules/a.md": b"Be brief.\n"}


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([lock(RULE), member("content/harness/rules/a.md", b"Be rude!!\n")], "does not have the hash"),
        ([lock(RULE), member("content/harness/rules/a.md", b"Be brief, and more.\n")], "which it may not"),
        ([lock(RULE)], "lacks 'harness/rules/a.md'"),
        ([lock({}), member("content/harness/rules/a.md", b"x")], "0 files"),
        ([lock(RULE), member("content/harness/rules/b.md", b"x")], "is not in its lock"),
        ([member("content/harness/rules/a.md", b"x"), lock(RULE)], "does not begin with"),
        ([lock(RULE, format="other-9")], "is not of the form"),
        (
            [
                member("reef.lock.json", b"{"),
            ],
            "cannot be read",
        ),
        ([member("reef.lock.json", b'{"format": "reef-version-1", "files": {"a": 3}}')], "cannot be read"),
        (
            [lock(RULE), member("content/harness/rules/a.md", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd")],
            "is not a plain file",
        ),
        ([lock(RULE), *[member("content/harness/rules/a.md", b"Be brief.\n")] * 2], "is there twice"),
        ([lock({"secrets/a.md": b"x"}), member("content/secrets/a.md", b"x")], "a part 'secrets'"),
        ([], "has no reef.lock.json"),
    ],
)
def test_an_archive_that_is_not_what_its_lock_says_is_refused(
    members: list[tuple[tarfile.TarInfo, bytes]], said: str, tmp_path: Path, taken: Callable[[Path], carry.Carried]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        taken(packed(tmp_path / "a.tar.gz", members))
    assert said in refused.value.message


def test_a_file_that_is_no_archive_and_one_that_is_cut_are_refused_in_one_sentence(
    repository: Repository, tmp_path: Path, taken: Callable[[Path], carry.Carried]
) -> None:
    file = tmp_path / "a.tar.gz"
    carry.write_archive(repository, release(repository, FILES), FACTS, file)
    whole = file.read_bytes()
    broken = [b"", b"not an archive", whole[: len(whole) // 2], b"# v2 git bundle\n", b"# v2 git bundle\nrubbish"]
    for content in broken:
        file.write_bytes(content)
        with pytest.raises(InvalidInput):
            taken(file)
        assert "\n" not in told(taken, file)
    with pytest.raises(InvalidInput, match="cannot be read"):
        taken(tmp_path / "none")


def told(taken: Callable[[Path], carry.Carried], file: Path) -> str:
    """What is said of a file that is refused."""
    with pytest.raises(InvalidInput) as refused:
        taken(file)
    return refused.value.message


def test_large_files_that_the_disk_cannot_hold_are_refused_before_any_is_written(
    tmp_path: Path, taken: Callable[[Path], carry.Carried]
) -> None:
    said = {"weights/a.safetensors": {"sha256": "0" * 64, "size": 2**60}}
    entry = member("reef.lock.json", json.dumps({"format": carry.FORMAT, "files": said}).encode())
    with pytest.raises(TooLarge):
        taken(packed(tmp_path / "a.tar.gz", [entry]))
    assert list((tmp_path / "large").iterdir()) == []


@pytest.mark.parametrize(
    "broken",
    [
        lambda place: packed(place, [member("reef.lock.json", b"""{"files": {"a": {"sha256": "", "size": 1e999}}}""")]),
        lambda place: packed(place, [member("reef.lock.json", b"{}", pax_headers={"GNU.sparse.size": "x"})]),
        lambda place: packed(place, [member("reef.lock.json", b"{}", pax_headers={"GNU.sparse.map": "a,b"})]),
        lambda place: place.write_bytes(gzip.compress(b"")[:9]) and place,
        lambda place: place.write_bytes(b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"a name without an end") and place,
        lambda place: place.write_bytes(gzip.compress(b"")[:10] + b"\xff" * 40) and place,
    ],
    ids=["endless size", "sparse size", "sparse map", "cut header", "cut name", "no deflate"],
)  # fmt: skip
def test_an_archive_with_nonsense_in_its_headers_is_refused_by_name(
    tmp_path: Path, taken: Callable[[Path], carry.Carried], broken: Callable[[Path], Path]
) -> None:
    with pytest.raises(InvalidInput, match=r"v1\.tar\.gz"):
        taken(broken(tmp_path / "v1.tar.gz"))
