"""The descriptors of `tests/descriptors/broken`, each as the file that it is to be.

A pack there holds many cases: a line `--- # NAME.yaml` begins one, and lines are counted from the
next. What a case refers to is a case with a folder in its name.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from pathlib import Path

PACKS = Path(__file__).parent / "descriptors" / "broken"
_BEGIN = re.compile(rb"^--- # (\S+\.yaml)\n", re.MULTILINE)


def unpack(folder: Path) -> Path:
    """Write every case below the folder."""
    for pack in sorted(PACKS.glob("*.yaml")):
        before, *cases = _BEGIN.split(pack.read_bytes())
        assert not before, f"{pack} begins with what is of no case"
        for name, text in zip(cases[::2], cases[1::2], strict=True):
            path = folder / name.decode()
            assert not path.exists(), f"{name.decode()} is there twice"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
    return folder


BROKEN = unpack(Path(tempfile.mkdtemp(prefix="broken-descriptors-")))
"""Where they are, as long as this process lives."""
atexit.register(shutil.rmtree, BROKEN, ignore_errors=True)
FILES = sorted(BROKEN.glob("*.yaml"))
