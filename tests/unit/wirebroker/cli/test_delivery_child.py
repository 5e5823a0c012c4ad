"""The delivery service as a child process of a broker."""

from __future__ import annotations

import asyncio

from wirebroker.cli.services.delivery_child import DeliveryChild


def test_the_broker_continues_if_the_service_cannot_be_started(monkeypatch, caplog):
    async def refuse(*_words: str) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("wirebroker.cli.services.delivery_child.start_module", refuse)

    async def serve() -> None:
        child = DeliveryChild(None, {})
        await child.start("127.0.0.1:9092")
        await child.stop()

    asyncio.run(serve())
    assert "cannot start the delivery service: Resource temporarily unavailable" in caplog.text
