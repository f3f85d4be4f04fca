// browse.mjs: uses the console of a container as a person does; browser.mjs says how it is started.
// CONTAINER is the folder of the dead letters, LETTERS two ids, NEW the key and the blob of one that comes later.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { SIZES, focused, follow, inEverySize, judge, open, run, tabTo } from "./browser.mjs";

const [letter, hostile] = process.env.LETTERS.split(" ");

async function everyPageInEverySize(browser) {
  const pages = { home: "/", cause: "", letters: "/letters", letter: `/letters/${letter}`, hostile: `/letters/${hostile}`, replay: "/replay?status=5xx", jobs: "/jobs", destinations: "/destinations", subscriptions: "/subscriptions", error: "/nothing", invalid: "/letters?status=abc" };
  await inEverySize(browser, async (page, picture, bad) => {
    for (const [name, path] of Object.entries(pages)) {
      if (name === "cause") await follow(page, page.locator(".causes a.id").first());
      else await page.goto(path);
      // Chromium reports a status of 400 and more; the page is what was asked for.
      if (["error", "invalid"].includes(name)) bad.length = 0;
      await judge(page, `${name}-${picture}`);
    }
    await page.goto("/letters");
    await page.locator("summary").filter({ hasText: "More filters" }).click();
    await page.locator("summary").filter({ hasText: "table" }).click();
    await page.locator(".rows [name=id]").first().check();
    await judge(page, `opened-${picture}`);
    await page.goto(`/letters/${letter}`);
    await page.locator("summary").filter({ hasText: "curl" }).click();
    await page.keyboard.press("Shift+?");
    await judge(page, `keys-${picture}`);
  });
}

