// Refreshes the content while something is under way, without reloading the page. Everything works
// without it: then the browser reloads the page.
"use strict";

const main = () => document.getElementById("main");

async function refresh() {
  const response = await fetch(location.href, { headers: { accept: "text/html" } });
  const next = new DOMParser().parseFromString(await response.text(), "text/html");
  const [now, then] = [main(), next.getElementById("main")];
  const hadFocus = now.contains(document.activeElement);
  const status = then.dataset.status;
  if (status !== now.dataset.status) document.getElementById("status").textContent = status;
  document.title = next.title;
  now.replaceWith(document.adoptNode(then));
  // The focused element is gone with the old content: without this the focus is at the top again.
  if (hadFocus) main().focus({ preventScroll: true });
}

function schedule() {
  const ms = Number(main().dataset.refreshMs);
  if (ms > 0) setTimeout(() => refresh().catch(() => {}).finally(schedule), ms);
}

schedule();
