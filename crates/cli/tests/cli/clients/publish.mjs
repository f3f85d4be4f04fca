// Publishes with every client in JavaScript, each as its own documentation shows it, and prints a line for each way:
// client, version, mode, the ids of the events, and the error if there is one. The first argument is the folder of the
// installed clients. PLAIN and KEYED are addresses of `lastmile dev` without and with a key, KEY is that key.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const folder = process.argv[2];
const load = createRequire(join(folder, "package.json"));
const { AzureKeyCredential, AzureSASCredential, EventGridPublisherClient, generateSharedAccessSignature } =
  load("@azure/eventgrid");
const { CloudEvent, HTTP, Mode, emitterFor, httpTransport } = load("cloudevents");
const { PLAIN, KEYED, KEY } = process.env;

let number = 0;
const versionOf = (client) =>
  JSON.parse(readFileSync(join(folder, "node_modules", client, "package.json"), "utf8")).version;

async function attempt(client, mode, events, publish) {
  const ids = Array.from({ length: events }, () => `node-${++number}.`);
  const line = { client: `npm \`${client}\``, version: versionOf(client), mode, ids };
  try {
    await publish(ids);
  } catch (error) {
    line.error = `${error.name}: ${error.message}`;
  }
  console.log(JSON.stringify(line));
}

const EVENTGRID = "@azure/eventgrid";
const endpoint = `${KEYED}/api/events`;
const options = { allowInsecureConnection: true };
const key = new AzureKeyCredential(KEY);
const gridEvent = (id) => ({
  id, subject: "orders/7", eventType: "order.created", dataVersion: "1", data: { orderId: 7 },
});
const azureEvent = (id) => ({ id, source: "/shop", type: "order.created", data: { orderId: 7 } });

await attempt(EVENTGRID, "`EventGrid`, `/api/events`, key", 1, (ids) =>
  new EventGridPublisherClient(endpoint, "EventGrid", key, options).send(ids.map(gridEvent)));
await attempt(EVENTGRID, "`CloudEvent`, host only, key", 2, (ids) =>
  new EventGridPublisherClient(KEYED, "CloudEvent", key, options).send(ids.map(azureEvent)));
await attempt(EVENTGRID, "`Custom`, `/topics/shop/orders/`, key", 1, (ids) =>
  new EventGridPublisherClient(`${KEYED}/topics/shop/orders/`, "Custom", key, options).send(ids.map((id) => ({ order: id }))));
await attempt(EVENTGRID, "`CloudEvent`, `/api/events`, SAS token", 1, async (ids) => {
  const token = await generateSharedAccessSignature(endpoint, key, new Date(Date.now() + 300_000));
  const client = new EventGridPublisherClient(endpoint, "CloudEvent", new AzureSASCredential(token), options);
  await client.send(ids.map(azureEvent));
});
await attempt(EVENTGRID, "another key: `RestError` with status 401", 0, async () => {
  const client = new EventGridPublisherClient(endpoint, "CloudEvent", new AzureKeyCredential("another"), options);
  const status = await client.send([azureEvent("refused")]).then(() => 200, (error) => error.statusCode);
  if (status !== 401) throw new Error(`the status is ${status}`);
});

const CLOUDEVENTS = "cloudevents";
const sink = `${PLAIN}/topics/shop/orders`;
const event = (id) =>
  new CloudEvent({ id, source: "/shop", type: "order.created", subject: "orders/7", data: { orderId: 7 } });
// The transport resolves whatever the status is; what was published has a message id.
const published = (answer) => {
  if (!JSON.parse(answer.body).messageId) throw new Error(answer.body);
};

await attempt(CLOUDEVENTS, "binary", 1, async (ids) =>
  published(await emitterFor(httpTransport(sink), { mode: Mode.BINARY })(event(ids[0]))));
await attempt(CLOUDEVENTS, "binary, `/shop/orders/`", 1, async (ids) =>
  published(await emitterFor(httpTransport(`${PLAIN}/shop/orders/`), { mode: Mode.BINARY })(event(ids[0]))));
await attempt(CLOUDEVENTS, "structured", 1, async (ids) =>
  published(await emitterFor(httpTransport(sink), { mode: Mode.STRUCTURED })(event(ids[0]))));
await attempt(CLOUDEVENTS, "batched (the caller builds the array)", 2, async (ids) => {
  const body = `[${ids.map((id) => HTTP.structured(event(id)).body).join(",")}]`;
  const headers = { "content-type": "application/cloudevents-batch+json" };
  published(await httpTransport(sink)({ headers, body }));
});
