// A group member on @platformatic/kafka: assignors roundrobin and cooperative-sticky.
"use strict";

const { Consumer } = require("@platformatic/kafka");
const speaking = require("./speaking.cjs");

const { settings } = speaking;
const cooperative = settings.assignors.includes("cooperative-sticky");
const consumer = new Consumer({
  clientId: settings.name,
  bootstrapBrokers: [settings.bootstrap],
  groupId: settings.group,
  groupInstanceId: settings.instanceId,
  sessionTimeout: settings.sessionMs,
  heartbeatInterval: settings.heartbeatMs,
  rebalanceTimeout: settings.rebalanceMs,
  protocols: settings.assignors.map((name) => ({ name, version: cooperative ? 3 : 1 })),
  maxWaitTime: 100,
  autocommit: false,
});

let owned = [];
let askedMs = 0; // when the last heartbeat was sent
let heardMs = Infinity; // when the last one was sent that was answered: we were a member then

consumer.on("consumer:heartbeat:start", () => {
  askedMs = Date.now();
});

consumer.on("consumer:heartbeat:end", () => {
  heardMs = askedMs; // the answer may have lain here while the program stood still
});

// With the cooperative assignor the stream gives records of partitions that were kept or taken over
// once more, from before what is committed: they are passed over by what the coordinator has.
const next = new Map();
let known = Promise.resolve();

async function readCommitted(partitions) {
  if (partitions.length === 0) return;
  const { topic } = settings;
  const answer = await consumer.listCommittedOffsets({ topics: [{ topic, partitions }] });
  for (const partition of partitions) {
    const offset = Number(answer.get(topic)?.[partition] ?? 0);
    next.set(partition, Math.max(offset, next.get(partition) ?? 0));
  }
}

consumer.on("consumer:group:join", ({ assignments }) => {
  const now = (assignments ?? []).flatMap((one) => one.partitions);
  speaking.revoked(owned.filter((partition) => !now.includes(partition)));
  owned = now;
  heardMs = Date.now();
  speaking.assigned(owned);
  known = readCommitted(owned).catch(speaking.error);
});

async function main() {
  const stream = await consumer.consume({
    topics: [settings.topic],
    mode: "committed",
    fallbackMode: "earliest",
  });
  speaking.onLeave(async () => {
    await stream.close();
    await consumer.close();
  });
  for await (const message of stream) {
    await known;
    // The stream still holds what it fetched before a rebalance. And a commit that is refused is
    // sent again after joining anew, which would put the group's offset back: a program that has
    // stood still must take nothing before that. What is passed over here is fetched again.
    const isLate = Date.now() - heardMs > settings.sessionMs;
    if (isLate || !owned.includes(message.partition)) continue;
    if (Number(message.offset) < (next.get(message.partition) ?? 0)) continue;
    next.set(message.partition, Number(message.offset) + 1);
    speaking.record(message.partition, Number(message.offset));
    try {
      await message.commit();
      speaking.committed(message.partition, Number(message.offset) + 1);
    } catch (error) {
      speaking.error(error);
    }
  }
}

main();