async function aPersonFiltersOpensAndReplays(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  await page.goto("/letters");
  await page.locator("summary").filter({ hasText: "More filters" }).click();
  await page.getByLabel("Subscription", { exact: true }).fill("mail");
  await follow(page, page.getByRole("button", { name: "Apply", exact: true }));
  assert.match(await page.locator("h1").innerText(), /^1 dead letter of 6$/);
  await follow(page, page.getByRole("link", { name: "order-5" }));
  assert.equal(await page.locator("h1").innerText(), "order-5");
  assert.equal(await page.locator(".timeline .attempt").count(), 2);
  await follow(page, page.getByRole("link", { name: "Replay it" }));
  await page.getByRole("heading", { name: "1 dead letter to send" }).waitFor();
  await page.getByRole("button", { name: "Send 1 dead letter" }).click();
  await page.waitForURL(/\/jobs\//);
  await page.getByText("done", { exact: true }).waitFor();
  await judge(page, "job-1280-light");
  await page.goto("/letters?state=all");
  assert.match(await page.getByRole("row", { name: /order-5/ }).innerText(), /replaying/);
  // A row is a link as a whole.
  const { x, y, width, height } = await page.getByRole("row", { name: /order-4/ }).boundingBox();
  await page.mouse.click(x + width / 2, y + height / 2);
  await page.waitForURL(/\/letters\//);
  await page.getByText("The event as a curl command").click();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByText("Copied").first().waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(copied.startsWith("curl ") && copied.includes('"id":"order-4"'), copied);
  await close();
}

async function aCauseLeadsToItsReplayAndIsDismissedWithANote(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  await page.goto("/");
  const causes = await page.locator(".causes tbody tr").count();
  assert.ok(causes > 1, `${causes} causes`);
  const cause = page.locator(".causes tbody tr").filter({ hasText: "404" }).first();
  assert.match(await cause.innerText(), /less than a second/);
  await follow(page, cause.locator("a.id"));
  assert.match(await page.locator("h1").innerText(), /^404/);
  assert.match(await page.locator("footer").innerText(), /lastmile deadletters list .*--cause/);
  await follow(page, page.getByRole("link", { name: "Replay…" }));
  await page.getByRole("heading", { name: /dead letters? to send/ }).waitFor();
  await page.goBack();
  await page.getByLabel("No action is needed, because").fill("a test");
  await follow(page, page.getByRole("button", { name: /^Dismiss/ }));
  await page.getByText("There are no open dead letters of this cause").waitFor();
  await page.goto("/");
  assert.equal(await page.locator(".causes tbody tr").count(), causes - 1);
  await close();
}

async function timesAreShownInTheZoneThatAPersonChooses(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  await page.goto(`/letters/${letter}`);
  const time = page.locator(".timeline time").first();
  const utc = await time.innerText();
  await page.getByRole("button", { name: "Show local times" }).click();
  assert.match(await page.locator("footer").innerText(), /Times are local/);
  const local = await time.innerText();
  const [moment, offset] = await time.evaluate((node) => {
    const date = new Date(node.getAttribute("datetime"));
    return [date.getTime(), date.getTimezoneOffset()];
  });
  const expected = new Date(moment - offset * 60_000).toISOString().slice(0, 19).replace("T", " ");
  assert.equal(local, expected);
  await page.getByRole("button", { name: "Show UTC" }).click();
  assert.equal(await time.innerText(), utc);
  await close();
}

async function picksLeadToTheirExactNumber(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  await page.goto("/letters?topic=orders");
  const bar = page.locator(".pick-bar");
  assert.equal(await bar.isVisible(), false);
  const box = (name) => page.getByRole("checkbox", { name });
  await box("Select order-1").check();
  await box("Select order-4").check();
  assert.match(await bar.innerText(), /2 selected/);
  await follow(page, bar.getByRole("button", { name: "Replay these 2" }));
  await page.getByRole("heading", { name: "2 dead letters to send" }).waitFor();
  await page.goBack();
  await box("Select all on this page").check();
  await follow(page, bar.getByRole("button", { name: "Replay these 6" }));
  await page.getByRole("heading", { name: "6 dead letters to send" }).waitFor();
  await page.goto("/letters?status=503");
  await box("Select order-1").check();
  await follow(page, bar.getByRole("link", { name: "Replay all 3 matching" }));
  await page.getByRole("heading", { name: "3 dead letters to send" }).waitFor();
  await close();
}

async function keysAloneLeadEverywhere(browser) {
  const { page, close } = await open(browser, SIZES[0], "dark");
  await page.goto("/letters");
  await page.keyboard.press("Tab");
  assert.equal((await focused(page)).text, "Skip to the content");
  await page.keyboard.press("Enter");
  const passed = await tabTo(page, "Replay these");
  assert.ok(!passed.includes("Replays"), "the skip link leads past the navigation");
  await tabTo(page, "More filters");
  await page.keyboard.press("Enter");
  await tabTo(page, "since");
  await page.keyboard.type("2026-11-20T09:00:00Z");
  await page.keyboard.press("Enter");
  await page.waitForURL(/since=/);
  const order = await tabTo(page, "order-4");
  const places = ["Read again", "Pause", "Replay these", "search", "Last hour", "More filters", "MaxDelivery", "Select all on this page"].map((name) => order.findIndex((text) => text.includes(name)));
  assert.ok(places.every((place, at) => place >= 0 && (at === 0 || place > places[at - 1])), `${order.join(", ")}`);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/letters\//);
  await tabTo(page, "Replay it");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/replay/);
  await tabTo(page, "Send 1 dead letter");
  await close();
}

/** Waits until the page of this dead letter is loaded: before, its script does not handle keys. */
async function shows(page, heading) {
  await page.waitForFunction((text) => document.querySelector("h1")?.innerText === text, heading);
  await page.waitForLoadState();
}

async function singleKeysLeadFromTheSearchToTheReplay(browser) {
  const { page, close } = await open(browser, SIZES[0], "light");
  const at = () => page.evaluate(() => document.activeElement.innerText);
  await page.goto("/letters");
  await page.keyboard.press("/");
  await page.keyboard.type("jkxu?/");
  assert.equal(await page.locator("#search").inputValue(), "jkxu?/", "no key does anything while somebody types");
  assert.equal(await page.locator("dialog[open], [name=id]:checked").count(), 0);
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("overloaded");
  await page.keyboard.press("Enter");
  await page.waitForURL(/search=overloaded/);
  assert.match(await page.locator("h1").innerText(), /^3 dead letters of 6$/);
  await page.keyboard.press("Control+j");
  assert.notEqual(await at(), "order-4", "keys of the browser are left alone");
  const order = [];
  for (const key of "jjjjk") {
    await page.keyboard.press(key);
    order.push(await at());
  }
  assert.deepEqual(order, ["order-4", "order-2", "order-1", "order-1", "order-2"]);
  await page.keyboard.press("x");
  assert.match(await page.locator(".pick-bar").innerText(), /1 selected/);
  await page.keyboard.press("x");
  await page.keyboard.press("Enter");
  await page.waitForURL(/letters\/.*search=overloaded/);
  assert.match(await page.locator(".steps").innerText(), /2 of 3/);
  await page.keyboard.press("j");
  await shows(page, "order-1");
  await page.keyboard.press("k");
  await shows(page, "order-2");
  await page.keyboard.press("u");
  await page.waitForURL(/\/letters\?search=overloaded/);
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  await page.getByLabel("Enable single-key shortcuts").press("Space");
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  assert.notEqual(await at(), "order-4", "the keys are switched off");
  await page.keyboard.press("?");
  await page.getByLabel("Enable single-key shortcuts").press("Space");
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/letters\//);
  await tabTo(page, "Replay it");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/replay/);
  await tabTo(page, "Send 1 dead letter");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/jobs\//);
  await page.getByText("done", { exact: true }).waitFor();
  await close();
}

