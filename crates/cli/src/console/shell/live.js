// Keeps the live pages of `lastmile dev` up to date. Everything can be read and published without it, by reloading.
// What others wrote is only ever the text of a node, never markup.
"use strict";

const SECOND_MS = 1000;
/** How soon a stream is asked for again that the server refused. */
const REFUSED_MS = 5 * SECOND_MS;
/** How much of the ids of folded steps is kept. */
const FOLDED_MAX = 2000;
/** In place of an id: only what happens from now on. */
const NOW = "now";
const table = document.getElementById("live");
const [underWayRows, stepRows] = table?.tBodies ?? [];
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

/**
 * Listens to the server while this tab is shown: a browser has six connections for all tabs together. `last` is the id
 * that the page has already; `handlers` get what was sent, by the name of the event.
 */
function listen(last, handlers) {
  let source = null;
  const close = () => { source?.close(); source = null; };
  const open = () => {
    const opened = source = new EventSource(`/stream?after=${encodeURIComponent(last)}`);
    for (const [name, handle] of Object.entries(handlers)) {
      opened.addEventListener(name, (message) => {
        last = message.lastEventId || last;
        handle(JSON.parse(message.data));
      });
    }
    // After a broken connection the browser tries again by itself, after a refusal it does not.
    opened.addEventListener("error", () => {
      if (opened !== source || opened.readyState !== EventSource.CLOSED) return;
      close();
      setTimeout(change, REFUSED_MS);
    });
  };
  const change = () => { if (document.hidden) close(); else if (!source) open(); };
  document.addEventListener("visibilitychange", change);
  change();
}

/** Whether the server is still the one that wrote this page; says so if it is not. */
function isSameRun(run, text) {
  const restarted = document.getElementById("restarted");
  if (restarted.dataset.run === run) return true;
  restarted.dataset.run = run;
  restarted.textContent = `lastmile dev was restarted. ${text}`;
  restarted.hidden = false;
  return false;
}

/** Counts what is under way, and down to each time that is due; the verb is the first word that the server wrote. */
function countDown() {
  for (const node of document.querySelectorAll("[data-since]")) {
    const text = `for ${duration(Math.max(SECOND_MS, Date.now() - Number(node.dataset.since)))}`;
    if (node.textContent !== text) node.textContent = text;
  }
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
  row.dataset.fold = step.fold;
  row.dataset.repeats = 1;
  row.dataset.folded = "";
  fill(".time", step.time);
  fill(".id", step.id || (step.event ? "event" : ""));
  if (step.event) row.querySelector(".id").href = `/events/${encodeURIComponent(step.event)}`;
  fill(".type", step.kind);
  fill(".name", step.name);
  fill(".destination", step.destination);
  fill(".what", step.what);
  row.querySelector(".outcome").className = `outcome ${step.class}`;
  fill(".outcome b", step.outcome);
  fill(".detail", step.detail);
  if (step.since) row.querySelector(".detail").dataset.since = step.since;
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
  for (const row of stepRows.rows) {
    const due = row.dataset.delivery === delivery && row.querySelector(".due[data-due]");
    if (due) {
      delete due.dataset.due;
      due.textContent = "";
    }
  }
}

/** A step that says the same as the newest one takes its row over. */
function foldInto(row, newest) {
  if (!row.dataset.fold || newest?.dataset.fold !== row.dataset.fold) return;
  const id = newest.querySelector(".id").textContent;
  row.dataset.repeats = Number(newest.dataset.repeats) + 1;
  row.dataset.folded = `${id} ${newest.dataset.folded}`.slice(0, FOLDED_MAX);
  row.querySelector(".repeats").textContent = `× ${row.dataset.repeats}`;
  newest.remove();
}

