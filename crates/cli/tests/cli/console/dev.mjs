// dev.mjs: uses the page of dev as a person does; browser.mjs says how it is started. INGRESS is the address of the
// topics of `shop`. What only the starter can do is asked for by a line on standard output, and done once a line comes
// back: `answer` lets the slow endpoint answer, `restart` starts dev again, whose ingress is in the line.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { SIZES, follow, inEverySize, judge, open, run, tabTo } from "./browser.mjs";

const answers = createInterface({ input: process.stdin });
const lines = answers[Symbol.asyncIterator]();
let ingress = process.env.INGRESS;

/** Asks the starter for something; what it says to it. */
async function ask(what) {
  process.stdout.write(`${what}\n`);
  return (await lines.next()).value;
}

async function publish(id, type = "order.created", topic = "orders") {
  const body = JSON.stringify({ specversion: "1.0", id, source: "shop/checkout", type, data: { total: "42.00" } });
  const headers = { "content-type": "application/cloudevents+json" };
  const answer = await fetch(`${ingress}/${topic}`, { method: "POST", headers, body });
  assert.equal(answer.status, 202, await answer.text());
}

/** The rows that can be seen of an event. */
const rows = (page, id) => page.locator("#live tbody tr:visible").filter({ hasText: id });

async function anOpenPageFillsAndIsFiltered(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  await page.goto("/live");
  await page.getByText("No events yet").waitFor({ state: "hidden" }).catch(() => {});
  await publish("order-1");
  const delivered = rows(page, "order-1").filter({ hasText: "shop/orders/good" });
  await delivered.getByText("200 OK").waitFor();
  const failed = rows(page, "order-1").filter({ hasText: "shop/orders/busy" });
  await failed.getByText("503 Service Unavailable").first().waitFor();
  assert.match(await failed.first().locator(".next").innerText(), /retry (in|is due)/);
  await page.getByLabel("Type of step", { exact: true }).selectOption("delivered");
  assert.equal(await rows(page, "order-1").count(), 1);
  await page.getByLabel("Text").fill("no such thing");
  assert.equal(await rows(page, "order-1").count(), 0);
  await page.getByLabel("Text").fill("ORDER-1");
  assert.equal(await rows(page, "order-1").count(), 1);
  await page.getByLabel("Type of step", { exact: true }).selectOption("");
  await page.getByLabel("Subscription", { exact: true }).selectOption("shop/orders/good");
  assert.equal(await rows(page, "order-1").count(), 1);
  await page.getByLabel("Subscription", { exact: true }).selectOption("");
  await page.getByRole("button", { name: "Pause" }).click();
  await publish("order-2");
  await page.getByRole("button", { name: /Paused, [1-9]/ }).click();
  await page.getByLabel("Text").fill("");
  await rows(page, "order-2").first().waitFor();
  await close();
}

async function anEventIsOpenedFollowedAndSentAgain(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  await page.goto("/live");
  await follow(page, rows(page, "order-1").first().getByRole("link", { name: "order-1" }));
  assert.equal(await page.locator("h1").innerText(), "order-1");
  const delivered = page.locator("section").filter({ has: page.getByRole("heading", { name: "shop/orders/good" }) });
  await delivered.locator("details summary").click();
  await delivered.getByText("application/cloudevents+json").waitFor();
  await follow(page, page.getByRole("link", { name: "Edit and resend" }));
  const event = page.getByRole("textbox", { name: "Event" });
  await event.fill((await event.inputValue()).replace("order-1", "order-3"));
  await page.getByRole("button", { name: "Publish" }).click();
  await page.getByText("Accepted: 1 event").waitFor();
  await page.getByRole("link", { name: "Watch it live" }).click();
  await rows(page, "order-3").filter({ hasText: "200 OK" }).waitFor();
  await close();
}

async function keysAloneLeadToPublishing(browser) {
  const { page, close } = await open(browser, SIZES[0], "dark");
  await page.goto("/publish");
  await tabTo(page, "Publish", "BUTTON");
  await page.keyboard.press("Enter");
  await page.getByText("Accepted: 1 event").waitFor();
  await close();
}

async function aPastedEventIsExplainedAndIsInNoAddress(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  await page.goto("/subscriptions/shop/orders/busy");
  await page.getByLabel("Test an event").fill('{"specversion":"1.0","id":"order-pasted","source":"shop","type":"order.created"}');
  await follow(page, page.getByRole("button", { name: "Explain" }));
  await page.getByText("Event order-pasted: matches").waitFor();
  assert.equal(new URL(page.url()).search, "");
  await judge(page, "dev-explained-1280-light");
  await close();
}

async function nothingOfAnEventRuns(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  await page.goto("/live");
  await publish("<img src=x onerror=alert(1)>", "'\"><script>alert(2)</script>");
  await rows(page, "<img src=x").filter({ hasText: "200 OK" }).waitFor();
  await follow(page, rows(page, "<img src=x").first().getByRole("link").first());
  assert.equal(await page.locator("h1").innerText(), "<img src=x onerror=alert(1)>");
  await close();
}

