// STS and an endpoint that takes its tokens, and no others: jose signs them with a key of this process, and verifies them by
// the key set that is published here. Prints its port; ends with its standard input.
//
// `GET /seen` says which tokens were granted, how many requests were taken and refused, and what was asked of STS.
// `POST /revoke` makes the endpoint refuse every token so far, and repeat it.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const load = createRequire(join(process.argv[2], "package.json"));
const jose = await import(pathToFileURL(load.resolve("jose")));

const SUBJECT = "arn:aws:iam::123456789012:role/dispatch";
const { publicKey, privateKey } = await jose.generateKeyPair("RS256");
const jwk = { ...(await jose.exportJWK(publicKey)), kid: "of-the-test", alg: "RS256", use: "sig" };
const seen = { granted: [], delivered: 0, refused: 0, asked: [] };
const revoked = new Set();
let issuer;
let keys;

async function grant(form, answer) {
  seen.asked.push(Object.fromEntries(form));
  const seconds = Number(form.get("DurationSeconds"));
  const token = await new jose.SignJWT({})
    .setProtectedHeader({ alg: form.get("SigningAlgorithm"), kid: jwk.kid })
    .setIssuer(issuer)
    .setSubject(SUBJECT)
    .setAudience(form.get("Audience.member.1"))
    .setIssuedAt()
    .setExpirationTime(`${seconds}s`)
    .setJti(String(seen.asked.length))
    .sign(privateKey);
  seen.granted.push(token);
  const expiration = new Date(Date.now() + seconds * 1000).toISOString();
  answer(
    200,
    `<GetWebIdentityTokenResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetWebIdentityTokenResult>` +
      `<WebIdentityToken>${token}</WebIdentityToken><Expiration>${expiration}</Expiration>` +
      `</GetWebIdentityTokenResult></GetWebIdentityTokenResponse>`,
  );
}

// What docs/guides/secrets.md says that a receiver has to verify.
async function receive(authorization, audience, answer) {
  const token = (authorization ?? "").replace(/^Bearer /, "");
  try {
    const { payload } = await jose.jwtVerify(token, keys, { issuer, audience, algorithms: ["RS256"] });
    if (payload.sub !== SUBJECT || revoked.has(token)) throw new Error("not this one");
    seen.delivered += 1;
    answer(200, "welcome");
  } catch (error) {
    seen.refused += 1;
    answer(401, `${error.message}: ${authorization}`);
  }
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const answer = (status, text) => {
      response.writeHead(status, { "content-length": Buffer.byteLength(text) }).end(text);
    };
    if (request.url === "/jwks.json") return answer(200, JSON.stringify({ keys: [jwk] }));
    if (request.url === "/seen") return answer(200, JSON.stringify(seen));
    if (request.url === "/revoke") {
      seen.granted.forEach((token) => revoked.add(token));
      return answer(200, "");
    }
    if (request.url.startsWith("/in/")) {
      return receive(request.headers.authorization, request.url.slice("/in/".length), answer);
    }
    return grant(new URLSearchParams(Buffer.concat(chunks).toString()), answer);
  });
});
server.listen(0, "127.0.0.1", () => {
  issuer = `http://127.0.0.1:${server.address().port}`;
  keys = jose.createRemoteJWKSet(new URL(`${issuer}/jwks.json`));
  console.log(server.address().port);
});
process.stdin.on("close", () => process.exit()).resume();
