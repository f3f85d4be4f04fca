// dev.mjs <folder with node_modules> <chromium> <address> <folder for pictures>: uses the page of dev as a person does.
// The environment has INGRESS, the address of the topic. Exits with 0 when everything is right; else says what is not.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [installed, executablePath, address, pictures] = process.argv.slice(2);
const require = createRequire(`${installed}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const SIZES = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];
const TABS_MAX = 60;

/** A page, with a list of what must not happen: dialogs, errors, requests elsewhere. */
async function open(browser, viewport, colorScheme, javaScriptEnabled = true) {
  const context = await browser.newContext({ viewport, colorScheme, javaScriptEnabled, baseURL: address });
  const page = await context.newPage();
  const bad = [];
  page.on("dialog", (dialog) => { bad.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("pageerror", (error) => bad.push(`an error: ${error}`));
  page.on("console", (message) => message.type() === "error" && bad.push(`the console: ${message.text()}`));
  page.on("request", (request) => request.url().startsWith(address) || bad.push(`a request to ${request.url()}`));
  return { page, close: async () => { assert.deepEqual(bad, []); await context.close(); } };
}

/** Checks the page: fits its width, has nothing that axe finds serious, and a picture. */
async function judge(page, name) {
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wider <= 0, `${name} is ${wider} pixels wider than the screen`);
  const found = await page.evaluate(`(() => { ${axe}; return axe.run(document, { resultTypes: ["violations"] }); })()`);
  const grave = found.violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  const serious = grave.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
  assert.deepEqual(serious, [], name);
  await page.screenshot({ path: `${pictures}/${name}.png` });
}

async function publish(id, type = "order.created") {
  const body = JSON.stringify({ specversion: "1.0", id, source: "shop/checkout", type, data: { total: "42.00" } });
  const headers = { "content-type": "application/cloudevents+json" };
  const answer = await fetch(process.env.INGRESS, { method: "POST", headers, body });
  assert.equal(answer.status, 202, await answer.text());
}

/** The rows that can be seen of an event. */
const rows = (page, id) => page.locator("#live tbody tr:visible").filter({ hasText: id });

async function anOpenPageFillsAndIsFiltered(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  await page.goto("/");
  await page.getByText("Nothing yet").waitFor({ state: "hidden" }).catch(() => {});
  await publish("order-1");
  const delivered = rows(page, "order-1").filter({ hasText: "shop/orders/good" });
  await delivered.getByText("200 OK").waitFor();
  const failed = rows(page, "order-1").filter({ hasText: "shop/orders/busy" });
  await failed.getByText("503 Service Unavailable").first().waitFor();
  assert.match(await failed.first().locator(".next").innerText(), /retry (in|is due)/);
  await page.getByLabel("What happened", { exact: true }).selectOption("delivered");
  assert.equal(await rows(page, "order-1").count(), 1);
  await page.getByLabel("Text").fill("no such thing");
  assert.equal(await rows(page, "order-1").count(), 0);
  await page.getByLabel("Text").fill("ORDER-1");
  assert.equal(await rows(page, "order-1").count(), 1);
  await page.getByLabel("What happened", { exact: true }).selectOption("");
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
  await page.goto("/");
  await rows(page, "order-1").first().getByRole("link", { name: "order-1" }).click();
  assert.equal(await page.locator("h1").innerText(), "order-1");
  const delivered = page.locator("section").filter({ has: page.getByRole("heading", { name: "shop/orders/good" }) });
  await delivered.locator("details summary").click();
  await delivered.getByText("application/cloudevents+json").waitFor();
  await page.getByRole("link", { name: "Edit and resend" }).click();
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
  for (let tabs = 0; ; tabs += 1) {
    assert.ok(tabs < TABS_MAX, "no Tab leads to the button");
    await page.keyboard.press("Tab");
    const [text, seen] = await page.evaluate(() => {
      const style = getComputedStyle(document.activeElement);
      const { tagName, innerText } = document.activeElement;
      return [`${tagName} ${innerText}`, tagName === "BODY" || style.outlineStyle !== "none"];
    });
    assert.ok(seen, `the focus on ${text} cannot be seen`);
    if (text === "BUTTON Publish") break;
  }
  await page.keyboard.press("Enter");
  await page.getByText("Accepted: 1 event").waitFor();
  await close();
}

async function nothingOfAnEventRuns(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  await page.goto("/");
  await publish("<img src=x onerror=alert(1)>", "'\"><script>alert(2)</script>");
  await rows(page, "<img src=x").filter({ hasText: "200 OK" }).waitFor();
  await rows(page, "<img src=x").first().getByRole("link").first().click();
  assert.equal(await page.locator("h1").innerText(), "<img src=x onerror=alert(1)>");
  await close();
}

async function everyPageInEverySize(browser) {
  const pages = { live: "/", event: "/events/1", publish: "/publish", subscriptions: "/subscriptions", destinations: "/destinations" };
  for (const size of SIZES) {
    for (const scheme of ["light", "dark"]) {
      const { page, close } = await open(browser, size, scheme);
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(path);
        if (name === "event") await page.locator("details.exchange summary").first().click();
        await judge(page, `dev-${name}-${size.width}-${scheme}`);
      }
      await close();
    }
  }
}

async function pagesAreReadWithoutScripts(browser) {
  const { page, close } = await open(browser, SIZES[1], "light", false);
  await page.goto("/");
  await page.locator("#text").fill("order-1");
  await page.locator("button", { hasText: "Filter" }).click();
  await page.waitForURL(/text=order-1/);
  await page.locator("#live a.id").first().click();
  await page.locator("a", { hasText: "Edit and resend" }).click();
  await page.locator("button", { hasText: "Publish" }).click();
  await page.locator("#accepted").waitFor();
  await close();
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  await anOpenPageFillsAndIsFiltered(browser);
  await anEventIsOpenedFollowedAndSentAgain(browser);
  await keysAloneLeadToPublishing(browser);
  await nothingOfAnEventRuns(browser);
  await everyPageInEverySize(browser);
  await pagesAreReadWithoutScripts(browser);
} finally {
  await browser.close();
}
