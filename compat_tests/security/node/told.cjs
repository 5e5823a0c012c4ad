// What these programs are told, by a JSON object: where to, and as whom; what is empty isn't used.
"use strict";

const { readFileSync } = require("node:fs");

const login = JSON.parse(process.argv[2]);

// Returns what is wanted of the connection, undefined if it is plain.
function tls() {
  if (!login.ca) return undefined;
  const wanted = { ca: readFileSync(login.ca, "utf8") };
  if (login.own) wanted.cert = wanted.key = readFileSync(login.own, "utf8");
  return wanted;
}

// Runs the program, and says what it read or why it was refused.
function run(readOne) {
  readOne().then(
    (offset) => end(`read ${offset}`),
    (error) => end(`refused: ${[error, ...(error.errors ?? [])].map(String).join("; ")}`),
  );
}

function end(line) {
  process.stdout.write(`${line}\n`, () => process.exit(0));
}

module.exports = { login, tls, run };
