"""CRC-32C (Castagnoli), with the processor's instruction if there is one.

Only crc32c's extension is loaded: the package imports 15 ms of standard library.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable


def _extension() -> Any:
    package = PathFinder.find_spec("crc32c")
    spec = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if not spec or not spec.loader:
        import crc32c  # noqa: PLC0415 - built some other way than we know

        return crc32c
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# (data, value so far = 0) -> checksum. Releases the GIL from 32 KiB on.
crc32c: Final[Callable[..., int]] = _extension().crc32c
