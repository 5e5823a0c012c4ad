"""The Python versions of modules that a compiled build replaces by C, for comparison."""

from __future__ import annotations

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest

from tests.support.harness.project_files import ROOT


def pure(name: str, *, package: str = "codecs", twin: str = "_hot") -> Any:
    """Load a module again as if its C counterpart did not exist.

    Args:
        name: The module's dotted name in the package: "records.walk".
        package: The package in wirebroker.
        twin: The name of the C module in that package.
    """
    owner = importlib.import_module(f"wirebroker.{package}")
    parts = [*package.split("."), *name.split(".")]
    path = (ROOT / "wirebroker").joinpath(*parts).with_suffix(".py")
    folder, _, last = name.rpartition(".")
    inside = f"wirebroker.{package}.{folder}" if folder else f"wirebroker.{package}"
    spec = spec_from_file_location(f"{inside}.pure_{last}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, f"wirebroker.{package}.{twin}", None)
        patch.delattr(owner, twin, raising=False)
        spec.loader.exec_module(module)
    return module