/** Waits until the line about updates says this. */
const saysOfUpdates = (page, text) => page.waitForFunction((text) => document.getElementById("refresh")?.innerText.includes(text), text);

async function anUpdateKeepsFocusTextAndPlaceAndSaysWhenThereIsNone(browser) {
  const { page, bad, close } = await open(browser, { width: 1280, height: 500 }, "light");
  await page.clock.install();
  await page.goto("/letters");
  const count = Number.parseInt(await page.locator("h1").innerText(), 10) + 1;
  await saysOfUpdates(page, "updated every 30 s");
  await page.locator("summary").filter({ hasText: "More filters" }).click();
  await page.locator("#type").pressSequentially("order.");
  const row = page.getByRole("row", { name: /order-1/ });
  await row.scrollIntoViewIfNeeded();
  const [before, scroll] = [await row.boundingBox(), await page.evaluate(() => scrollY)];
  assert.ok(scroll > 0);

  await page.getByRole("checkbox", { name: "Select order-2" }).check();
  await saysOfUpdates(page, "paused while dead letters are selected");
  await page.getByRole("checkbox", { name: "Select order-2" }).uncheck();
  await page.locator("#type").focus();
  await page.evaluate((y) => scrollTo(0, y), scroll);

  const [key, blob] = JSON.parse(process.env.NEW);
  mkdirSync(dirname(join(process.env.CONTAINER, key)), { recursive: true });
  writeFileSync(join(process.env.CONTAINER, key), blob);
  // Another tab made the server read again; this one gets it at its next update.
  await page.request.get("/letters?read=again", { maxRedirects: 0 });
  await page.clock.runFor(31_000);
  const heading = `${count} dead letters`;
  await page.waitForFunction((text) => document.querySelector("h1").innerText === text, heading);
  assert.equal(await page.locator("#announced").innerText(), heading);
  assert.deepEqual(await focused(page).then(({ text }) => text), "type");
  assert.equal(await page.locator("#type").inputValue(), "order.");
  assert.equal(await page.locator(".more-filters").evaluate((details) => details.open), true);
  const after = await row.boundingBox();
  assert.ok(Math.abs(after.y - before.y) < 2, `the row moved from ${before.y} to ${after.y}`);
  assert.ok(await page.evaluate(() => scrollY) > scroll, "the new row is above");

  await page.route("**/*", (route) => route.abort());
  await page.clock.runFor(31_000);
  await saysOfUpdates(page, "failed: lastmile does not respond");
  assert.equal(await page.locator("tr[data-key]").count(), count, "what was shown stays");
  await page.unroute("**/*");
  // Chromium reports the request that was broken off.
  bad.length = 0;
  await page.getByRole("button", { name: "Try now" }).click();
  await saysOfUpdates(page, "updated every");
  await page.getByRole("button", { name: "Pause" }).click();
  await saysOfUpdates(page, "paused by you");
  await page.getByRole("button", { name: "Resume" }).click();
  await saysOfUpdates(page, "updated every");
  await page.clock.fastForward(31 * 60_000);
  await saysOfUpdates(page, "paused after 30 minutes without use");
  await close();
}

async function allWorksWithoutScripts(browser) {
  const { page, bad, close } = await open(browser, SIZES[1], "light", false);
  await page.goto("/letters");
  await follow(page, page.locator(".pick-bar button[type=submit]"));
  await page.getByRole("heading", { name: "Nothing is selected" }).waitFor();
  bad.length = 0;
  await page.goto("/letters");
  await page.getByRole("checkbox", { name: "Select order-3" }).check();
  await follow(page, page.locator(".pick-bar button[type=submit]"));
  await page.getByRole("heading", { name: "1 dead letter to send" }).waitFor();
  await page.goto("/letters?status=404");
  await follow(page, page.locator("#letters ~ form a.id").first());
  await follow(page, page.locator("a", { hasText: "Replay it" }));
  await page.locator("button", { hasText: "Send 1 dead letter" }).click();
  await page.waitForURL(/\/jobs\//);
  await page.locator(".state.good").waitFor();
  await close();
}

await run(
  everyPageInEverySize,
  timesAreShownInTheZoneThatAPersonChooses,
  // Before anything else is replayed: what was replayed is left out.
  picksLeadToTheirExactNumber,
  aPersonFiltersOpensAndReplays,
  keysAloneLeadEverywhere,
  singleKeysLeadFromTheSearchToTheReplay,
  allWorksWithoutScripts,
  anUpdateKeepsFocusTextAndPlaceAndSaysWhenThereIsNone,
  // Last: what is dismissed is in no list.
  aCauseLeadsToItsReplayAndIsDismissedWithANote,
);