async function anAttemptIsSeenWhileItIsUnderWay(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  await page.goto("/live");
  await publish("report-1", "report.asked", "reports");
  const waiting = page.locator("#under-way tr").filter({ hasText: "report-1" });
  await waiting.getByText("waiting for a response").waitFor();
  await waiting.getByText(/^for ([2-9]|\d\d) s$/).waitFor();
  await page.getByLabel("Type of step", { exact: true }).selectOption("delivered");
  assert.equal(await waiting.isVisible(), false, "it is filtered like steps");
  await page.getByLabel("Type of step", { exact: true }).selectOption("under-way");
  assert.equal(await waiting.isVisible(), true);
  await page.getByLabel("Type of step", { exact: true }).selectOption("");
  const event = await page.context().newPage();
  await event.goto(await waiting.getByRole("link", { name: "report-1" }).getAttribute("href"));
  await event.locator(".timeline .under-way").getByText("waiting for a response").waitFor();
  await inEverySize(browser, async (page, picture) => {
    await page.goto("/live");
    await waitingRow(page).waitFor();
    await judge(page, `dev-under-way-${picture}`);
    await page.goto(new URL(event.url()).pathname);
    await judge(page, `dev-event-under-way-${picture}`);
  });
  await ask("answer");
  await rows(page, "report-1").filter({ hasText: "200 OK" }).waitFor();
  assert.equal(await waiting.count(), 0, "its result takes its place");
  await event.locator(".timeline .delivered .outcome").filter({ hasText: "200 OK" }).waitFor();
  assert.equal(await event.locator(".timeline .under-way").count(), 0);
  await close();
}

const waitingRow = (page) => page.locator("#under-way").getByText("waiting for a response");

async function everyPageInEverySize(browser) {
  const pages = { home: "/", live: "/live", event: "", publish: "/publish", subscriptions: "/subscriptions", subscription: "/subscriptions/shop/orders/busy", destinations: "/destinations", "no-event": "/events/abc" };
  await inEverySize(browser, async (page, picture, bad) => {
    for (const [name, path] of Object.entries(pages)) {
      if (path) await page.goto(path);
      else await follow(page, rows(page, "order-1").first().getByRole("link").first());
      if (name === "event") await page.locator("details.exchange summary").first().click();
      if (name === "no-event") {
        // Chromium reports the status, which is 404.
        bad.length = 0;
        await follow(page, page.getByRole("link", { name: "Live", exact: true }).last());
        await page.goBack();
        bad.length = 0;
      }
      await judge(page, `dev-${name}-${picture}`);
    }
  });
}

/** A tab as a browser treats one that is not in front; Chromium without a screen shows all of them. */
const setHidden = (page, isHidden) => page.evaluate((isHidden) => {
  Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}, isHidden);

async function manyTabsAreOpenAndAHiddenOneCatchesUp(browser) {
  const { page: first, close } = await open(browser, SIZES[0], "light");
  await first.goto("/live");
  await setHidden(first, true);
  // A browser has six connections for all of them.
  for (let tabs = 0; tabs < 8; tabs += 1) {
    const tab = await first.context().newPage();
    await tab.goto("/live");
    await tab.getByRole("heading", { name: "Live" }).waitFor();
    await setHidden(tab, true);
  }
  await publish("order-hidden");
  const last = await first.context().newPage();
  await last.goto("/live");
  await rows(last, "order-hidden").filter({ hasText: "200 OK" }).waitFor();
  assert.equal(await rows(first, "order-hidden").count(), 0);
  await setHidden(first, false);
  await rows(first, "order-hidden").filter({ hasText: "200 OK" }).waitFor();
  assert.equal(await rows(first, "order-hidden").filter({ hasText: "200 OK" }).count(), 1, "no step is there twice");
  await close();
}

async function aRestartBeginsAnewAndSaysSo(browser) {
  const { page, bad, close } = await open(browser, SIZES[0], "light");
  await page.goto("/live");
  await rows(page, "order-1").first().waitFor();
  const event = await page.context().newPage();
  await event.goto(await rows(page, "order-1").first().getByRole("link").first().getAttribute("href"));
  ingress = await ask("restart");
  await page.getByText("lastmile dev was restarted. The page starts again.").waitFor();
  await rows(page, "order-1").first().waitFor({ state: "detached" });
  await publish("order-anew");
  await rows(page, "order-anew").filter({ hasText: "200 OK" }).waitFor();
  await event.getByText("lastmile dev was restarted. This event is from the previous run").waitFor();
  assert.equal(await event.locator("h1").innerText(), "order-1", "what was shown stays");
  await event.reload();
  await event.getByRole("heading", { name: "An event of an earlier run" }).waitFor();
  // Chromium reports connections that were refused meanwhile.
  bad.length = 0;
  await close();
}

async function pagesAreReadWithoutScripts(browser) {
  const { page, close } = await open(browser, SIZES[1], "light", false);
  await page.goto("/live");
  await page.locator("#text").fill("order-1");
  await follow(page, page.locator("button", { hasText: "Filter" }));
  await follow(page, page.locator("#live a.id").first());
  await follow(page, page.locator("a", { hasText: "Edit and resend" }));
  await page.locator("button", { hasText: "Publish" }).click();
  await page.locator("#accepted").waitFor();
  await close();
}

await run(
  anOpenPageFillsAndIsFiltered,
  anEventIsOpenedFollowedAndSentAgain,
  keysAloneLeadToPublishing,
  aPastedEventIsExplainedAndIsInNoAddress,
  nothingOfAnEventRuns,
  anAttemptIsSeenWhileItIsUnderWay,
  everyPageInEverySize,
  pagesAreReadWithoutScripts,
  manyTabsAreOpenAndAHiddenOneCatchesUp,
  // Last: the first run is over.
  aRestartBeginsAnewAndSaysSo,
);
// Else the program would wait for more.
answers.close();
