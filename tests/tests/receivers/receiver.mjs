// A subscriber with the CloudEvents SDK for JavaScript: prints its port, then tells for each request what came and what
// the SDK understood of it. Ends with its standard input. WEBHOOK_SECRET is what signatures are verified with; the
// argument is the folder with the libraries.
//
// It consents to deliveries: to a validation event as Event Grid's own SDK reads it, and to OPTIONS of anybody, at any
// rate.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";

const require = createRequire(join(process.argv[2], "package.json"));
const { EventGridDeserializer, isSystemEvent } = require("@azure/eventgrid");
const { HTTP } = require("cloudevents");
const { Webhook } = require("standardwebhooks");
const webhook = new Webhook(process.env.WEBHOOK_SECRET);

// What web frameworks hand over: text where the content type says text or JSON, bytes otherwise, nothing for no body.
function handedOver(type, bytes) {
  if (bytes.length === 0) return undefined;
  return /^text\/|[/+]json\b/i.test(type ?? "") ? bytes.toString() : bytes;
}

// The attributes and the data as the SDK sees them, or why it refuses.
function understood(headers, bytes) {
  try {
    const event = HTTP.toEvent({ headers, body: handedOver(headers["content-type"], bytes) });
    event.validate();
    const { data, data_base64: base64, ...attributes } = event;
    return { ...attributes, data: base64 === undefined ? data : { $base64: base64 } };
  } catch (problem) {
    return { $refused: `${problem.name}: ${problem.message}` };
  }
}

// `verified`, `unsigned`, or why not.
function signature(headers, bytes) {
  if (!Object.keys(headers).some((name) => name === "webhook-signature")) return "unsigned";
  try {
    webhook.verify(bytes, headers, { jsonParse: false });
    return "verified";
  } catch (problem) {
    return `${problem.name}: ${problem.message}`;
  }
}

// The answer to a validation event; undefined to any other.
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
  const told = (await validation(request.headers, body)) ?? {
    headers: pairs(request.rawHeaders),
    body: body.toString("base64"),
    event: understood(request.headers, body),
    signature: signature(request.headers, body),
  };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(told));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
