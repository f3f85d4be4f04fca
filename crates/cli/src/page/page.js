// Shows what goes on without loading the page again. Everything works without it: then the page loads itself anew.
"use strict";

const main = () => document.getElementById("main");

async function look() {
  const response = await fetch(location.href, { headers: { accept: "text/html" } });
  const next = new DOMParser().parseFromString(await response.text(), "text/html");
  const [now, then] = [main(), next.getElementById("main")];
  const held = now.contains(document.activeElement);
  const status = then.dataset.status;
  if (status !== now.dataset.status) document.getElementById("status").textContent = status;
  document.title = next.title;
  now.replaceWith(document.adoptNode(then));
  if (held) main().focus({ preventScroll: true });
}

function wait() {
  const ms = Number(main().dataset.againMs);
  if (ms > 0) setTimeout(() => look().catch(() => {}).finally(wait), ms);
}

wait();
