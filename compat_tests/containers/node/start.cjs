// Starts an image by @testcontainers/kafka; see ../harness.py for what it is told.
"use strict";

const { readFileSync } = require("node:fs");
const { KafkaContainer } = require("@testcontainers/kafka");

async function start(image, variant) {
  const container = new KafkaContainer(image);
  let port = 9093;
  if (variant === "kraft") container.withKraft();
  if (variant.endsWith(".p12")) {
    port = 9096;
    container.withSaslSslListener({
      port,
      sasl: { mechanism: "SCRAM-SHA-512", user: { name: "shop", password: "secret" } },
      keystore: { content: readFileSync(variant), passphrase: "secret" },
    });
  }
  const started = await container.start();
  console.log(`started ${started.getHost()}:${started.getMappedPort(port)}`);
  await new Promise((resolve) => process.stdin.once("data", resolve).once("end", resolve));
  await started.stop();
  process.exit(0);
}

start(...process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
