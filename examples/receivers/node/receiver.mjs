// Receives signed events: verifies the signature, stores each event once, answers, and does the work afterwards.
//
//   WEBHOOK_KEYS='whsec_… whpk_…' node receiver.mjs
//
// WEBHOOK_KEYS has the shared secrets (whsec_) and public keys (whpk_) of the sender, several while one is replaced. PORT is
// 9190 and EVENTS is the folder `events` unless they say otherwise. Needs Node 20 or newer and no package.

import { createHash, createHmac, createPublicKey, randomUUID, timingSafeEqual, verify } from "node:crypto";
import { link, mkdir, open, readFile, readdir, unlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import process from "node:process";

const TOLERANCE_SECONDS = 5 * 60;
// The least of Standard Webhooks. An empty one would accept what anybody signs.
const SECRET_MIN_BYTES = 24;
const PUBLIC_KEY_BYTES = 32;
const BODY_MAX_BYTES = 2 * 1024 * 1024;
const events = process.env.EVENTS ?? "events";
const keys = (process.env.WEBHOOK_KEYS ?? "").split(/\s+/).filter(Boolean).map(readKey);
if (keys.length === 0) fail("has no key: set it to the secret of the sender, whsec_…, or its public key, whpk_…");

// Your work: it may take its time, and it is done again if this program ends in the middle of it.
async function handle(body) {
  console.log("handled", body.toString());
}

// Ends the program with what is wrong with WEBHOOK_KEYS and what would be right. Never shows a key.
function fail(problem) {
  console.error(`WEBHOOK_KEYS ${problem}`);
  process.exit(1);
}

// The scheme of a key, and a function that tells whether it signed a text.
function readKey(text) {
  if (text.startsWith("whsk_")) fail("has a private key (whsk_), which only the sender needs: use its public key, whpk_…");
  const [, prefix, encoded] = /^(whsec_|whpk_)(.*)$/.exec(text) ?? [];
  if (!prefix) fail("has a key without its prefix: a secret begins with whsec_, a public key with whpk_");
  const key = Buffer.from(encoded, "base64");
  // Node ignores characters that are not base64.
  if (key.toString("base64") !== encoded) {
    fail("has a key that is not base64 after its prefix: copy the whole key, also the = at its end");
  }
  return prefix === "whsec_" ? sharedKey(key) : publicKey(key);
}

function sharedKey(secret) {
  if (secret.length < SECRET_MIN_BYTES) {
    fail(`has a secret of ${secret.length} bytes; it needs at least ${SECRET_MIN_BYTES}: \`lastmile secret\` makes one`);
  }
  const hasSigned = (signature, signed) => {
    const expected = createHmac("sha256", secret).update(signed).digest();
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  };
  return { scheme: "v1", hasSigned };
}

function publicKey(bytes) {
  if (bytes.length !== PUBLIC_KEY_BYTES) {
    fail(`has a public key of ${bytes.length} bytes; it needs ${PUBLIC_KEY_BYTES}: copy the whole whpk_… of the sender`);
  }
  const x = bytes.toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  return { scheme: "v1a", hasSigned: (signature, signed) => verify(null, signed, key, signature) };
}

// Whether one of the keys has signed these bytes within the last minutes.
function isValid(headers, body) {
  const { "webhook-id": message, "webhook-timestamp": timestamp, "webhook-signature": entries = "" } = headers;
  const age = Date.now() / 1000 - Number(timestamp);
  if (!message || !/^\d{1,14}$/.test(timestamp) || Math.abs(age) > TOLERANCE_SECONDS) return false;
  const signed = Buffer.concat([Buffer.from(`${message}.${timestamp}.`, "latin1"), body]);
  return entries.split(" ").some((entry) => {
    const [scheme, encoded = ""] = entry.split(",", 2);
    const signature = Buffer.from(encoded, "base64");
    return keys.some((key) => key.scheme === scheme && key.hasSigned(signature, signed));
  });
}

// Stores an event on disk under the id of its message; undefined if it is there already. In a database: an INSERT with a
// unique key.
async function store(message, body) {
  const name = createHash("sha256").update(message).digest("hex");
  const unfinished = join(events, `.${randomUUID()}`);
  const file = await open(unfinished, "wx");
  try {
    await file.writeFile(body);
    await file.sync();
    await link(unfinished, join(events, name));
    return name;
  } catch (problem) {
    if (problem.code === "EEXIST") return undefined;
    throw problem;
  } finally {
    await file.close();
    await unlink(unfinished);
  }
}

// The whole body; undefined if it is too long.
async function read(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_MAX_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function receive(request) {
  if (request.method !== "POST") return 405;
  const body = await read(request);
  if (body === undefined) return 413;
  if (!isValid(request.headers, body)) {
    console.log("refused a request: no key of WEBHOOK_KEYS has signed it in the last five minutes");
    return 401;
  }
  console.log("verified", request.headers["webhook-id"]);
  const name = await store(request.headers["webhook-id"], body);
  if (name === undefined) return 200;
  work(name);
  return 202;
}

let last = Promise.resolve();

// One event after the other.
function work(name) {
  last = last.then(async () => {
    try {
      await handle(await readFile(join(events, name)));
      await writeFile(join(events, `${name}.done`), "");
    } catch (problem) {
      console.log("it is tried again at the next start:", name, problem.message);
    }
  });
}

await mkdir(events, { recursive: true });
const stored = new Set(await readdir(events));
for (const name of stored) {
  if (/^[0-9a-f]{64}$/.test(name) && !stored.has(`${name}.done`)) work(name);
}
const server = createServer(async (request, response) => {
  // What is not stored is answered with an error: then it is sent again.
  const status = await receive(request).catch(() => 500);
  response.writeHead(status, status === 413 ? { connection: "close" } : {}).end();
});
server.listen(Number(process.env.PORT ?? 9190), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}/`);
});
