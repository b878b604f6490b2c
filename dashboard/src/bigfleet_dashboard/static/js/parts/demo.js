// Only where the fleet is a demo: scenarios to play, and what came of the last one. The page asks the
// demo, never the control plane.
import { fill, h, link } from "./dom.js";
import { get, post } from "./api.js";
import { latest, on } from "./live.js";
import { ago, plural } from "./format.js";

const SCREENS = { "/": "Overview", "/clusters": "Clusters", "/needs": "Needs", "/decisions": "Decisions", "/providers": "Providers", "/topology": "Topology" };
const SHOWN_SECONDS = 150;

export function demoBar(root) {
  const buttons = new Map();
  const row = h("div.demo-row", {}, h("p", {}, h("b", { text: "Demo" }), " Simulated machines and clusters. Try:"));
  const said = h("div.demo-said", { role: "status", hidden: true });
  let last = null, since = new Map();
  root.append(h("section.demo", { "aria-label": "Demo", hidden: true }, row, said));

  function known(scenarios) {
    root.firstChild.hidden = false;
    for (const s of scenarios) {
      if (!buttons.has(s.name)) {
        buttons.set(s.name, h("button.ghost", { type: "button", title: `${s.title}. ${s.watch}`, "data-scenario": s.name, text: s.short, onclick: () => play(s) }));
        row.append(buttons.get(s.name));
      }
      buttons.get(s.name).toggleAttribute("data-playing", s.playing);
    }
    const played = scenarios.filter((s) => s.played_at).sort((a, b) => b.played_at - a.played_at)[0];
    if (played && (last?.name !== played.name || last.played_at !== played.played_at)) { since = new Map(); last = played; catchUp(); }
    tell();
  }

  /** Decisions that were taken before this page heard of the scenario. */
  async function catchUp() {
    try { take((await get("/decisions?limit=500")).decisions); } catch { /* the next event tells */ }
  }

  function take(list) {
    for (const d of list) if (last && d.unix_nanos / 1e9 >= last.played_at) since.set(`${d.shard} ${d.cycle} ${d.kind} ${d.machine}`, d.kind);
    tell();
  }

  function tell() {
    said.hidden = !last || Date.now() / 1000 - last.played_at > SHOWN_SECONDS;
    if (said.hidden) return;
    const counts = {};
    for (const kind of since.values()) counts[kind] = (counts[kind] || 0) + 1;
    const done = Object.entries(counts).sort((a, b) => b[1] - a[1]).map(([kind, n]) => plural(n, kind.toLowerCase()));
    const unmet = latest.needs.unmet ? `${plural(latest.needs.unmet, "need")} unmet` : "all demand met";
    fill(said, h("b", { text: last.title }), h("span.muted", { text: ago(last.played_at) }), h("span", { text: last.watch }),
      h("span.muted", { text: `So far: ${done.join(", ") || "nothing decided yet"}; ${unmet}.` }),
      link(last.look, `Show on ${SCREENS[last.look] || "its screen"}`));
  }

  async function draw() {
    try { known((await get("/demo")).scenarios); } catch { /* it comes back */ }
  }
  async function play(scenario) {
    try { await post("/demo", { name: scenario.name }); } catch (error) { said.hidden = false; fill(said, error.message); return; }
    draw();
  }
  on("decisions", take);
  on("overview", tell);
  draw();
  setInterval(() => { if (!document.hidden) draw(); }, 5000);
}
