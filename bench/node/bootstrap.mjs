// A minimal Node runtime: request an invocation, call the handler, post its result. AWS's own runtime client
// (aws-lambda-ric) does more per invocation and needs a C++ tool chain to install; this one is in Node's favour.

import http from "node:http";
import { handler } from "./handler.mjs";

const [hostname, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(":");
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

function call(method, path, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname, port, method, path: `/2018-06-01/runtime/invocation/${path}`, agent });
    request.on("error", reject);
    request.on("response", (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => resolve({ headers: response.headers, body: Buffer.concat(chunks) }));
    });
    request.end(body);
  });
}

for (;;) {
  const { headers, body } = await call("GET", "next");
  const result = await handler(JSON.parse(body));
  await call("POST", `${headers["lambda-runtime-aws-request-id"]}/response`, JSON.stringify(result));
}
