"""The faults of a broker, in the hands of a test: `broker.faults`."""

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
    """A fault that was set; it acts until it is removed, or as often as `times` says.

    >>> fault = broker.faults.error("PRODUCE", "NOT_LEADER_OR_FOLLOWER").times(2)
    >>> fault.acted
    0

    As a context manager it is removed at the end of the block.
    """

    def __init__(self, life: Instructed, number: int) -> None:
        self._life = life
        self._number = number

    @checked
    def times(self, count: int) -> Self:
        """Let it act so many times from now on, and no more.

        >>> fault = broker.faults.disconnect("FETCH").times(1)
        """
        self._life.instruct("limit-fault", {"id": self._number, "times": count})
        return self

    @property
    def acted(self) -> int:
        """How often it has acted; 0 if it was removed.

        >>> broker.faults.disconnect("FETCH").acted
        0
        """
        rows = self._life.instruct("faults", {})
        return next((each["acted"] for each in rows if each["id"] == self._number), 0)

    @checked
    def remove(self) -> None:
        """Take it away.

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
    """What is to go wrong for clients. The broker's own methods are not disturbed.

    Faults count in the order in which they are set: of several that concern a request the first
    acts. `api` is a kind of request by Kafka's name ("PRODUCE") or an enum's member; `topic` and
    `client_id` say which requests of that kind are meant.
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
        """Answer with an error instead of doing what is asked, for all that a request is about.

        >>> fault = broker.faults.error("PRODUCE", "NOT_LEADER_OR_FOLLOWER", topic="orders")

        Args:
            api: The kind of request.
            error: Kafka's name of the error, or an enum's member.
            topic: Requests that name this topic.
            client_id: Requests of clients that call themselves so.

        Raises:
            ValueError: There is no such request or error.
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
        """Close the connection instead of answering.

        >>> fault = broker.faults.disconnect("PRODUCE", when="after_append")

        Args:
            api: The kind of request; None: any.
            when: "before_append": nothing was done; "after_append": it was done, and the client
                does not learn of it.
            topic: As of `error`.
            client_id: As of `error`.
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
        """Begin to serve requests only after a while, by the machine's clock.

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
        """Tell clients in the answers that they have exceeded a quota, and for how long to wait.

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
        """Never answer, nor do what is asked; connections stay open until it is removed.

        >>> fault = broker.faults.blackhole(client_id="shop")
        """
        return self._set("blackhole", api, topic=topic, client_id=client_id)

    @checked
    def fail_fsync(self) -> SetFault:
        """Have every sync fail: the broker takes its directory offline, until it starts again.

        >>> broker.faults.fail_fsync().remove()
        """
        return self._set("fail_fsync", None)

    @checked
    def disk_full(self) -> SetFault:
        """Have every write find no room; what is there stays, and can be read.

        >>> with broker.faults.disk_full():
        ...     pass
        """
        return self._set("disk_full", None)

    @checked
    def clear(self) -> None:
        """Remove all of them.

        >>> broker.faults.clear()
        """
        self._life.instruct("remove-fault", {})

    def _set(self, kind: str, api: str | Enum | None, **arguments: Any) -> SetFault:
        name = None if api is None else api_named(api).name
        number = self._life.instruct("add-fault", {"kind": kind, "api": name, **arguments})
        return SetFault(self._life, number)
