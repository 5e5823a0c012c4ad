"""The broker runs without kafka-python, with an old one, and with a folder of that name.

Its definitions are needed only to build wirebroker.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.installed_broker import assert_it_answers, serving

if TYPE_CHECKING:
    from pathlib import Path

MODULE = ("-m", "wirebroker")
BLOCKED = (
    "-c",
    "import sys; sys.modules['kafka'] = None; from wirebroker.cli.program import main; main()",
)


@pytest.mark.parametrize(
    ("how", "package"),
    [
        pytest.param(BLOCKED, None, id="none"),
        pytest.param(MODULE, "__version__ = '2.3.0'\n", id="without-definitions"),
        pytest.param(MODULE, "raise RuntimeError('imported')\n", id="a-folder-of-that-name"),
    ],
)
def test_requests_of_the_generic_codec_are_answered(
    tmp_path: Path, how: tuple[str, ...], package: str | None
) -> None:
    if package is not None:
        (tmp_path / "kafka").mkdir()
        (tmp_path / "kafka" / "__init__.py").write_text(package, encoding="utf-8")
    with serving([sys.executable, *how], tmp_path) as address:
        assert_it_answers(address)
