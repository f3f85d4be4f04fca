// A token server of others, oidc-provider, and a destination that takes its tokens and nothing else. Prints its port.
// Exits when its standard input is closed. The argument is the folder with the library; CLIENT_SECRET is that of both
// clients, `basic` and `post`, which are named by how they show it.
//
// POST /token grants tokens, POST /in wants one, POST /revoke ends all of them, POST /revoke-at/N does so when it has taken N
// requests, POST /life/N lets tokens end after N seconds, GET /seen tells what happened.

import { createServer } from "node:http";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const entry = join(process.argv[2], "node_modules/oidc-provider/lib/index.js");
const { default: Provider } = await import(pathToFileURL(entry));

const seen = { granted: [], delivered: 0, refused: 0 };
let issued = [];
let life = 3600;
let revokeAt = Infinity;
const server = createServer((request, response) => route(request, response));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit(0));

let provider;
server.on("listening", () => {
  const client = (style) => ({
    client_id: style,
    client_secret: process.env.CLIENT_SECRET,
    token_endpoint_auth_method: `client_secret_${style}`,
    grant_types: ["client_credentials"],
    response_types: [],
    redirect_uris: [],
  });
  provider = new Provider(`http://127.0.0.1:${server.address().port}`, {
    clients: [client("basic"), client("post")],
    scopes: ["orders.write"],
    ttl: { ClientCredentials: () => life },
    features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
  });
  provider.on("client_credentials.saved", (token) => {
    issued.push(token);
    seen.granted.push(token.jti);
  });
});

async function revoke() {
  revokeAt = Infinity;
  const ended = issued;
  issued = [];
  await Promise.all(ended.map((token) => token.destroy()));
}

async function route(request, response) {
  if (request.url === "/token") return provider.callback()(request, response);
  for await (const _ of request);
  if (request.url === "/seen") return response.end(JSON.stringify(seen));
  const [, verb, number] = request.url.split("/");
  if (verb === "life") life = Number(number);
  if (verb === "revoke-at") revokeAt = Number(number);
  if (verb === "revoke") await revoke();
  if (verb !== "in") return response.end();
  const shown = request.headers.authorization ?? "";
  const token = await provider.ClientCredentials.find(shown.replace(/^Bearer /, ""));
  const isWelcome = token?.scope === "orders.write" && request.url === `/in/${token.clientId}`;
  seen[isWelcome ? "delivered" : "refused"] += 1;
  if (seen.delivered === revokeAt) await revoke();
  response.statusCode = isWelcome ? 200 : 401;
  response.end(isWelcome ? "welcome" : `you sent ${shown}`);
}
