"""The image contains everything that containers would otherwise generate at each start."""

from __future__ import annotations

import pytest

from compat_tests.containers.harness import engine_output

pytestmark = pytest.mark.engine

NOT_COMPILED = """
import pathlib, sys
import wirebroker.broker.serve_process, wirebroker.cli.main, wirebroker.http.server
import wirebroker.testing.test_mode.restartable
kept = [(name, getattr(each, "__cached__", None)) for name, each in sys.modules.items()]
print(len(kept), *(name for name, path in kept if path and not pathlib.Path(path).exists()))
"""


def test_image_contains_compiled_bytecode_of_all_modules(images):
    output = engine_output("run", "--rm", images["8.0.0"], "python3", "-c", NOT_COMPILED)
    count, *names = output.split()
    assert names == []
    assert int(count) > 100
