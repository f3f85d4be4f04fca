// What the page does by itself: it looks for something new, picks dead letters, copies, and understands keys. Everything
// works without it: there are links and forms for all of it.
//
// An update changes only what is different, so the focus, the place on the screen, picked boxes and typed text stay. It
// waits while it would get in the way, and says so: nobody has to guess how old a page is.
"use strict";

/** How long nobody uses a page until it no longer costs storage requests. */
const IDLE_MS = 30 * 60 * 1000;
/** How often a waiting update looks whether it may go on. */
const WAIT_MS = 1000;
/** How soon a failed update is tried again, on pages that do not say. */
const RETRY_MS = 5000;

const main = () => document.getElementById("main");
const boxes = () => [...document.querySelectorAll(".pick input[name=id]")];
const picked = () => boxes().filter((box) => box.checked);
const announce = (text) => { document.getElementById("announced").textContent = text; };
const clockTime = () => `${new Date().toISOString().slice(11, 19)} UTC`;

// Updates

const update = { isPaused: false, usedMs: Date.now(), failure: "", timer: 0, dueMs: 0 };

/** Why an update waits; nothing if it need not. */
function waitsFor() {
  if (!main().dataset.periodMs) return getSelection().isCollapsed ? "" : "while text is selected";
  if (update.isPaused) return "by you";
  if (picked().length > 0) return "while dead letters are selected";
  if (!getSelection().isCollapsed) return "while text is selected";
  if (document.querySelector("dialog[open]")) return "while the keyboard shortcuts are open";
  if (document.hidden) return "while this tab is in the background";
  if (Date.now() - update.usedMs > IDLE_MS) return "after 30 minutes without use";
  return "";
}

/** Says when something new is looked for, or why not. */
function showUpdates() {
  let line = document.getElementById("refresh");
  if (!line && update.failure) {
    line = document.createElement("p");
    line.id = "refresh";
    main().prepend(line);
  }
  if (!line) return;
  if (!line.firstChild) {
    const [text, button] = [document.createElement("span"), document.createElement("button")];
    button.type = "button";
    button.className = "link";
    button.addEventListener("click", () => {
      const goesOn = button.textContent !== "Pause";
      update.isPaused = !goesOn;
      update.usedMs = Date.now();
      if (goesOn) refresh(); else showUpdates();
    });
    line.append(text, " ", button);
  }
  const [text, button] = [line.querySelector("span"), line.querySelector("button")];
  const period = Number(main().dataset.periodMs) / 1000;
  const wait = waitsFor();
  const usual = period ? ` · updated every ${period} s` : "";
  const said = update.failure || (wait ? ` · updates are paused ${wait}` : usual);
  if (text.textContent !== said) text.textContent = said;
  line.className = update.failure ? "notice" : wait ? "waits" : "";
  button.textContent = update.failure ? "Try now" : wait ? "Resume" : "Pause";
  // What is picked or selected ends the pause itself.
  button.hidden = !update.failure && (!period || (wait !== "" && wait !== "by you"));
}

/** Looks for something new, now. */
async function refresh() {
  clearTimeout(update.timer);
  try {
    let response;
    try {
      response = await fetch(location.href, { headers: { accept: "text/html" } });
    } catch {
      throw new Error("lastmile does not respond");
    }
    const next = new DOMParser().parseFromString(await response.text(), "text/html");
    if (!response.ok) throw new Error(next.querySelector("h1")?.textContent ?? `status ${response.status}`);
    // Somebody may have begun to select meanwhile.
    if (!waitsFor()) show(next);
    update.failure = "";
  } catch (error) {
    update.failure = ` The update at ${clockTime()} failed: ${error.message}. The page shows older data.`;
    announce(update.failure);
  }
  schedule();
}

