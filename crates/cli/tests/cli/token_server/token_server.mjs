// A token server of others, oidc-provider, and a destination that takes its tokens and nothing else. Prints its port.
// Exits when its standard input is closed. The argument is the folder with the library; CLIENT_SECRET is that of both
// clients, `basic` and `post`, which are named by how they show it.
//
// POST /token grants tokens, POST /in wants one, POST /revoke ends all of them, POST /revoke-at/N does so when it has taken N
// requests, POST /life/N lets tokens end after N seconds, GET /seen tells what happened. Tokens for the resource `urn:orders` are
// signed: POST /rotate replaces the key, and the destination takes nothing that an older one has signed.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const library = (path) => import(pathToFileURL(join(process.argv[2], "node_modules", path)));
const { default: Provider } = await library("oidc-provider/lib/index.js");
const { createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify } = await library("jose/dist/webapi/index.js");

const seen = { granted: [], shown: [], delivered: 0, refused: 0 };
let issued = [];
let life = 3600;
let revokeAt = Infinity;
const server = createServer((request, response) => route(request, response));
server.listen(0, "127.0.0.1");
process.stdin.resume().on("end", () => process.exit(0));

let provider;
let keys;
const resource = {
  scope: "orders.write",
  audience: "urn:orders",
  accessTokenFormat: "jwt",
  jwt: { sign: { alg: "RS256" } },
};
async function rotate() {
  const pair = await generateKeyPair("RS256", { extractable: true });
  const kid = randomUUID();
  const of = async (key) => ({ ...(await exportJWK(key)), alg: "RS256", use: "sig", kid });
  keys = createLocalJWKSet({ keys: [await of(pair.publicKey)] });
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
    jwks: { keys: [await of(pair.privateKey)] },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: { enabled: true, getResourceServerInfo: () => resource },
    },
  });
  provider.on("client_credentials.saved", (token) => {
    issued.push(token);
    seen.granted.push(token.jti);
  });
}
server.on("listening", async () => {
  await rotate();
  console.log(server.address().port);
});

// What a signed token says, if the key of today has signed it.
async function signed(value) {
  try {
    const { payload } = await jwtVerify(value, keys, { audience: resource.audience });
    return { scope: payload.scope, clientId: payload.client_id };
  } catch {
    return undefined;
  }
}

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
  if (verb === "rotate") await rotate();
  if (verb !== "in") return response.end();
  const shown = request.headers.authorization ?? "";
  const value = shown.replace(/^Bearer /, "");
  if (!seen.shown.includes(value)) seen.shown.push(value);
  const token = value.includes(".") ? await signed(value) : await provider.ClientCredentials.find(value);
  const isWelcome = token?.scope === "orders.write" && request.url === `/in/${token.clientId}`;
  seen[isWelcome ? "delivered" : "refused"] += 1;
  if (seen.delivered === revokeAt) await revoke();
  response.statusCode = isWelcome ? 200 : 401;
  response.end(isWelcome ? "welcome" : `you sent ${shown}`);
}
