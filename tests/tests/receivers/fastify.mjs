// A subscriber with Fastify and the CloudEvents SDK for JavaScript: prints its port, and exits when its standard input is
// closed. The argument is the folder with the libraries.
//
// It reads bodies as Fastify does by default, which refuses an empty body of JSON. /in responds with the type of the
// event; /reply replies with an event in binary mode, /refuse refuses with a reason, both encoded as the query says,
// whatever the request accepts.

import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";

const require = createRequire(join(process.argv[2], "package.json"));
const { CloudEvent, HTTP } = require("cloudevents");
const { fastify } = require("fastify");

const encode = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };
const app = fastify();
app.addContentTypeParser("application/cloudevents+json", { parseAs: "string" }, (_, body, done) => done(null, body));

app.post("/in", async ({ headers, body }) => ({ type: HTTP.toEvent({ headers, body }).type }));

app.post("/reply", async ({ headers, body, query }, response) => {
  const event = HTTP.toEvent({ headers, body });
  const reply = HTTP.binary(new CloudEvent({ source: "/fastify", type: "order.answered", data: { to: event.id } }));
  response.headers(reply.headers).header("content-encoding", query.coding);
  return response.send(encode[query.coding](reply.body));
});

app.post("/refuse", async ({ query }, response) => {
  response.status(422).header("content-type", "application/json").header("content-encoding", query.coding);
  return response.send(encode[query.coding]('{"code":"no_such_order"}'));
});

console.log(new URL(await app.listen({ port: 0, host: "127.0.0.1" })).port);
process.stdin.on("end", () => process.exit(0)).resume();
