"""The service as a process: directory, checks, instances one after the other, signals."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import sys
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException

from wirebroker.base.clock import SystemClock
from wirebroker.base.signals import set_in_handler
from wirebroker.client.errors import ClientError
from wirebroker.delivery.model.entry import NewerFormatError
from wirebroker.delivery.pending.refusals import RefusedDeadLetterError
from wirebroker.delivery.service.errors import FencedError, ServiceError, StoppingError
from wirebroker.delivery.service.figures import DeliveryFigures
from wirebroker.delivery.service.index_directory import INDEX_FILES
from wirebroker.delivery.service.instance import ServiceInstance
from wirebroker.delivery.service.metrics_page import metrics_page
from wirebroker.delivery.service.rights import (
    check_rights,
    check_targets,
    missing_rights,
    refused_right,
)
from wirebroker.delivery.service.topics import ClusterTopics
from wirebroker.delivery.service.write_rights import WriteRights
from wirebroker.storage.descriptors import DirectoryLock

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from wirebroker.delivery.service.settings import ServiceSettings

logger = logging.getLogger(__name__)

_INSTANCE_FILE: Final = "instance.id"
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_FAILED: Final = 1
_READ_BYTES: Final = 1_024


def run_service(
    settings: ServiceSettings,
    ready: Callable[[str], None],
    has_authorizer: Callable[[], bool],
    *,
    until_input_ends: bool = False,
) -> int:
    """Run the service until SIGTERM or SIGINT; return the exit status.

    `ready` is called with a line for the user when an instance runs. `has_authorizer` returns
    whether the cluster checks ACLs, or raises ClientError. With `until_input_ends`, it also stops
    at the end of standard input: the process that started it has ended.

    Raises:
        ServiceError: It cannot start.
    """
    stopping = threading.Event()
    for name in ("SIGTERM", "SIGINT"):
        signal.signal(getattr(signal, name), lambda _number, _frame: set_in_handler(stopping))
    if until_input_ends:
        threading.Thread(target=_stop_at_end, args=(stopping,), daemon=True).start()
    return serve_until(settings, stopping, ready, has_authorizer)


def _stop_at_end(stopping: threading.Event) -> None:
    # Not buffered: a lock held at exit would be a fatal error.
    while os.read(sys.stdin.fileno(), _READ_BYTES):
        pass
    stopping.set()


def serve_until(
    settings: ServiceSettings,
    stopping: threading.Event,
    ready: Callable[[str], None],
    has_authorizer: Callable[[], bool],
) -> int:
    """Run the service until an event is set; see run_service."""
    clock = SystemClock()
    figures = DeliveryFigures(clock)
    with (
        _locked(settings.directory) as instance,
        metrics_page(settings.metrics_port, figures.page) as port,
    ):
        pause_s = _FIRST_PAUSE_S
        while not stopping.is_set():
            began = clock.monotonic()
            try:
                is_secured = has_authorizer()
                check_targets(settings.rules, has_authorizer=is_secured)
                topics = _checked_topics(settings, clock, stopping, has_authorizer=is_secured)
                running = ServiceInstance(
                    settings, instance, topics, figures, clock, stopping=stopping
                )
                try:
                    ready(_ready_line(settings, instance, port))
                    with _rebuilding(settings.directory):
                        running.run()
                finally:
                    del running  # its clients end before the next instance connects
            except StoppingError:
                break
            except RefusedDeadLetterError as error:
                logger.error("%s. The record stays in its topic", error)  # noqa: TRY400
                return _FAILED
            except (NewerFormatError, sqlite3.Error) as error:
                raise ServiceError(f"{type(error).__name__}: {error}") from None
            except (FencedError, KafkaException, ClientError) as error:
                _check_refusal(error, settings)
                if stopping.is_set():
                    logger.warning("stopped after an error: %s", error)
                    break
                if clock.monotonic() - began > _LONGEST_PAUSE_S:
                    pause_s = _FIRST_PAUSE_S
                logger.warning("starting again in %.1f s: %s", pause_s, error)
                stopping.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    return 0


@contextmanager
def _rebuilding(directory: Path) -> Generator[None]:
    """Delete the indexes if one proves to be damaged; the next instance rebuilds them.

    Raises:
        FencedError: One was damaged.
    """
    try:
        yield
    except sqlite3.OperationalError:  # such as a full disk
        raise
    except sqlite3.DatabaseError as error:
        for file in directory.glob(INDEX_FILES):
            file.unlink()
        raise FencedError(f"the indexes in {directory} are rebuilt: {error}") from error


def _checked_topics(
    settings: ServiceSettings,
    clock: SystemClock,
    stopping: threading.Event,
    *,
    has_authorizer: bool,
) -> ClusterTopics:
    topics = ClusterTopics(settings.kafka, clock)
    if has_authorizer:
        topics.rights = WriteRights(topics.admin, clock, settings.rules.named_targets)
    # Before as well: a topic without any right looks like a missing one.
    check_rights(topics.admin, settings.rules, settings.user)
    topics.create_missing(settings, stopping)
    check_rights(topics.admin, settings.rules, settings.user)
    return topics


def _check_refusal(error: Exception, settings: ServiceSettings) -> None:
    """Raise ServiceError if a client failed for want of a right."""
    problem = error.args[0] if isinstance(error, KafkaException) else None
    right = None if problem is None else refused_right(problem, settings.rules.group)
    if right is not None:
        raise missing_rights([right], settings.user) from None


def _ready_line(settings: ServiceSettings, instance: str, port: int) -> str:
    inputs = ", ".join(settings.rules.input_topics)
    metrics = f"; metrics on http://127.0.0.1:{port}/metrics" if port else ""
    return f"delivery {instance} reads {inputs} at {settings.kafka['bootstrap.servers']}{metrics}"


@contextmanager
def _locked(directory: Path) -> Generator[str]:
    """Lock a directory, which is created if it is missing; yield the instance's id.

    Raises:
        ServiceError: Another process uses it, or it cannot be used.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = DirectoryLock(f"{directory}/.lock")
    except BlockingIOError:
        raise ServiceError(
            f"{directory} is used by another process: give each instance its own"
            " wirebroker.delivery.directory"
        ) from None
    except OSError as error:
        raise ServiceError(f"{directory} cannot be used: {error.strerror}") from None
    try:
        yield _instance_id(directory / _INSTANCE_FILE)
    finally:
        lock.release()


def _instance_id(file: Path) -> str:
    """Return the id of a directory's instance.

    A restarted instance keeps it, and so ends the transaction that a kill left open.
    """
    if not file.exists():
        new = file.with_suffix(".new")
        new.write_text(uuid.uuid4().hex[:12], encoding="ascii")
        new.replace(file)
    return file.read_text(encoding="ascii").strip()
