"""`broker.faults`: disturbed client requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.testing.base.api_names import api_named, error_named
from wirebroker.testing.base.arguments import checked

if TYPE_CHECKING:
    from enum import Enum
    from types import TracebackType
    from typing import Self

    from wirebroker.testing.base.instructed import Instructed
    from wirebroker.testing.faults.fault_table import When


class SetFault:
    """A fault, which acts until it is removed or a `with` block ends.

    >>> fault = broker.faults.error("PRODUCE", "NOT_LEADER_OR_FOLLOWER").times(2)
    >>> fault.acted
    0
    """

    def __init__(self, life: Instructed, number: int) -> None:
        self._life = life
        self._number = number

    @checked
    def times(self, count: int) -> Self:
        """Let it act only `count` more times.

        >>> fault = broker.faults.disconnect("FETCH").times(1)
        """
        self._life.instruct("limit-fault", {"id": self._number, "times": count})
        return self

    @property
    def acted(self) -> int:
        """How often it has acted; 0 after its removal.

        >>> broker.faults.disconnect("FETCH").acted
        0
        """
        rows = self._life.instruct("faults", {})
        return next((row["acted"] for row in rows if row["id"] == self._number), 0)

    @checked
    def remove(self) -> None:
        """Remove the fault.

        >>> broker.faults.blackhole(client_id="shop").remove()
        """
        self._life.instruct("remove-fault", {"id": self._number})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


class BrokerFaults:
    """Faults for clients' requests; the kit's own are not disturbed.

    `api` is Kafka's name of an API ("PRODUCE") or an enum member, None for all. `topic` and
    `client_id` restrict a fault to requests that name the topic and have the id. If several faults
    match, the first one acts.
    """

    def __init__(self, life: Instructed) -> None:
        self._life = life

    @checked
    def error(
        self,
        api: str | Enum,
        error: str | Enum,
        *,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> SetFault:
        """Return an error, by Kafka's name or enum member, instead of a result.

        >>> fault = broker.faults.error("PRODUCE", "NOT_LEADER_OR_FOLLOWER", topic="orders")

        Raises:
            ValueError: The API or error is unknown, or the response has no error field.
        """
        name = error_named(error).name
        return self._set("error", api, error=name, topic=topic, client_id=client_id)

    @checked
    def disconnect(
        self,
        api: str | Enum | None = None,
        when: When = "before_append",
        *,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> SetFault:
        """Close the connection before handling the request, or after it ("after_append").

        >>> fault = broker.faults.disconnect("PRODUCE", when="after_append")
        """
        return self._set("disconnect", api, when=when, topic=topic, client_id=client_id)

    @checked
    def delay(
        self,
        api: str | Enum | None = None,
        seconds: float = 1.0,
        *,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> SetFault:
        """Handle requests 0.001 to 86,400 seconds later, by the machine's clock.

        >>> fault = broker.faults.delay("FETCH", seconds=0.5)
        """
        return self._set(
            "delay", api, delay_ms=round(seconds * 1000), topic=topic, client_id=client_id
        )

    @checked
    def throttle(
        self,
        api: str | Enum,
        seconds: float = 1.0,
        *,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> SetFault:
        """Set `throttle_time_ms` in responses; 0.001 to 86,400 seconds.

        >>> fault = broker.faults.throttle("PRODUCE", seconds=2)
        """
        return self._set(
            "throttle", api, delay_ms=round(seconds * 1000), topic=topic, client_id=client_id
        )

    @checked
    def blackhole(
        self,
        api: str | Enum | None = None,
        *,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> SetFault:
        """Ignore requests; their connections stay open until the fault is removed.

        >>> fault = broker.faults.blackhole(client_id="shop")
        """
        return self._set("blackhole", api, topic=topic, client_id=client_id)

    @checked
    def fail_fsync(self) -> SetFault:
        """Fail syncs: the broker takes its log directory offline until a restart.

        >>> broker.faults.fail_fsync().remove()
        """
        return self._set("fail_fsync", None)

    @checked
    def disk_full(self) -> SetFault:
        """Fail writes for lack of space; stored records stay readable.

        >>> with broker.faults.disk_full():
        ...     pass
        """
        return self._set("disk_full", None)

    @checked
    def clear(self) -> None:
        """Remove all faults.

        >>> broker.faults.clear()
        """
        self._life.instruct("remove-fault", {})

    def _set(self, kind: str, api: str | Enum | None, **arguments: Any) -> SetFault:
        name = None if api is None else api_named(api).name
        number = self._life.instruct("add-fault", {"kind": kind, "api": name, **arguments})
        return SetFault(self._life, number)
