"""Adds compiled modules (compiling/build_choice.py) to a wheel; all else is in pyproject.toml."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from compiling.build_choice import BuildChoice, wish  # noqa: E402
from compiling.build_ext import BuildExt  # noqa: E402 - builds run this file from anywhere
from compiling.modules import compiled_paths  # noqa: E402

_LAYERS = ("codecs", "storage", "coordinator")
# The types are checked by `make types`; here libraries that are not installed may be Any.
_MYPY = ["--config-file=", "--explicit-package-bases", "--ignore-missing-imports"]


def _extensions(wanted: BuildChoice) -> list[Any]:
    extensions: list[Any] = []
    if wanted.modules:
        extensions += _modules(must=wanted.must)
    if wanted.c:
        extensions += [
            Extension(
                "wirebroker.codecs._hot",
                ["codecs/_hot.c"],
                depends=["codecs/_layout.h", "codecs/_record_columns.h", "codecs/_record_walk.h"],
                extra_compile_args=["-O2"],
            ),
            Extension(
                "wirebroker.base._histogram",
                ["wirebroker/base/_histogram.c"],
                extra_compile_args=["-O2"],
            ),
            Extension(
                "wirebroker.net.sockets._calls",
                ["wirebroker/net/sockets/_calls.c"],
                extra_compile_args=["-O2"],
            ),
        ]
    if wanted.c and sys.platform == "linux":
        extensions.append(
            Extension(
                "wirebroker.net.pages._page_threads",
                ["wirebroker/net/pages/_page_threads.c"],
                extra_compile_args=["-O2", "-pthread"],
            )
        )
    return extensions


def _modules(*, must: bool) -> list[Any]:
    for layer in _LAYERS:  # an sdist has no links
        link = ROOT / "wirebroker" / layer
        if not link.exists():
            link.symlink_to(Path("..") / layer, target_is_directory=True)
    try:
        from mypyc.build import mypycify  # noqa: PLC0415 - only there when modules are compiled

        modules: list[Any] = mypycify(
            [*_MYPY, *compiled_paths()],
            opt_level="1",
            debug_level="0",
            group_name="wirebroker",
            multi_file=True,  # so that they can be compiled side by side
        )
    except (ImportError, SystemExit) as error:  # no mypy without isolation; it can't compile this
        if must:
            raise
        sys.stderr.write(f"wirebroker: the modules of the hot path stay Python ({error})\n")
        return []
    for module in modules:
        module.sources = _joined([Path(path) for path in module.sources])
        module.extra_compile_args += _QUICKER
    return modules


def _joined(sources: list[Path]) -> list[str]:
    """Put the modules' sources into a few files, which spares reading the headers for each."""
    modules = [path for path in sources if path.name.startswith("__native")]
    parts: list[list[Path]] = [[] for _ in range(min(_PARTS, len(modules)))]
    for path in sorted(modules, key=lambda each: -each.stat().st_size):
        _leave_as_it_is(path)
        min(parts, key=lambda part: sum(each.stat().st_size for each in part)).append(path)
    joined = []
    for number, part in enumerate(parts):
        file = part[0].with_name(f"part_{number}.c")
        lines = [f'#include "{path.name}"\n' for path in sorted(part)]
        file.write_text("".join(lines), encoding="utf-8")
        joined.append(str(file))
    return [*joined, *(str(path) for path in sources if path not in modules)]


# Files that are compiled side by side: for up to so many cores.
_PARTS = 8
# No exception passes through compiled code, and its arrays are of fixed length.
_QUICKER = ["-fno-asynchronous-unwind-tables", "-fno-stack-protector"]

# What a module does when it is imported.
_ONCE = re.compile(r"^(?=char CPyDef_\w*__top_level__\(void\) \{)", re.MULTILINE)
_UNOPTIMIZED = """\
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("O0")))
#endif
"""


def _leave_as_it_is(path: Path) -> None:
    """Have gcc not optimize what runs once: a tenth of all that it would do."""
    text = path.read_text(encoding="utf-8")
    if path.name.startswith("__native") and _UNOPTIMIZED not in text:
        path.write_text(_ONCE.sub(_UNOPTIMIZED, text), encoding="utf-8")


# sdists and editable installs hold sources alone.
_wanted = wish() if "bdist_wheel" in sys.argv else BuildChoice(c=False, modules=False, must=False)
BuildExt.must = _wanted.must
setup(ext_modules=_extensions(_wanted), cmdclass={"build_ext": BuildExt})
