// What the tests of the pages share. Each is started as <test>.mjs <folder with node_modules> <chromium> <address>
// <folder for pictures>, and exits with 0 when everything is right; else it says what is not.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [installed, executablePath, address, pictures] = process.argv.slice(2);
const require = createRequire(`${installed}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const SIZES = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];
export const SCHEMES = ["light", "dark"];
const TABS_MAX = 120;
/** More than anything here takes. */
const TIMEOUT_MS = 60_000;

/** A page, with a list of what must not happen: dialogs, errors, requests elsewhere. */
export async function open(browser, viewport, colorScheme, javaScriptEnabled = true) {
  const context = await browser.newContext({ viewport, colorScheme, javaScriptEnabled, baseURL: address });
  context.setDefaultTimeout(TIMEOUT_MS);
  const bad = [];
  context.on("page", (page) => {
    page.on("dialog", (dialog) => { bad.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
    page.on("pageerror", (error) => bad.push(`an error: ${error}`));
    page.on("console", (message) => message.type() === "error" && bad.push(`the console: ${message.text()}`));
    page.on("request", (request) => request.url().startsWith(address) || bad.push(`a request to ${request.url()}`));
  });
  const page = await context.newPage();
  return { page, bad, close: async () => { assert.deepEqual(bad, []); await context.close(); } };
}

/** Checks the page: fits its width, has nothing that axe finds, and a picture. */
export async function judge(page, name) {
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wider <= 0, `${name} is ${wider} pixels wider than the screen`);
  // The content security policy forbids other scripts, so the tool is run by the debugger.
  const found = await page.evaluate(`(() => { ${axe}; return axe.run(document, { resultTypes: ["violations"] }); })()`);
  const findings = found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
  assert.deepEqual(findings, [], name);
  await page.screenshot({ path: `${pictures}/${name}.png` });
}

/** Clicks what leads to another page, and waits until that page is loaded. A click alone does not wait. */
export async function follow(page, link) {
  await Promise.all([page.waitForEvent("load"), link.click()]);
}

/** What has the focus: its name as it is read out. */
export const focused = (page) => page.evaluate(() => {
  const at = document.activeElement;
  // The link of a row is outlined around the whole row.
  const isOutlined = (style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const seen = at.matches(":focus-visible") && [null, "::after"].some((part) => isOutlined(getComputedStyle(at, part)));
  return { text: (at.innerText || at.getAttribute("aria-label") || at.name || "").trim(), seen, tag: at.tagName };
});

/** Presses Tab until something of this name, and of this element if one is named, has the focus. */
export async function tabTo(page, name, tag = "") {
  const passed = [];
  for (let tabs = 0; tabs < TABS_MAX; tabs += 1) {
    await page.keyboard.press("Tab");
    const now = await focused(page);
    passed.push(now.text);
    assert.ok(now.seen || now.tag === "BODY", `the focus on ${now.tag} "${now.text}" cannot be seen`);
    if (now.text.includes(name) && (!tag || now.tag === tag)) return passed;
  }
  assert.fail(`no Tab leads to ${name}: ${passed.join(", ")}`);
}

/** Does this in every size, light and dark, each in a page of its own. */
export async function inEverySize(browser, look) {
  for (const size of SIZES) {
    for (const scheme of SCHEMES) {
      const { page, bad, close } = await open(browser, size, scheme);
      await look(page, `${size.width}-${scheme}`, bad);
      await close();
    }
  }
}

/** Runs the tests one after the other in one browser. */
export async function run(...tests) {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  try {
    for (const test of tests) await test(browser);
  } finally {
    await browser.close();
  }
}
