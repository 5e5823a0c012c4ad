"""Dispatch of requests to handlers, and encoding of their responses.

    frame -> header -> table[key, version] -> admission -> handler -> pieces, None or Pending

The session's prepared request is tried first. It was admitted when it was prepared, so if it is
only partly served, the general path continues without admission.

Refusals are Kafka 4.4.0's: ApiVersions in an unknown version returns error 35 and the supported
range in v0 (KIP-511); other unsupported requests close the connection, including Produce 0 to 2,
which are advertised (KAFKA-18659).

An exception that escapes a handler, including a KafkaError, is a bug: it closes only its
connection.
"""

from __future__ import annotations

from collections import Counter
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, cast

from wirebroker.base.request_meters import RequestMeters
from wirebroker.base.shared_block import owned
from wirebroker.base.text import camel_case
from wirebroker.base.threads import LONGEST_ON_LOOP_BYTES, Work, coding, in_thread
from wirebroker.codecs.api_keys import FIRST_PRODUCE_VERSION, SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode, MalformedFrameError
from wirebroker.codecs.frames import parse_request_header
from wirebroker.net.bounds.gradual_free import free_gradually
from wirebroker.net.bounds.long_request_limit import LongRequestLimit
from wirebroker.net.frames.protocol import frame_answer
from wirebroker.net.pending import HandlerEntry, Pending, handler_failed
from wirebroker.request.deferred_response import DeferredResponse
from wirebroker.request.handlers import Cost
from wirebroker.request.request import CloseConnectionError, LargeResponse, Request, holds_much
from wirebroker.request.request_admission import RequestAdmission

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from wirebroker.base.metrics import Metrics
    from wirebroker.quotas.client_quotas import ClientQuotas
    from wirebroker.request.handlers import Handler, Registry
    from wirebroker.request.request import Piece
    from wirebroker.request.session import Session

    # Sent now, pending, or deferred; None sends nothing.
    Served: TypeAlias = "list[Piece] | Pending | DeferredResponse | None"

# int16 error, int32 array length, then int16 key, min and max version.
_UNSUPPORTED_API_VERSIONS: Final = Struct(">hihhh")


# Costs without waits for other nodes, and without changes.
_OWN_WORK: Final = frozenset({Cost.BOUNDED, Cost.SLICES, Cost.READS})
_ONLY_READS: Final = frozenset({Cost.BOUNDED, Cost.READS})


