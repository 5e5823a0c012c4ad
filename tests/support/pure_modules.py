"""Second copies of modules whose functions a compiled build has in C: the reference beside them."""

from __future__ import annotations

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest

from tests.project_files import ROOT


def pure(name: str) -> Any:
    """Return `codecs/<name>.py`, loaded anew as if _hot did not exist."""
    package = importlib.import_module("wirebroker.codecs")
    spec = spec_from_file_location(f"wirebroker.codecs.pure_{name}", ROOT / f"codecs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "wirebroker.codecs._hot", None)
        patch.delattr(package, "_hot", raising=False)
        spec.loader.exec_module(module)
    return module
