"""JSON from files, requests and peers: whatever is wrong with it is a ValueError.

`json.loads` raises RecursionError for a text that is nested too deeply: 200,000 brackets in a file
would end a process that expects ValueError.
"""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: It is not JSON, not UTF-8, or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
