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

// It gives up all partitions before it joins again; others get them as soon as it has joined.
function revoke() {
  speaking.revoked(owned);
  owned = [];
}

consumer.on(consumer.events.REBALANCING, revoke);
consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  revoke();
  owned = payload.memberAssignment[settings.topic] ?? [];
  speaking.assigned(owned);
});

// A commit that is refused is thrown on: kafkajs joins again, and fetches from what is committed.
async function processBatch({
  batch,
  heartbeat,
  isRunning,
  isStale,
  resolveOffset,
  commitOffsetsIfNecessary,
}) {
  const { topic, partition } = batch;
  for (const message of batch.messages) {
    if (!isRunning() || isStale() || !owned.includes(partition)) return;
    speaking.record(partition, Number(message.offset));
    const offset = String(BigInt(message.offset) + 1n);
    try {
      await commitOffsetsIfNecessary({ topics: [{ topic, partitions: [{ partition, offset }] }] });
    } catch (error) {
      speaking.error(error);
      throw error;
    }
    speaking.committed(partition, Number(offset));
    resolveOffset(message.offset);
    await heartbeat();
  }
}

async function main() {
  await consumer.connect();
  await consumer.subscribe({ topic: settings.topic, fromBeginning: true });
  speaking.onLeave(() => consumer.disconnect());
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: processBatch });
}

main();
