"""Takes sign-ups: each line of SIGNUPS, a JSON object, is published to `signups`."""

import asyncio
import os

from faststream.kafka import KafkaBroker


async def take(lines: list[str]) -> None:
    """Publish each line."""
    async with KafkaBroker(os.environ["KAFKA_SERVERS"]) as broker:
        for line in lines:
            await broker.publish(line.strip().encode(), "signups")


if __name__ == "__main__":
    asyncio.run(take(os.environ["SIGNUPS"].splitlines()))
