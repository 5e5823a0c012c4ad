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
let heardMs = Infinity; // when the coordinator last said that we are a member

consumer.on("consumer:heartbeat:end", () => {
  heardMs = Date.now();
});
consumer.on("consumer:group:join", ({ assignments }) => {
  const now = (assignments ?? []).flatMap((one) => one.partitions);
  speaking.revoked(owned.filter((partition) => !now.includes(partition)));
  owned = now;
  heardMs = Date.now();
  speaking.assigned(owned);
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
    // The stream still holds what it fetched before a rebalance. And a commit that is refused is
    // sent again after joining anew, which would put the group's offset back: a program that has
    // stood still must take nothing before that. What is passed over here is fetched again.
    const isLate = Date.now() - heardMs > settings.sessionMs;
    if (isLate || !owned.includes(message.partition)) continue;
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
