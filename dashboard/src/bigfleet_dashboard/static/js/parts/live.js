// News from the server: one stream for the page, passed on to its listeners.

const listeners = { overview: new Set(), decisions: new Set(), state: new Set() };
export let latest = null;
export let connected = false;

const LONGEST_WAIT = 30000;

export function begin(overview) {
  latest = overview;
  listen();
  // A page the browser kept while another one was shown begins again where it was.
  window.addEventListener("pageshow", (e) => { if (e.persisted) listen(); });
}

/** A stream that breaks is opened again by the browser; one that is refused, by a proxy while the
 * dashboard restarts, is not: that is done here, later and later. */
function listen(tries = 0) {
  const source = new EventSource("/api/v1/events");
  source.addEventListener("open", () => { tries = 0; tellState(true); });
  source.addEventListener("error", () => {
    tellState(false);
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => listen(tries + 1), Math.min(LONGEST_WAIT, 1000 * 2 ** tries) * (0.5 + Math.random()));
  });
  source.addEventListener("overview", (e) => { latest = JSON.parse(e.data); tell("overview", latest); });
  source.addEventListener("decisions", (e) => tell("decisions", JSON.parse(e.data)));
  source.addEventListener("reload", () => tell("overview", latest));
  window.addEventListener("pagehide", () => source.close(), { once: true });
}

function tellState(on) {
  connected = on;
  tell("state", on);
}

function tell(name, value) {
  for (const listen of [...listeners[name]]) listen(value);
}

/** Listen; the answer ends it. */
export function on(name, listen) {
  listeners[name].add(listen);
  return () => listeners[name].delete(listen);
}

/** Call `work` now and whenever there is news, at most every `every` ms, never twice at once. */
export function follow(work, every = 1000) {
  let timer = null, last = 0, busy = false, ended = false, again = false;
  const control = new AbortController();
  const run = async () => {
    timer = null;
    if (ended) return;
    if (busy) { again = true; return; }
    busy = true;
    last = performance.now();
    try { await work(control.signal); } catch (error) { if (error.name !== "AbortError") console.warn(error.message); }
    busy = false;
    if (again) { again = false; soon(); }
  };
  const soon = () => { if (timer === null && !ended) timer = setTimeout(run, Math.max(0, last + every - performance.now())); };
  const off = on("overview", () => { if (!document.hidden) soon(); });
  run();
  return { now: () => { last = 0; if (timer !== null) { clearTimeout(timer); timer = null; } run(); }, end: () => { ended = true; off(); clearTimeout(timer); control.abort(); } };
}