class Dispatcher:
    """Table of handlers, called with frames."""

    __slots__ = (
        "_admission",
        "_broker",
        "_decode_request",
        "_encode_response",
        "_entries",
        "_long_changes",
        "_long_reads",
        "_meters",
        "_registered",
        "_registry",
        "_stopwatch",
        "quotas",
    )

    def __init__(
        self,
        broker: Any,
        registry: Registry,
        *,
        admission: RequestAdmission | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """`broker` is the handlers' first argument; without `admission` all are admitted."""
        self._broker = broker
        self._admission = admission or RequestAdmission()
        self.quotas: ClientQuotas | None = None
        # Requests that may wait for other nodes have a separate queue.
        self._long_reads = LongRequestLimit()
        self._long_changes = LongRequestLimit()
        # By key << 16 | version; a NamedTuple as key would cost 0.2 us per request.
        self._entries: dict[int, HandlerEntry] = {}
        self._registered: dict[int, ApiKey] = {}
        meters = RequestMeters() if metrics is None else metrics.request_meters
        self._stopwatch = meters.stopwatch
        # Set at the first generic request, because the codec's import is slow.
        self._decode_request: Callable[..., Any] | None = None
        self._encode_response: Callable[..., bytes] | None = None
        self._meters = meters
        self._registry = registry
        for key in registry.registered_keys():
            self._registered[int(key)] = key
            if not registry.is_late(key):
                self._add(registry.handler(key))
        if metrics is not None:
            metrics.requests = self.request_counts

    def _add(self, handler: Handler) -> None:
        key = handler.key
        for version in range(_first_version(key), SPOKEN_VERSIONS[key].max_version + 1):
            self._entries[key << 16 | version] = HandlerEntry(version, handler, self._meters)

    def _late_entry(self, key: ApiKey, version: int) -> HandlerEntry | None:
        """Load a handler for its first request; return its entry of a version, if it has one."""
        kind = key << 16 | version
        if kind not in self._entries and int(key) in self._registered:
            first = _first_version(key)
            if key << 16 | first not in self._entries:
                self._add(self._registry.handler(key))
        return self._entries.get(kind)

    def request_counts(self) -> dict[str, int]:
        """Return the request counts by API and version, such as "Produce,13"."""
        return {
            f"{camel_case(entry.key.name)},{entry.version}": entry.request_count
            for entry in self._entries.values()
            if entry.request_count
        }

    def __call__(self, frame: memoryview, session: Session, *, is_charged: bool = False) -> Served:
        """Serve one request, and charge quotas unless the caller does (`is_charged`).

        The frame is complete and writable; it may be overwritten after the return.

        Raises:
            MalformedFrameError: The bytes are not a supported request.
            CloseConnectionError: The handler closes the connection.
            HandlerFailedError: The handler raised anything else.
        """
        quotas = self.quotas
        if quotas is not None and not is_charged:
            return self._serve_and_charge(quotas, frame, session)
        admission = self._admission
        began_s = self._stopwatch()
        prepared = session.prepared
        has_begun = False
        if prepared is not None and prepared.epoch == admission.epoch:
            try:
                short = prepared.serve(frame)
            except Exception as error:  # any fault of a handler costs its connection
                raise handler_failed(self._entries[prepared.kind], error) from error
            if short is not None:
                return self._count_prepared(prepared.kind, len(frame), session, began_s, short)
            has_begun = prepared.begun is not None
        key, version, correlation_id, client_id, position = parse_request_header(frame)
        entry = self._entries.get(key << 16 | version)
        if entry is None:
            entry = self._late_entry(ApiKey(key), version)
            if entry is None:
                return self._refuse(ApiKey(key), version, correlation_id)
        handler = entry.handler
        size = len(frame)
        if entry.is_raw and handler.is_coroutine:
            frame = owned(frame)
        errors = entry.meter.errors
        request = Request(
            entry.key, version, correlation_id, client_id, frame, position, session, errors
        )
        session.epoch = admission.epoch  # changes during the admission apply to the next request
        body: Any = None if has_begun else admission.refusal(request, handler)
        if body is None:
            entry.request_count += 1
            body = self._call(entry, request)
        if body is not None and not isinstance(body, list):
            pending = Pending(entry, correlation_id, body)
            pending.measure(session, began_s)
            pending.meter.sizes.record(size)
            return pending
        meter = entry.follower_meter if session.is_follower else entry.meter
        meter.served(session.received_s, began_s, size)
        session.last_meter = meter
        if body is None:
            return None
        pieces = cast("list[Piece]", body)
        return frame_answer(correlation_id, pieces, is_flexible=entry.is_flexible)

    def _count_prepared(
        self,
        kind: int,
        size: int,
        session: Session,
        began_s: float,
        short: bytes | DeferredResponse,
    ) -> Served:
        entry = self._entries[kind]
        entry.request_count += 1
        meter = entry.meter
        if isinstance(short, bytes):
            meter.served(session.received_s, began_s, size)
            session.last_meter = meter
            return [short]
        meter.sizes.record(size)
        short.meter = meter
        short.times = (session.received_s, began_s, self._stopwatch())
        return short

    def _serve_and_charge(
        self, quotas: ClientQuotas, frame: memoryview, session: Session
    ) -> Served:
        key, version, _, client_id, _ = parse_request_header(frame)
        charge = quotas.begin(session, key, version, client_id, len(frame))
        answer = self(frame, session, is_charged=True)
        if isinstance(answer, Pending):
            answer.charge(charge)
            return answer
        if isinstance(answer, DeferredResponse):
            charge.later()
            answer.settle = charge.settle
            return answer
        return charge.settle(answer)

    def later(self, request: Request, body: Awaitable[Any], *, is_whole: bool = False) -> Pending:
        """Return the pending response to a login message; it is canceled if the peer disconnects.

        `body` returns pieces, with length and header if `is_whole`.
        """
        entry = self._entries[request.key << 16 | request.version]
        return Pending(entry, request.correlation_id, body, is_whole=is_whole, ends_with_peer=True)

    def _call(self, entry: HandlerEntry, request: Request) -> Any:
        try:
            if entry.is_raw:
                return entry.function(self._broker, request)
            return self._call_generic(entry, request)
        except (MalformedFrameError, CloseConnectionError):
            raise
        except Exception as error:  # likewise
            raise handler_failed(entry, error) from error

    def _call_generic(self, entry: HandlerEntry, request: Request) -> list[Piece] | Awaitable[Any]:
        if len(request.frame) - request.position > LONGEST_ON_LOOP_BYTES:
            request.keep()
            return self._serve_in_thread(entry, request)
        if entry.repeat is not None:
            repeated = entry.repeat(self._broker, request)
            if repeated is not None:
                return [repeated]
        decode, encode = self._codec()
        body = decode(entry.key, entry.version, request.frame, request.position)
        outcome: Any = entry.function(self._broker, request, body)
        if hasattr(outcome, "__await__"):
            return self._encode_later(entry, outcome)
        if holds_much(outcome):
            return self._encode_in_thread(entry, outcome)
        return [encode(entry.key, entry.version, outcome, entry.meter.errors)]

    async def _encode_later(self, entry: HandlerEntry, outcome: Any) -> list[Piece]:
        response = await outcome
        if isinstance(response, LargeResponse) or holds_much(response):
            pieces = await self._encode_in_thread(entry, response)
            done = [response]
            # A future keeps its result. Compiled code cannot delete arguments.
            outcome = response = None
            await free_gradually(done)
            return pieces
        return [self._codec()[1](entry.key, entry.version, response, entry.meter.errors)]

    async def _encode_in_thread(
        self, entry: HandlerEntry, response: Any, work: Work = Work.CODING
    ) -> list[Piece]:
        encode = self._codec()[1]
        errors: Counter[int] = Counter()  # the meter's may only be changed on the loop
        encoded = await in_thread(work, encode, entry.key, entry.version, response, errors)
        entry.meter.errors.update(errors)
        return [encoded]

    async def _serve_in_thread(self, entry: HandlerEntry, request: Request) -> list[Piece]:
        """Decode a long request in a thread, and limit the memory of all of them."""
        cost, session = entry.handler.cost, request.session
        if cost is Cost.WAITS:  # needs little memory during its long wait
            return await self._serve_long(entry, request)
        line = self._long_reads if cost in _OWN_WORK else self._long_changes
        size = len(request.frame)
        await line.enter(session.peer.rpartition(":")[0], size)
        try:
            if session.has_ended and cost in _ONLY_READS:
                raise CloseConnectionError("it disconnected before its request was served")
            return await self._serve_long(entry, request)
        finally:
            line.leave(size)

    async def _serve_long(self, entry: HandlerEntry, request: Request) -> list[Piece]:
        decode = self._codec()[0]
        work = coding(len(request.frame))
        body = await in_thread(
            work, decode, entry.key, entry.version, request.frame, request.position
        )
        outcome: Any = entry.function(self._broker, request, body)
        if hasattr(outcome, "__await__"):
            outcome = await outcome
        answer = await self._encode_in_thread(entry, outcome, work)
        done = [body, outcome]
        del body, outcome
        await free_gradually(done)
        return answer

    def _codec(self) -> tuple[Callable[..., Any], Callable[..., bytes]]:
        if self._decode_request is None or self._encode_response is None:
            from wirebroker.codecs import messages  # noqa: PLC0415 - late on purpose

            self._decode_request = messages.decode_request
            self._encode_response = messages.encode_response
        return self._decode_request, self._encode_response

    def _refuse(self, key: ApiKey, version: int, correlation_id: int) -> list[Piece]:
        if key == ApiKey.API_VERSIONS:
            supported = SPOKEN_VERSIONS[key]
            body = _UNSUPPORTED_API_VERSIONS.pack(
                ErrorCode.UNSUPPORTED_VERSION, 1, key, supported.min_version, supported.max_version
            )
            return frame_answer(correlation_id, [body], is_flexible=False)
        if int(key) not in self._registered:
            raise MalformedFrameError(f"api key {int(key)} ({key.name}) is not supported")
        raise MalformedFrameError(
            f"{key.name} version {version} is not supported, only "
            f"{_first_version(key)} to {SPOKEN_VERSIONS[key].max_version}"
        )


def _first_version(key: ApiKey) -> int:
    return FIRST_PRODUCE_VERSION if key == ApiKey.PRODUCE else SPOKEN_VERSIONS[key].min_version
