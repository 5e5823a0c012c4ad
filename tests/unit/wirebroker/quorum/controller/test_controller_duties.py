"""Elections that the controller starts by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import Config
from wirebroker.quorum.controller.controller_duties import ControllerDuties

if TYPE_CHECKING:
    import pytest


class Submitted:
    def __init__(self, *answers, **settings):
        self.rules = SimpleNamespace(config=Config({"log.dirs": "data", **settings}))
        self.answers = list(answers)
        self.operations = []
        self.is_active = True

    async def submit(self, operation):
        self.operations.append(operation.func.__name__)
        answer = self.answers.pop(0)
        if isinstance(answer, KafkaError):
            raise answer
        return answer


async def test_moved_leaderships_and_failures_are_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    controller = Submitted(3, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "disk"), 0)
    duties = ControllerDuties(controller)  # type: ignore[arg-type]
    for _ in range(3):
        await duties.balance()
    await duties.stop()
    assert controller.operations == ["give_back"] * 3
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0] == "moved 3 leadership(s) back to preferred replicas"
    assert messages[1].startswith("cannot elect preferred leaders now")
    assert len(messages) == 2


async def test_disabled_rebalance_runs_nothing():
    controller = Submitted(**{"auto.leader.rebalance.enable": "false"})
    duties = ControllerDuties(controller)  # type: ignore[arg-type]
    assert len(duties._tasks) == 1  # unclean elections, which a topic's config may allow
    await duties.stop()
    assert not controller.operations
