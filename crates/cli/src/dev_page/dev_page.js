// Keeps the pages of `lastmile dev` up to date. Everything can be read and published without it, by reloading.
// What others wrote is only ever the text of a node, never markup.
"use strict";

const SECOND_MS = 1000;
const table = document.getElementById("live");
const event = document.getElementById("event");

/** 65000 as "1 min 5 s". */
function duration(ms) {
  const seconds = Math.ceil(ms / SECOND_MS);
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = units.findIndex(([size]) => seconds >= size);
  if (first < 0) return "0 s";
  let rest = seconds;
  const parts = [];
  for (const [size, name] of units.slice(first, first + 2)) {
    if (rest >= size) parts.push(`${Math.floor(rest / size)} ${name}`);
    rest %= size;
  }
  return parts.join(" ");
}

/** Counts down to each time that is due; the verb is the first word that the server wrote. */
function countDown() {
  for (const node of document.querySelectorAll("[data-due]")) {
    const verb = node.dataset.verb ??= node.textContent.split(" ")[0];
    const left = Number(node.dataset.due) - Date.now();
    const text = left > 0 ? `${verb} in ${duration(left)}` : `${verb} is due`;
    if (node.textContent !== text) node.textContent = text;
  }
}

function showProblem(text) {
  const problem = document.getElementById("problem");
  problem.firstElementChild.textContent = text;
  problem.hidden = text === "";
}

/** A link leads only to a page of this machine, whatever it says. */
function link(node, address) {
  const url = address ? new URL(address, location.href) : null;
  const isHere = url && url.protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname);
  if (isHere) node.href = url.href;
  return isHere;
}

/** The row of a step: the template of the page, filled. */
function rowOf(step) {
  const row = document.getElementById("row").content.firstElementChild.cloneNode(true);
  const fill = (name, text) => { row.querySelector(name).textContent = text; };
  row.dataset.number = step.number;
  row.dataset.delivery = step.delivery;
  row.dataset.name = step.name;
  row.dataset.group = step.group;
  fill(".time", step.time);
  fill(".id", step.id || (step.event ? "event" : ""));
  if (step.event) row.querySelector(".id").href = `/events/${Number(step.event)}`;
  fill(".type", step.kind);
  fill(".name", step.name);
  fill(".destination", step.destination);
  fill(".what", step.what);
  row.querySelector(".outcome").className = `outcome ${step.class}`;
  fill(".outcome b", step.outcome);
  fill(".detail", step.detail);
  fill(".took", step.took);
  fill(".due", step.next);
  if (step.due) row.querySelector(".due").dataset.due = step.due;
  const letter = row.querySelector(".letter");
  letter.hidden = !link(letter, step.letter);
  return row;
}

/** A wait ends when something happens to the delivery. */
function endWaits(delivery) {
  if (!delivery) return;
  for (const row of table.tBodies[0].rows) {
    const due = row.dataset.delivery === delivery && row.querySelector(".due[data-due]");
    if (due) {
      delete due.dataset.due;
      due.textContent = "";
    }
  }
}

function live() {
  const body = table.tBodies[0];
  const most = Number(table.dataset.max);
  const [text, subscription, outcome] = ["text", "subscription", "outcome"].map((id) => document.getElementById(id));
  const pause = document.getElementById("pause");
  const filter = document.getElementById("filter");
  const held = [];
  let lost = 0;

  const isWanted = (row) => {
    const searched = [...row.cells].slice(1).map((cell) => cell.textContent).join("\n").toLowerCase();
    return (!subscription.value || row.dataset.name === subscription.value)
      && (!outcome.value || row.dataset.group === outcome.value)
      && searched.includes(text.value.trim().toLowerCase());
  };
  const applyFilter = () => {
    for (const row of body.rows) row.hidden = !isWanted(row);
    document.getElementById("empty").hidden = body.rows.length > 0;
  };
  const know = (name) => {
    const isSubscription = name.split("/").length === 3;
    if (!isSubscription || [...subscription.options].some((option) => option.value === name)) return;
    subscription.add(new Option(name, name));
  };
  const add = (step) => {
    endWaits(step.delivery);
    const row = rowOf(step);
    know(step.name);
    row.hidden = !isWanted(row);
    body.prepend(row);
    while (body.rows.length > most) body.deleteRow(-1);
    document.getElementById("empty").hidden = true;
  };
  const sayLost = (count) => {
    lost += count;
    const node = document.getElementById("lost");
    node.textContent = `${lost} steps were dropped before they could be shown.`;
    node.hidden = false;
  };
  const sayPaused = () => {
    const isPaused = pause.getAttribute("aria-pressed") === "true";
    pause.textContent = isPaused ? `Paused, ${held.length} new` : "Pause";
    return isPaused;
  };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    pause.setAttribute("aria-pressed", String(pause.getAttribute("aria-pressed") !== "true"));
    if (!sayPaused()) held.splice(0).forEach(add);
    sayPaused();
  });
  for (const field of [text, subscription, outcome]) field.addEventListener("input", applyFilter);
  filter.addEventListener("submit", (submitted) => { submitted.preventDefault(); applyFilter(); });

  const source = new EventSource(`/stream?after=${Number(table.dataset.last)}`);
  source.addEventListener("step", (message) => {
    const step = JSON.parse(message.data);
    if (pause.getAttribute("aria-pressed") !== "true") return add(step);
    held.push(step);
    // What is older than the page has rows for would not be shown anyway.
    if (held.length > most) held.shift();
    sayPaused();
  });
  source.addEventListener("lost", (message) => sayLost(Number(message.data)));
  source.addEventListener("problem", (message) => showProblem(JSON.parse(message.data)));
}

/** Reads the page of an event again when something has happened to it; what is open stays open. */
function follow() {
  let asked = false;
  const refresh = async () => {
    asked = false;
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    const next = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("main");
    const now = document.getElementById("main");
    for (const details of now.querySelectorAll("details[open][data-key]")) {
      const same = next.querySelector(`details[data-key="${CSS.escape(details.dataset.key)}"]`);
      if (same) same.open = true;
    }
    const focused = document.activeElement?.closest("details[data-key]")?.dataset.key;
    const hadFocus = now.contains(document.activeElement);
    now.replaceWith(document.adoptNode(next));
    const summary = focused && document.querySelector(`details[data-key="${CSS.escape(focused)}"] > summary`);
    if (hadFocus) (summary || next).focus({ preventScroll: true });
    countDown();
  };
  const number = Number(event.dataset.event);
  const source = new EventSource(`/stream?after=${Number.MAX_SAFE_INTEGER}`);
  source.addEventListener("step", (message) => {
    if (JSON.parse(message.data).event !== number || asked) return;
    asked = true;
    setTimeout(() => refresh().catch(() => {}), 200);
  });
  source.addEventListener("problem", (message) => showProblem(JSON.parse(message.data)));
}

function watchProblems() {
  const source = new EventSource(`/stream?after=${Number.MAX_SAFE_INTEGER}`);
  source.addEventListener("problem", (message) => showProblem(JSON.parse(message.data)));
}

if (table) live();
else if (event) follow();
else watchProblems();
countDown();
setInterval(countDown, SECOND_MS);
