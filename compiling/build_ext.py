"""The command that compiles: sources side by side, all of it or nothing.

setuptools compiles an extension's sources one after the other; mypyc's go into one extension. Its
modules are shims around that one, an extension each, so that a part of them would be worse than
none. One pool with a thread for each core compiles the sources of all; each extension is linked as
soon as its own are there.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

if TYPE_CHECKING:
    from setuptools import Extension


class BuildExt(build_ext):
    """Compiles with all cores; what may fail leaves a plain build behind.

    Attributes:
        must: Whether a failure ends the build.
    """

    must = True

    def build_extensions(self) -> None:
        """Compile the sources of all extensions side by side, and link them."""
        compile_all = self.compiler.compile

        def compile_side_by_side(sources: list[str], *args: Any, **kwargs: Any) -> list[str]:
            # The largest first: the last to begin is a short one.
            largest = sorted(sources, key=lambda each: -Path(each).stat().st_size)
            jobs = {each: pool.submit(compile_all, [each], *args, **kwargs) for each in largest}
            return [path for each in sources for path in jobs[each].result()]

        self.compiler.compile = compile_side_by_side
        self.parallel = max(1, len(self.extensions))  # they wait for the pool
        try:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                super().build_extensions()
        except (BaseError, CCompilerError) as error:
            if self.must:
                raise
            sys.stderr.write(
                f"wirebroker: compiling failed ({error}): this build is plain Python\n"
            )
            self._remove(self.extensions)
            self.extensions = []

    def _remove(self, extensions: list[Extension]) -> None:
        for each in extensions:
            Path(self.get_ext_fullpath(each.name)).unlink(missing_ok=True)
