"""The clock and the faults of a broker in test mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from wirebroker.console.broker_http.control_calls import controlled_clock, controlled_faults
from wirebroker.console.changes.kinds.testing import fault_text
from wirebroker.console.model.http_settings import TEST_URL
from wirebroker.console.pages.page import asked, collector_of, page
from wirebroker.console.pages.sections import is_section_shown

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def testing(request: Request) -> Response:
    """Show the clock and the faults; they are read for each page.

    Raises:
        HTTPException: 404, the console has no address of the test mode.
    """
    collector = collector_of(request)
    if not is_section_shown("testing", collector):
        raise HTTPException(
            404, f"The console has no address of the cluster's test mode: set {TEST_URL}."
        )
    clock = await asked(controlled_clock(collector.settings))
    faults = await asked(controlled_faults(collector.settings))
    return page(
        request,
        "testing.html",
        section="testing",
        clock=clock.value,
        faults=faults.value or [],
        failure=clock.failure or faults.failure,
        fault_text=fault_text,
    )
