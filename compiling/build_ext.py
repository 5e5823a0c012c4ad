"""The command that compiles all extensions in parallel, or none of them.

setuptools compiles an extension's sources sequentially, and mypyc puts all its code into one
extension. Here one thread pool compiles all sources, and each extension is linked as soon as its
sources are compiled.
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
    """Command that compiles on all cores; a failure aborts it only if it `must` compile."""

    must = True

    def build_extensions(self) -> None:
        """Compile and link all extensions."""
        compile_all = self.compiler.compile

        def compile_side_by_side(sources: list[str], *args: Any, **kwargs: Any) -> list[str]:
            # Largest first, so that the last one to start is short.
            largest = sorted(sources, key=lambda source: -Path(source).stat().st_size)
            jobs = {
                source: pool.submit(compile_all, [source], *args, **kwargs) for source in largest
            }
            return [path for source in sources for path in jobs[source].result()]

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
        for extension in extensions:
            Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
