// Writes a record by @platformatic/kafka and reads it, as somebody.
"use strict";

const { Consumer, Producer, stringDeserializers, stringSerializers } = require("@platformatic/kafka");
const { login, tls, run } = require("./told.cjs");

function sasl() {
  const { mechanism, user: username, password, token } = login;
  if (!mechanism) return undefined;
  if (mechanism === "GSSAPI") return { mechanism, authenticate: require("./tickets.cjs") };
  return mechanism === "OAUTHBEARER" ? { mechanism, token } : { mechanism, username, password };
}

run(async () => {
  const options = {
    clientId: "secured",
    bootstrapBrokers: [login.address],
    retries: 2,
    tls: tls(),
    sasl: sasl(),
  };
  const { topic } = login;
  const producer = new Producer({ ...options, serializers: stringSerializers });
  await producer.send({ messages: [{ topic, value: "one" }] });
  const consumer = new Consumer({
    ...options,
    groupId: topic,
    deserializers: stringDeserializers,
    maxWaitTime: 100,
  });
  const stream = await consumer.consume({ topics: [topic], mode: "earliest" });
  for await (const message of stream) return message.offset;
});
