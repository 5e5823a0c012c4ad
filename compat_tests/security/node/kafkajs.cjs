// Writes a record by kafkajs and reads it, as somebody.
"use strict";

const { Kafka, logLevel } = require("kafkajs");
const { login, tls, run } = require("./told.cjs");

function sasl() {
  const { mechanism, user: username, password, token } = login;
  if (!mechanism) return undefined;
  if (mechanism === "OAUTHBEARER") {
    return { mechanism: "oauthbearer", oauthBearerProvider: async () => ({ value: token }) };
  }
  return { mechanism: mechanism.toLowerCase(), username, password };
}

run(async () => {
  const kafka = new Kafka({
    brokers: [login.address],
    logLevel: logLevel.NOTHING,
    retry: { retries: 2 },
    ssl: tls(),
    sasl: sasl(),
    // Else it logs in anew 10 s before a login ends, here at once; brokers take that once a second.
    reauthenticationThreshold: 300,
  });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: login.topic, messages: [{ value: "one" }] });
  const consumer = kafka.consumer({ groupId: login.topic });
  await consumer.connect();
  await consumer.subscribe({ topic: login.topic, fromBeginning: true });
  return new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer.run({ eachMessage: async ({ message }) => resolve(message.offset) });
  });
});