/** Changes the page into its new version. */
function show(next) {
  const [now, then] = [main(), next.getElementById("main")];
  const status = then.dataset.status;
  const row = document.querySelector("tr[data-key]:focus-within")
    ?? [...document.querySelectorAll("tr[data-key]")].find((row) => row.getBoundingClientRect().top >= 0);
  const before = row?.getBoundingClientRect().top;
  if (status !== now.dataset.status) announce(status);
  document.title = next.title;
  if (!update.failure && document.getElementById("refresh")?.tagName === "P") document.getElementById("refresh").remove();
  const hadFocus = now.contains(document.activeElement);
  morph(now, then);
  enhance();
  // The focused element may be gone: without this the focus is at the top again.
  if (hadFocus && !now.contains(document.activeElement)) now.focus({ preventScroll: true });
  // New rows above move what a person looks at; at the top of the page they are to be seen.
  if (row?.isConnected && scrollY > 0) scrollBy(0, row.getBoundingClientRect().top - before);
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("id") ?? node.dataset.key ?? "" : "");
const isSame = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

/** Makes a node like another one, and keeps of it what is the same. What people typed or opened stays. */
function morph(now, then) {
  if (now.nodeType !== Node.ELEMENT_NODE) {
    if (now.data !== then.data) now.data = then.data;
    return;
  }
  if (now.hasAttribute("data-keep")) return;
  const isKept = (name) => name === "open" || (name === "hidden" && now.hasAttribute("data-script"));
  for (const { name } of [...now.attributes]) if (!then.hasAttribute(name) && !isKept(name)) now.removeAttribute(name);
  for (const { name, value } of then.attributes) {
    if (now.getAttribute(name) !== value && !isKept(name)) now.setAttribute(name, value);
  }
  const wanted = new Set([...then.childNodes].map(keyOf));
  for (const child of [...now.childNodes]) if (keyOf(child) && !wanted.has(keyOf(child))) child.remove();
  let at = now.firstChild;
  for (const child of [...then.childNodes]) {
    let found = at;
    while (found && !isSame(found, child)) found = keyOf(child) ? found.nextSibling : null;
    if (!found) {
      const added = document.adoptNode(child);
      now.insertBefore(added, at);
      if (added.matches?.("tr[data-key]")) added.classList.add("fresh");
    } else {
      if (found !== at) now.insertBefore(found, at);
      else at = at.nextSibling;
      morph(found, child);
    }
  }
  while (at) {
    const after = at.nextSibling;
    at.remove();
    at = after;
  }
}

/** Plans the next update: when the page says, or when what it waits for may be over. */
function schedule() {
  clearTimeout(update.timer);
  const ms = Number(main().dataset.refreshMs);
  showUpdates();
  if (!(ms > 0)) return;
  update.dueMs = Date.now() + (update.failure ? Number(main().dataset.periodMs) || RETRY_MS : ms);
  update.timer = setTimeout(due, update.dueMs - Date.now());
}

function due() {
  showUpdates();
  if (waitsFor()) update.timer = setTimeout(due, WAIT_MS);
  else refresh();
}

for (const kind of ["keydown", "pointerdown", "scroll"]) {
  addEventListener(kind, () => { update.usedMs = Date.now(); }, { passive: true });
}
addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  update.usedMs = Date.now();
  if (update.dueMs > 0 && Date.now() >= update.dueMs && !waitsFor()) refresh();
});
document.addEventListener("selectionchange", showUpdates);

// Picking

function showPicked() {
  const [bar, all] = [document.querySelector(".pick-bar"), document.querySelector("[data-pick-all]")];
  if (!bar) return;
  const [count, shown] = [picked().length, boxes().length];
  bar.dataset.count = count;
  const said = count === 0 ? "" : `${count} selected`;
  const text = bar.querySelector(".picked");
  if (text.textContent !== said) text.textContent = said;
  bar.querySelector("button[type=submit]").textContent = count === 1 ? "Replay it…" : `Replay these ${count}…`;
  const whole = bar.querySelector("[data-pick-page]");
  if (whole) whole.hidden = count === shown;
  all.checked = count === shown && shown > 0;
  all.indeterminate = count > 0 && count < shown;
}

