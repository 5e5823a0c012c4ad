"""Error codes of peers, including unknown ones."""

from __future__ import annotations

from typing import Any

import pytest

from wirebroker.codecs.errors import ErrorCode


@pytest.mark.parametrize("code", [max(ErrorCode) + 1, 32_767, -2])
def test_unknown_code_is_unknown_server_error(code: int):
    assert ErrorCode(code) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_text_is_not_an_error_code():
    text: Any = "NONE"
    with pytest.raises(ValueError, match="not a valid ErrorCode"):
        ErrorCode(text)
