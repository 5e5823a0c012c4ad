// A group member on kafkajs. It has one assignor of its own, RoundRobinAssigner, and no static
// members.
"use strict";

const { Kafka, logLevel } = require("kafkajs");
const speaking = require("./speaking.cjs");

const { settings } = speaking;
const kafka = new Kafka({ brokers: [settings.bootstrap], logLevel: logLevel.NOTHING });
const consumer = kafka.consumer({
  groupId: settings.group,
  sessionTimeout: settings.sessionMs,
  heartbeatInterval: settings.heartbeatMs,
  rebalanceTimeout: settings.rebalanceMs,
  maxWaitTimeInMs: 100,
});

let owned = [];

consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  speaking.revoked(owned);
  owned = payload.memberAssignment[settings.topic] ?? [];
  speaking.assigned(owned);
});

async function process_({ batch, heartbeat, isRunning, isStale, resolveOffset }) {
  for (const message of batch.messages) {
    if (!isRunning() || isStale() || !owned.includes(batch.partition)) return;
    speaking.record(batch.partition, Number(message.offset));
    const next = String(BigInt(message.offset) + 1n);
    try {
      await consumer.commitOffsets([
        { topic: batch.topic, partition: batch.partition, offset: next },
      ]);
    } catch (error) {
      speaking.error(error);
      throw error; // kafkajs joins again, and fetches from what is committed
    }
    speaking.committed(batch.partition, Number(next));
    resolveOffset(message.offset);
    await heartbeat();
  }
}

async function main() {
  await consumer.connect();
  await consumer.subscribe({ topic: settings.topic, fromBeginning: true });
  speaking.onLeave(() => consumer.disconnect());
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: process_ });
}

main();