function live() {
  const most = Number(table.dataset.max);
  const [text, subscription, outcome] = ["text", "subscription", "outcome"].map((id) => document.getElementById(id));
  const pause = document.getElementById("pause");
  const filter = document.getElementById("filter");
  const held = [];
  /** The attempts under way, by their numbers, oldest first. */
  const underWay = new Map();
  let lost = 0;

  const isWanted = (row) => {
    const cells = [...row.cells].slice(1).map((cell) => cell.textContent);
    const searched = [...cells, row.dataset.folded].join("\n").toLowerCase();
    return (!subscription.value || row.dataset.name === subscription.value)
      && (!outcome.value || row.dataset.group === outcome.value)
      && searched.includes(text.value.trim().toLowerCase());
  };
  const applyFilter = () => {
    for (const row of [...underWayRows.rows, ...stepRows.rows]) row.hidden = !isWanted(row);
    document.getElementById("empty").hidden = underWayRows.rows.length + stepRows.rows.length > 0;
  };
  const know = (name) => {
    const isSubscription = name.split("/").length === 3;
    if (!isSubscription || [...subscription.options].some((option) => option.value === name)) return;
    subscription.add(new Option(name, name));
  };
  const addTo = (rows, step) => {
    endWaits(step.delivery);
    const row = rowOf(step);
    if (rows === stepRows) foldInto(row, rows.rows[0]);
    know(step.name);
    row.hidden = !isWanted(row);
    rows.prepend(row);
    document.getElementById("empty").hidden = true;
  };
  const add = (step) => {
    addTo(stepRows, step);
    while (stepRows.rows.length > most) stepRows.deleteRow(-1);
  };
  const begin = (step) => {
    underWay.set(step.number, step);
    if (!isPaused()) addTo(underWayRows, step);
    countDown();
  };
  const end = (number) => {
    underWay.delete(number);
    if (!isPaused()) underWayRows.querySelector(`[data-number="${Number(number)}"]`)?.remove();
  };
  const sayLost = (count) => {
    lost += count;
    const node = document.getElementById("lost");
    node.textContent = `${lost} steps were dropped before they were shown.`;
    node.hidden = false;
  };
  const isPaused = () => pause.getAttribute("aria-pressed") === "true";
  const sayPaused = () => { pause.textContent = isPaused() ? `Paused, ${held.length} new` : "Pause"; };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    pause.setAttribute("aria-pressed", String(pause.getAttribute("aria-pressed") !== "true"));
    if (!isPaused()) {
      held.splice(0).forEach(add);
      underWayRows.replaceChildren();
      underWay.forEach((step) => addTo(underWayRows, step));
      countDown();
    }
    sayPaused();
  });
  for (const field of [text, subscription, outcome]) field.addEventListener("input", applyFilter);
  filter.addEventListener("submit", (submitted) => { submitted.preventDefault(); applyFilter(); });

  listen(table.dataset.last, {
    run: (run) => {
      // Each connection begins with all that is under way.
      underWay.clear();
      if (!isPaused()) underWayRows.replaceChildren();
      if (isSameRun(run, "The page starts again.")) return;
      held.length = 0;
      lost = 0;
      document.getElementById("lost").hidden = true;
      underWayRows.replaceChildren();
      stepRows.replaceChildren();
      sayPaused();
      applyFilter();
    },
    step: (step) => {
      if (!isPaused()) return add(step);
      held.push(step);
      // What is older than the page has rows for would not be shown anyway.
      if (held.length > most) held.shift();
      sayPaused();
    },
    begun: begin,
    ended: end,
    unlisted: (count) => {
      const node = document.getElementById("unlisted");
      node.firstElementChild.textContent = count;
      node.hidden = count === 0;
    },
    lost: sayLost,
    problem: showProblem,
  });
}

/** Reads the page of an event again when something has happened to it; what is open stays open. */
function follow() {
  let asked = false;
  const refresh = async () => {
    asked = false;
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    // After a restart there is no such event: what was shown stays.
    if (!response.ok) return;
    const next = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("main");
    const now = document.getElementById("main");
    for (const details of now.querySelectorAll("details[open][data-key]")) {
      const same = next.querySelector(`details[data-key="${CSS.escape(details.dataset.key)}"]`);
      if (same) same.open = true;
    }
    const focused = document.activeElement?.closest("details[data-key]")?.dataset.key;
    const hadFocus = now.contains(document.activeElement);
    now.replaceWith(document.adoptNode(next));
    // The other script has it: what was read is in UTC.
    showZone();
    const summary = focused && document.querySelector(`details[data-key="${CSS.escape(focused)}"] > summary`);
    if (hadFocus) (summary || next).focus({ preventScroll: true });
    countDown();
  };
  const isAbout = (step) => {
    if (step.event !== event.dataset.event || asked) return;
    asked = true;
    setTimeout(() => refresh().catch(() => { asked = false; }), 200);
  };
  listen(event.dataset.last, {
    run: (run) => isSameRun(run, "This event is from the previous run and is no longer updated."),
    step: isAbout,
    begun: isAbout,
    problem: showProblem,
  });
}

if (table) live();
else if (event) follow();
else listen(NOW, { run: (run) => isSameRun(run, "Reload this page."), problem: showProblem });
countDown();
setInterval(countDown, SECOND_MS);
