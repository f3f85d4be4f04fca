// The handler a team would write in Node: the built-in fetch, all records of a batch at once.

const TARGET_URL = process.env.TARGET_URL;

async function deliver(record) {
  const response = await fetch(TARGET_URL, {
    method: "POST",
    headers: { "content-type": "application/cloudevents+json" },
    body: record.body,
    signal: AbortSignal.timeout(30_000),
  });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`status ${response.status}`);
}

export async function handler(event) {
  const results = await Promise.allSettled(event.Records.map(deliver));
  const failed = event.Records.filter((_, index) => results[index].status === "rejected");
  return { batchItemFailures: failed.map((record) => ({ itemIdentifier: record.messageId })) };
}
