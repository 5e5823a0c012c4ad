// Schedules a record and retries another one: kafkajs, headers alone.
"use strict";

const { Kafka, logLevel } = require("kafkajs");

async function main() {
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING });
  const producer = kafka.producer();
  await producer.connect();

  const later = { "deliver-to": "orders", "deliver-after": "2s" };
  await producer.send({
    topic: "deliver",
    messages: [{ key: "customer-7", value: "a book", headers: later }],
  });
  const again = { "retry-topic": "orders.retry.billing", "retry-backoff": "1s,10s" };
  await producer.send({
    topic: "retry",
    messages: [{ key: "customer-7", value: "a pen", headers: again }],
  });
  await producer.disconnect();
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
