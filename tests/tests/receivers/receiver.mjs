// A subscriber with the CloudEvents SDK for JavaScript: prints its port, then responds to each request with what it
// received and what the SDK understood. Exits when its standard input is closed. WEBHOOK_SECRET verifies signatures, and
// the JSON Web Key Set WEBHOOK_KEYS those of the kind v1a; the argument is the folder with the libraries.
//
// It consents to deliveries: to a validation event that Event Grid's own SDK can read, and to OPTIONS from any
// origin, at any rate.

import { createPublicKey, verify } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";

const require = createRequire(join(process.argv[2], "package.json"));
const { EventGridDeserializer, isSystemEvent } = require("@azure/eventgrid");
const { HTTP } = require("cloudevents");
const { Webhook } = require("standardwebhooks");
const webhook = new Webhook(process.env.WEBHOOK_SECRET);
const keys = JSON.parse(process.env.WEBHOOK_KEYS).keys.map((key) => createPublicKey({ key, format: "jwk" }));

// The body as web frameworks pass it: text if the content type is text or JSON, bytes otherwise, undefined if empty.
function frameworkBody(type, bytes) {
  if (bytes.length === 0) return undefined;
  return /^text\/|[/+]json\b/i.test(type ?? "") ? bytes.toString() : bytes;
}

// The attributes and the data as the SDK reads them, or why it refuses.
function understood(headers, bytes) {
  try {
    const event = HTTP.toEvent({ headers, body: frameworkBody(headers["content-type"], bytes) });
    event.validate();
    const { data, data_base64: base64, ...attributes } = event;
    return { ...attributes, data: base64 === undefined ? data : { $base64: base64 } };
  } catch (problem) {
    return { $refused: `${problem.name}: ${problem.message}` };
  }
}

// `verified`, `unsigned`, or the error.
function signature(headers, bytes) {
  if (!Object.keys(headers).some((name) => name === "webhook-signature")) return "unsigned";
  try {
    webhook.verify(bytes, headers, { jsonParse: false });
    return "verified";
  } catch (problem) {
    return `${problem.name}: ${problem.message}`;
  }
}

// How many entries of the kind v1a are by one of the keys; the library leaves these out.
function asymmetric(headers, bytes) {
  const text = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), bytes]);
  const entries = (headers["webhook-signature"] ?? "").split(" ").filter((entry) => entry.startsWith("v1a,"));
  const signatures = entries.map((entry) => Buffer.from(entry.slice(4), "base64"));
  return signatures.filter((signature) => keys.some((key) => verify(null, text, key, signature))).length;
}

// The response to a validation event; undefined for any other.
async function validation(headers, bytes) {
  if (headers["aeg-event-type"] !== "SubscriptionValidation") return undefined;
  const [event] = await new EventGridDeserializer().deserializeEventGridEvents(bytes.toString());
  if (!isSystemEvent("Microsoft.EventGrid.SubscriptionValidationEvent", event)) return undefined;
  return { validationResponse: event.data.validationCode };
}

const pairs = (list) => Array.from({ length: list.length / 2 }, (_, at) => [list[2 * at], list[2 * at + 1]]);

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  if (request.method === "OPTIONS") {
    response.setHeader("Allow", "POST").setHeader("WebHook-Allowed-Origin", "*");
    response.setHeader("WebHook-Allowed-Rate", "*").end();
    return;
  }
  const report = (await validation(request.headers, body)) ?? {
    headers: pairs(request.rawHeaders),
    body: body.toString("base64"),
    event: understood(request.headers, body),
    signature: signature(request.headers, body),
    asymmetric: asymmetric(request.headers, body),
  };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(report));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
