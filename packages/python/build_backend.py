"""Builds the wheel with the standard library alone (PEP 517, PEP 427), so that no build needs a package index."""

from __future__ import annotations

import ast
import base64
import hashlib
import re
import zipfile
from pathlib import Path
from typing import Any, List, Optional, Tuple

ROOT = Path(__file__).parent
# Of every file of the archives: the same sources give the same bytes.
TIME = (2020, 1, 1, 0, 0, 0)


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _setting(name: str) -> Any:
    """Reads a text or a list of texts of pyproject.toml: tomllib came with Python 3.11."""
    found = re.search(rf"^{name} = (.*)$", _read("pyproject.toml"), re.MULTILINE)
    if found is None:
        raise KeyError(name)
    return ast.literal_eval(found.group(1))


def _name() -> str:
    return f"{_setting('name').replace('-', '_')}-{_setting('version')}"


def _metadata() -> str:
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", _setting("name")),
        ("Version", _setting("version")),
        ("Summary", _setting("description")),
        ("License-Expression", _setting("license")),
        ("License-File", "LICENSE"),
        ("Keywords", ",".join(_setting("keywords"))),
        ("Requires-Python", _setting("requires-python")),
        *(("Classifier", each) for each in _setting("classifiers")),
        *(("Requires-Dist", each) for each in _setting("dependencies")),
        ("Description-Content-Type", "text/markdown"),
    ]
    return "".join(f"{key}: {value}\n" for key, value in fields) + "\n" + _read("README.md")


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Optional[str] = None) -> str:
    info = f"{_name()}.dist-info"
    sources = sorted((ROOT / "src").rglob("*.py")) + sorted((ROOT / "src").rglob("py.typed"))
    files: List[Tuple[str, bytes]] = [(str(path.relative_to(ROOT / "src")), path.read_bytes()) for path in sources]
    wheel = "Wheel-Version: 1.0\nGenerator: build_backend\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files += [
        (f"{info}/METADATA", _metadata().encode()),
        (f"{info}/WHEEL", wheel.encode()),
        (f"{info}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes()),
    ]
    record = "".join(f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode()))
    target = f"{_name()}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return target


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
