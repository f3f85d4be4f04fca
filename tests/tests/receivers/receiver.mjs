// A subscriber with the CloudEvents SDK for JavaScript: prints its port, then responds to each request with what it
// received and what the SDK understood. Exits when its standard input is closed. WEBHOOK_SECRET verifies signatures;
// the argument is the folder with the libraries.
//
// It consents to deliveries: to a validation event that Event Grid's own SDK can read, and to OPTIONS from any
// origin, at any rate.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";

const require = createRequire(join(process.argv[2], "package.json"));
const { EventGridDeserializer, isSystemEvent } = require("@azure/eventgrid");
const { HTTP } = require("cloudevents");
const { Webhook } = require("standardwebhooks");
const webhook = new Webhook(process.env.WEBHOOK_SECRET);

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
  };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(report));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