function pick(isPicked) {
  for (const box of boxes()) box.checked = isPicked;
  showPicked();
  showUpdates();
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-pick-all]")) pick(event.target.checked);
  else if (event.target.matches(".pick input[name=id]")) { showPicked(); showUpdates(); }
  else if (event.target.matches("[data-use-keys]")) localStorage.setItem("keys", event.target.checked ? "on" : "off");
});

// Buttons

async function copy(button) {
  const text = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
    announce("Copied");
  } catch {
    // Not allowed, or not possible: selected, so that the keys of the system copy it.
    getSelection().selectAllChildren(text);
    button.textContent = "Selected; copy with the keyboard";
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.copy) copy(button);
  else if (button.matches("[data-pick-page]")) pick(true);
  else if (button.matches("[data-pick-none]")) pick(false);
  else if (button.matches("[data-switch-zone]")) {
    localStorage.setItem("zone", usesLocal() ? "utc" : "local");
    showZone();
  } else if (button.matches("[data-show-keys]")) document.getElementById("keys").showModal();
  else if (button.matches("[data-close-keys]")) document.getElementById("keys").close();
});

// Times

const usesLocal = () => localStorage.getItem("zone") === "local";
const two = (number) => String(number).padStart(2, "0");

/** A moment in the zone of this machine, as the server writes it in UTC: `2026-11-20 07:03:00`. */
function localTime(date, text) {
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  // A time without a day stays one.
  return text.includes("-") ? `${day} ${time}` : time;
}

/** Shows all times in the zone that was chosen; an age keeps its text, and its title has the time. */
function showZone() {
  for (const node of document.querySelectorAll("time[datetime]")) {
    const utc = node.dataset.utc ??= node.textContent;
    const isAge = !/^[\d: -]+$/.test(utc);
    const date = new Date(node.getAttribute("datetime"));
    const local = localTime(date, isAge ? "-" : utc);
    const shown = usesLocal() && !isAge ? local : utc;
    if (node.textContent !== shown) node.textContent = shown;
    node.title = `${date.toISOString().replace("T", " ").slice(0, 19)} UTC, ${local} here`;
  }
  document.querySelector("[data-zone]").textContent = usesLocal() ? "local" : "UTC";
  document.querySelector("[data-switch-zone]").textContent = usesLocal() ? "Show UTC" : "Show local times";
}

// Keys

/** Goes to the next or the previous dead letter: of the list, or of the page of one. */
function move(step) {
  const step_link = document.querySelector(`.steps a[rel=${step > 0 ? "next" : "prev"}]`);
  if (document.querySelector(".steps")) {
    step_link?.click();
    return;
  }
  const links = [...document.querySelectorAll(".rows a.id")];
  const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
  const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1)];
  next?.focus();
  next?.closest("tr").scrollIntoView({ block: "nearest" });
}

const KEYS = {
  "/": () => { const box = document.getElementById("search"); box?.focus(); box?.select(); },
  "j": () => move(1),
  "k": () => move(-1),
  "x": () => document.activeElement.closest(".rows tr")?.querySelector("input[name=id]")?.click(),
  "u": () => document.querySelector(".crumbs a")?.click(),
  "?": () => document.getElementById("keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  const isCommand = event.ctrlKey || event.metaKey || event.altKey || event.isComposing;
  if (isTyping || isCommand || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (localStorage.getItem("keys") === "off" && event.key !== "?") return;
  if (!Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

// Begin

/** Shows what works with scripts only. */
function enhance() {
  for (const element of document.querySelectorAll("[data-script], [data-copy]")) element.hidden = false;
  showPicked();
  showZone();
}

document.documentElement.classList.add("scripts");
document.querySelector("[data-use-keys]").checked = localStorage.getItem("keys") !== "off";
enhance();
schedule();
// A browser restores picked boxes after "back", and that later than this.
addEventListener("pageshow", () => { showPicked(); showUpdates(); });
