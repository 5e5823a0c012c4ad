// Starts an image by @testcontainers/kafka; see ../harness.py for what it is told.
"use strict";

const { KafkaContainer } = require("@testcontainers/kafka");

async function start(image, variant) {
  const container = new KafkaContainer(image);
  const started = await (variant === "kraft" ? container.withKraft() : container).start();
  console.log(`started ${started.getHost()}:${started.getMappedPort(9093)}`);
  await new Promise((resolve) => process.stdin.once("data", resolve).once("end", resolve));
  await started.stop();
  process.exit(0);
}

start(...process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
