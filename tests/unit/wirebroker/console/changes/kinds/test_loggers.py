"""Log levels of a broker, changed from the console."""

from __future__ import annotations

import logging

import pytest

from tests.support.console.changes import made, prepared, run_line
from wirebroker.client.configs.configs import BROKER_LOGGER, configs_of

NAME = "wirebroker.console.test_loggers"


@pytest.fixture
def logger():
    """Return a logger of this process, which is the broker's too."""
    found = logging.getLogger(NAME)
    yield found
    found.setLevel(logging.NOTSET)


async def level_of(collector) -> str | None:
    rows = await configs_of(collector.client, BROKER_LOGGER, "1", names=[NAME])
    return next(row.value for row in rows if row.name == NAME)


async def test_a_level_is_set_and_reset(open_cluster, logger):
    logger.setLevel(logging.WARNING)
    async with open_cluster() as c:
        plan = await prepared(c, "alter-broker-loggers", broker=1, set=f"{NAME}=debug")
        assert plan.lines == (f"{NAME}: WARN → DEBUG",)
        assert plan.warnings == ("The levels last until the broker restarts.",)
        assert plan.command.endswith(
            f"--alter --entity-type broker-loggers --entity-name 1 --add-config {NAME}=DEBUG"
        )
        assert await level_of(c) == "WARN"
        assert await plan.apply() == "1 logger of broker 1 changed"
        assert await level_of(c) == "DEBUG"
        plan = await prepared(c, "alter-broker-loggers", broker=1, unset=NAME)
        assert plan.lines == (f"{NAME}: DEBUG → the level of its parent logger",)
        await plan.apply()
        assert logger.level == logging.NOTSET


async def test_the_command_line_has_the_same_effect(open_cluster, tmp_path, logger):
    async with open_cluster() as c:
        plan = await prepared(c, "alter-broker-loggers", broker=1, set=f"{NAME}=ERROR")
        await run_line(plan.command, tmp_path)
        assert logger.level == logging.ERROR
        reset = await prepared(c, "alter-broker-loggers", broker=1, unset=NAME)
        await run_line(reset.command, tmp_path)
        assert logger.level == logging.NOTSET


async def test_the_level_of_the_root_logger_is_set(open_cluster, logger):
    root = logging.getLogger()
    before = root.level
    try:
        async with open_cluster() as c:
            await made(c, "alter-broker-loggers", broker=1, set=f"{NAME}=ERROR\nroot=WARN")
            assert (logger.level, root.level) == (logging.ERROR, logging.WARNING)
    finally:
        root.setLevel(before)
