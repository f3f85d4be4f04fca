// browse.mjs <folder with node_modules> <chromium> <address> <folder for pictures>: uses the page as a person does.
// Exits with 0 when everything is right; else says what is not.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [installed, executablePath, address, pictures] = process.argv.slice(2);
const require = createRequire(`${installed}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const SIZES = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];
const SCHEMES = ["light", "dark"];
const TABS_MAX = 120;

/** A page, with a list of what must not happen: dialogs, errors, requests elsewhere. */
async function open(browser, viewport, colorScheme, javaScriptEnabled = true) {
  const context = await browser.newContext({ viewport, colorScheme, javaScriptEnabled, baseURL: address });
  const page = await context.newPage();
  const bad = [];
  page.on("dialog", (dialog) => { bad.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("pageerror", (error) => bad.push(`an error: ${error}`));
  page.on("console", (message) => message.type() === "error" && bad.push(`the console: ${message.text()}`));
  page.on("request", (request) => request.url().startsWith(address) || bad.push(`a request to ${request.url()}`));
  return { page, bad, close: async () => { assert.deepEqual(bad, []); await context.close(); } };
}

/** Checks the page: fits its width, has nothing that axe finds serious, and a picture. */
async function judge(page, name) {
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wider <= 0, `${name} is ${wider} pixels wider than the screen`);
  // The content security policy forbids other scripts, so the tool is run by the debugger.
  const found = await page.evaluate(`(() => { ${axe}; return axe.run(document, { resultTypes: ["violations"] }); })()`);
  const grave = found.violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  const serious = grave.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
  assert.deepEqual(serious, [], name);
  await page.screenshot({ path: `${pictures}/${name}.png` });
}

/** What has the focus: its name as it is read out. */
const focused = (page) => page.evaluate(() => {
  const at = document.activeElement;
  const style = getComputedStyle(at);
  const seen = at.matches(":focus-visible") && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return { text: (at.innerText || at.getAttribute("aria-label") || at.name || "").trim(), seen, tag: at.tagName };
});

/** Presses Tab until something of this name has the focus. */
async function tabTo(page, name) {
  const passed = [];
  for (let tabs = 0; tabs < TABS_MAX; tabs += 1) {
    await page.keyboard.press("Tab");
    const now = await focused(page);
    passed.push(now.text);
    assert.ok(now.seen || now.tag === "BODY", `the focus on ${now.tag} "${now.text}" cannot be seen`);
    if (now.text.includes(name)) return passed;
  }
  assert.fail(`no Tab leads to ${name}: ${passed.join(", ")}`);
}

async function everyPageInEverySize(browser, letter, hostile) {
  const pages = { overview: "/", letter: `/letters/${letter}`, hostile: `/letters/${hostile}`, replay: "/replay?status=5xx", jobs: "/jobs" };
  for (const size of SIZES) {
    for (const scheme of SCHEMES) {
      const { page, close } = await open(browser, size, scheme);
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(path);
        await judge(page, `${name}-${size.width}-${scheme}`);
      }
      await page.goto("/");
      await page.locator("summary").filter({ hasText: "Filter" }).click();
      await page.locator("summary").filter({ hasText: "table" }).click();
      await judge(page, `opened-${size.width}-${scheme}`);
      await close();
    }
  }
}

async function aPersonFiltersOpensAndReplays(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  await page.goto("/");
  await page.locator("summary").filter({ hasText: "Filter" }).click();
  await page.getByLabel("Subscription", { exact: true }).fill("mail");
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.waitForURL(/subscription=mail/);
  assert.match(await page.locator("h1").innerText(), /^1 dead letter of 6$/);
  await page.getByRole("link", { name: "order-5" }).click();
  assert.equal(await page.locator("h1").innerText(), "order-5");
  assert.equal(await page.locator(".timeline .attempt").count(), 2);
  await page.getByRole("link", { name: "Replay it" }).click();
  await page.getByRole("heading", { name: "1 dead letter would be sent" }).waitFor();
  await page.getByRole("button", { name: "Send 1 dead letter" }).click();
  await page.waitForURL(/\/jobs\//);
  await page.getByText("done", { exact: true }).waitFor();
  await judge(page, "job-1280-light");
  await page.goto("/");
  assert.match(await page.getByRole("row", { name: /order-5/ }).innerText(), /yes/);
  await close();
}

async function keysAloneLeadEverywhere(browser) {
  const { page, close } = await open(browser, SIZES[0], "dark");
  await page.goto("/");
  await page.keyboard.press("Tab");
  assert.equal((await focused(page)).text, "Skip to the content");
  await page.keyboard.press("Enter");
  const passed = await tabTo(page, "Replay these");
  assert.ok(!passed.includes("Replays"), "the skip link leads past the navigation");
  await tabTo(page, "Filter");
  await page.keyboard.press("Enter");
  await tabTo(page, "since");
  await page.keyboard.type("2026-11-20T09:00:00Z");
  await page.keyboard.press("Enter");
  await page.waitForURL(/since=/);
  const order = await tabTo(page, "order-4");
  const places = ["Read again", "Replay these", "Filter", "MaxDelivery", "shop/orders"].map((name) => order.findIndex((text) => text.includes(name)));
  assert.ok(places.every((place, at) => place >= 0 && (at === 0 || place > places[at - 1])), `${order.join(", ")}`);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/letters\//);
  await tabTo(page, "Replay it");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/replay/);
  await tabTo(page, "Send 1 dead letter");
  await close();
}

async function allWorksWithoutScripts(browser) {
  const { page, close } = await open(browser, SIZES[1], "light", false);
  await page.goto("/?status=404");
  await page.locator("#letters ~ table a.id").first().click();
  await page.locator("a", { hasText: "Replay it" }).click();
  await page.locator("button", { hasText: "Send 1 dead letter" }).click();
  await page.waitForURL(/\/jobs\//);
  await page.locator(".state.good").waitFor();
  await close();
}

const [letter, hostile] = process.env.LETTERS.split(" ");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  await everyPageInEverySize(browser, letter, hostile);
  await aPersonFiltersOpensAndReplays(browser);
  await keysAloneLeadEverywhere(browser);
  await allWorksWithoutScripts(browser);
} finally {
  await browser.close();
}
