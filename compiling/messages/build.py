"""Generator of codecs/generated: a module per message, and one with the digest of the inputs.

An sdist contains the modules, so it does not need kafka-python.
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
    """Return the packages that `make_modules` needs."""
    return [] if are_current() else [KAFKA_PYTHON]


def make_modules() -> None:
    """Generate all modules unless they are current.

    Raises:
        DefinitionsError: See definitions.py.
    """
    if are_current():
        return
    texts = {f"{module_name(schema)}.py": module_source(schema) for schema in all_schemas()}
    MODULES.mkdir(exist_ok=True)
    for path in MODULES.glob("*.py"):
        # Includes the note, which is written last: a partial set must not count as current.
        if path.name not in texts:
            path.unlink(missing_ok=True)
    for name, text in texts.items():
        (MODULES / name).write_text(text, encoding="utf-8")
    (MODULES / f"{_NOTE}.py").write_text(_note(), encoding="utf-8")
    # Otherwise the first use of each message compiles it, in 6 to 9 ms.
    compileall.compile_dir(MODULES, quiet=1, force=True)


def are_current() -> bool:
    """Return whether the digest is this generator's."""
    note = MODULES / f"{_NOTE}.py"
    return note.is_file() and note.read_text(encoding="utf-8") == _note()


def _note() -> str:
    digest = hashlib.sha256()
    for path in sorted([*Path(__file__).parent.glob("*.py"), *TABLES.glob("*.txt")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    text = '"""What the modules beside this one were made from."""\nDIGEST = "{}"\n'
    return text.format(digest.hexdigest())
