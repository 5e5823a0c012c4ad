// Logs in by GSSAPI: @platformatic/kafka knows its name and leaves the rest to whoever uses it. The
// package `kerberos`, by which its own tests do so, asks the system's library.
"use strict";

const { promisify } = require("node:util");
const { GSS_MECH_OID_KRB5, initializeClient } = require("kerberos");
const { login } = require("./told.cjs");

async function exchange(connection, authenticate) {
  const ask = async (token) => {
    const answer = await promisify(authenticate)(connection, Buffer.from(token ?? "", "base64"));
    return { ...answer, token: answer.authBytes.toString("base64") };
  };
  const target = `${login.service}@${connection.host}`;
  const client = await initializeClient(target, { mechOID: GSS_MECH_OID_KRB5 });
  let answer = await ask(await client.step(""));
  while (!client.contextComplete) answer = await ask(await client.step(answer.token));
  const offered = await client.unwrap(answer.token);
  return ask(await client.wrap(offered, { user: client.username }));
}

module.exports = (mechanism, connection, authenticate, user, password, token, callback) => {
  exchange(connection, authenticate).then((answer) => callback(null, answer), callback);
};
