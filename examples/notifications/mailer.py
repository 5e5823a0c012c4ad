"""Mails greetings to who has signed up; what cannot be mailed goes to `signups.failed`.

The mail itself is a record in `mails`. A message is acknowledged when it is in one of the two.
"""

import asyncio
import os

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker
from pydantic import BaseModel, Field, ValidationError


class Signup(BaseModel):
    """Who has signed up."""

    name: str
    address: str = Field(pattern=r"^[^@\s]+@[^@\s]+$")


broker = KafkaBroker(os.environ.get("KAFKA_SERVERS", "localhost:9092"))
app = FastStream(broker)
mails = broker.publisher("mails")
failed = broker.publisher("signups.failed")


@broker.subscriber(
    "signups",
    group_id="mailer",
    auto_offset_reset="earliest",
    ack_policy=AckPolicy.NACK_ON_ERROR,
    decoder=lambda message: message.body,
)
async def greet(body: bytes) -> None:
    """Mail a greeting."""
    try:
        signup = Signup.model_validate_json(body)
    except ValidationError as error:
        await failed.publish(body, headers={"reason": error.errors()[0]["msg"]})
        return
    await mails.publish(f"{signup.address}: Welcome, {signup.name}!")


if __name__ == "__main__":
    asyncio.run(app.run())
