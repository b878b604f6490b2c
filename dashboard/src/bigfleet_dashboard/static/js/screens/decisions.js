// Decisions: what was done, for whom, why and at what cost, as it happens.
import { fill, h, panel, seg } from "../parts/dom.js";
import { on } from "../parts/live.js";
import { get } from "../parts/api.js";
import { vtable } from "../parts/vtable.js";
import { count } from "../parts/format.js";
import { KINDS, decisionColumns, openDecision } from "../parts/rows.js";

const KEPT = 2000;

export function show(root, { query }) {
  const all = new Map();
  let kind = query.get("kind") || "", words = "", held = false;
  const note = h("span.muted"), meaning = h("p.note", { role: "status" });
  const view = vtable({ label: "Decisions, newest first", columns: decisionColumns, open: openDecision, empty: "Nothing decided yet." });
  const hold = h("button.ghost", { type: "button", "aria-pressed": "false", text: "Hold", onclick: () => {
    held = !held;
    hold.setAttribute("aria-pressed", String(held));
    hold.textContent = held ? "Go on" : "Hold";
    draw();
  } });
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search decisions", oninput: () => { words = search.value.toLowerCase(); draw(true); } });
  root.append(panel("Live feed", h("div.tools", {}, seg("Kind", [["", "All"], ...Object.keys(KINDS).map((k) => [k, k])], kind, (v) => { kind = v; draw(true); }), search, hold, note), meaning, view.root));

  function take(list) {
    for (const d of list) all.set(`${d.shard} ${d.cycle} ${d.kind} ${d.machine}`, d);
    if (all.size > KEPT) {
      const old = [...all.entries()].sort((a, b) => b[1].unix_nanos - a[1].unix_nanos).slice(KEPT);
      for (const [key] of old) all.delete(key);
    }
    draw();
  }
  function draw(anyway = false) {
    if (held && !anyway) return;
    const rows = [...all.values()].filter((d) => (!kind || d.kind === kind) && (!words || `${d.machine} ${d.cluster} ${d.reason} ${d.outcome}`.toLowerCase().includes(words)));
    rows.sort((a, b) => b.unix_nanos - a.unix_nanos);
    view.setRows(rows);
    fill(meaning, kind ? `${kind}: ${KINDS[kind]}` : "Everything the engine did, newest first, with its reason. Choose a kind to read what it means; a row opens the whole decision.");
    fill(note, count(rows.length));
  }
  const off = on("decisions", take);
  get("/decisions?limit=500").then((a) => take(a.decisions)).catch((error) => console.warn(error.message));
  return () => { off(); view.end(); };
}
