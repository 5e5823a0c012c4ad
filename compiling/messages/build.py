"""Makes codecs/generated: a module per message, and one that tells what they were made from.

Whatever builds wirebroker calls `make_modules`: compiling/backend.py, make, compiling/tree.py. An
sdist holds them already, so that it needs no kafka-python.
"""

from __future__ import annotations

import compileall
import hashlib
from pathlib import Path
from typing import Final

from compiling.messages.definitions import KAFKA_PYTHON, TABLES, all_schemas
from compiling.messages.modules import module_name, module_source

ROOT: Final = Path(__file__).resolve().parent.parent.parent
MODULES: Final = ROOT / "codecs" / "generated"
COMMAND: Final = "python -m compiling.messages"
_NOTE: Final = "made_from"


def requirements() -> list[str]:
    """Return what a build must install for `make_modules`."""
    return [] if are_current() else [KAFKA_PYTHON]


def make_modules() -> None:
    """Bring the modules up to date: nothing if they are, else all of them, a second.

    Raises:
        DefinitionsError: kafka-python is not there or not as it was checked.
    """
    if are_current():
        return
    texts = {f"{module_name(schema)}.py": module_source(schema) for schema in all_schemas()}
    MODULES.mkdir(exist_ok=True)
    for path in MODULES.glob("*.py"):
        if path.name not in texts:  # the note too, which comes last: half of them is not current
            path.unlink(missing_ok=True)
    for name, text in texts.items():
        (MODULES / name).write_text(text, encoding="utf-8")
    (MODULES / f"{_NOTE}.py").write_text(_note(), encoding="utf-8")
    # Else the first use of each message compiles it: 6 to 9 ms, not 0.2 (pip does it for wheels).
    compileall.compile_dir(MODULES, quiet=1, force=True)


def are_current() -> bool:
    """Tell whether the modules were made by this generator from these tables."""
    note = MODULES / f"{_NOTE}.py"
    return note.is_file() and note.read_text(encoding="utf-8") == _note()


def _note() -> str:
    """Return the text of the module that tells what the others were made from.

    kafka-python's definitions are in it by their digests, which are beside the tables.
    """
    digest = hashlib.sha256()
    for path in sorted([*Path(__file__).parent.glob("*.py"), *TABLES.glob("*.txt")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    text = '"""What the modules beside this one were made from."""\nDIGEST = "{}"\n'
    return text.format(digest.hexdigest())
