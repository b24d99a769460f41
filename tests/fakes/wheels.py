"""Small wheels, as a Python package registry would give them out."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path


def wheel(folder: Path, name: str, version: str, files: dict[str, str], scripts: str = "") -> str:
    """Write a wheel into `folder`. Returns the line of a lock file that names it."""
    facts = f"{name}-{version}.dist-info"
    files = files | {
        f"{facts}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{facts}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if scripts:
        files[f"{facts}/entry_points.txt"] = f"[console_scripts]\n{scripts}\n"
    rows = []
    for path, text in files.items():
        hash = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={hash},{len(text.encode())}")
    files[f"{facts}/RECORD"] = "\n".join([*rows, f"{facts}/RECORD,,", ""])
    place = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as made:
        for path, text in files.items():
            made.writestr(path, text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(place.read_bytes()).hexdigest()}\n"
