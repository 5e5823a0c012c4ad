// What a member program is given, what it says, and what it is told; see ../README.md.
"use strict";

const { writeSync } = require("node:fs");

const [name, bootstrap, topic, group, assignors, instanceId, sessionMs] = process.argv.slice(2);

const settings = {
  name,
  bootstrap,
  topic,
  group,
  assignors: assignors.split(","),
  instanceId: instanceId === "-" ? undefined : instanceId,
  sessionMs: Number(sessionMs),
  heartbeatMs: Math.floor(Number(sessionMs) / 10),
  rebalanceMs: Math.max(10_000, Number(sessionMs)),
};

// Several members write into one pipe: a line goes out by one call, so that lines never mix.
function say(event) {
  writeSync(1, JSON.stringify({ member: name, ...event }) + "\n");
}

// Calls `leave` at the command "leave", or at the end of standard input.
function onLeave(leave) {
  let told = false;
  const once = () => {
    if (told) return;
    told = true;
    leave().then(
      () => {
        say({ event: "left" });
        process.exit(0);
      },
      (error) => {
        process.stderr.write(`${error.stack}\n`);
        process.exit(1);
      },
    );
  };
  process.stdin.once("data", once);
  process.stdin.once("end", once);
}

module.exports = {
  settings,
  onLeave,
  assigned: (partitions) => say({ event: "assigned", partitions }),
  revoked: (partitions) => say({ event: "revoked", partitions }),
  record: (partition, offset) => say({ event: "record", partition, offset }),
  committed: (partition, offset) => say({ event: "committed", partition, offset }),
  error: (error) => say({ event: "error", error: String(error) }),
};
