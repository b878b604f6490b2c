// One shard: how its cycles go, what holds it back, who is connected, what went wrong.
import { chip, fill, h, link, panel, table } from "../parts/dom.js";
import { follow } from "../parts/live.js";
import { get } from "../parts/api.js";
import { chart } from "../parts/chart.js";
import { token } from "../parts/colours.js";
import { ago, count, lasting, ms, plural } from "../parts/format.js";
import { stateBar } from "../parts/rows.js";
import { facts } from "../parts/drawer.js";
import { health } from "./shards.js";

const SESSIONS = 200;

export function show(root, { part }) {
  const top = h("div"), phases = h("div.panel-body"), rails = h("div.panel-body"), sessions = h("div.panel-body"), providers = h("div"), errors = h("div.panel-body"), actions = h("div.panel-body");
  const times = chart({ label: "Time of each cycle", series: [{ name: "Cycle", colour: () => token("--accent") }], format: (v) => `${v} ms`, height: 160 });
  const changes = chart({ label: "Actions of each cycle", series: [{ name: "Actions", colour: () => token("--state-configuring") }], whole: true, height: 160 });
  const rest = h("div.stack", { hidden: true },
    h("div.cols", {}, panel("Cycle time", null, h("div.panel-body", {}, times.root)), panel("Actions per cycle", null, h("div.panel-body", {}, changes.root))),
    h("div.cols", {}, panel("Phases", h("span.muted", { text: "p50 and p99 of five minutes" }), phases), panel("Rails in force", null, rails), panel("Sessions", null, sessions)),
    panel("Providers it works with", null, providers),
    h("div.cols", {}, panel("Actions since it started", null, actions), panel("Last errors", null, errors)));
  root.append(h("div.stack", {}, top, rest));

  function draw(s) {
    rest.hidden = false;
    const tile = (name, value, note) => h("div.tile", {}, h("span.tile-name", { text: name }), h("span.tile-value", {}, value), h("span.tile-note", {}, note));
    fill(top, h("div.tiles", {},
      tile("State", health(s), s.trouble || s.pause_reason || `epoch ${s.epoch ?? "–"}`),
      tile("Machines", count(s.machines), stateBar(s.by_state)),
      tile("Needs", count(s.needs), s.unmet ? `${s.unmet} unmet` : "all met"),
      tile("Cycle p99", ms(s.cycle_ms.p99), `median ${ms(s.cycle_ms.p50)}, cycle ${count(s.cycle)}`),
      tile("Under way", count(s.queue.running), `${count(s.queue.waiting)} waiting`),
      tile("Roll-up age", lasting(s.rollup_age_seconds.max), `p95 ${lasting(s.rollup_age_seconds.p95)}`)));
    const most = Math.max(...Object.values(s.phases_ms.p99), 0.001);
    fill(phases, Object.keys(s.phases_ms.p99).length ? Object.entries(s.phases_ms.p99).map(([name, p99]) => h("div.phase", {},
      h("span", { text: name }), h("div.bar", {}, h("i", { css: { width: `${(p99 / most) * 100}%` } })), h("span.num", { text: ms(s.phases_ms.p50[name]) }), h("span.num", { text: ms(p99) })))
      : h("p.muted", {}, `Not readable at ${s.http.address || "its page"}. Name it with --shard-http ${s.id}=HOST:PORT.`));
    fill(rails, s.rails.length ? s.rails.map((r) => h("p", {}, chip("held", "warn"), ` ${r}`)) : h("p.muted", { text: "Nothing is held back." }),
      h("p.muted", { text: `${count(s.reclaims_capped_total)} reclaims capped and ${count(s.reclaims_unforced_total)} unforced since it started; ${count(s.phantom_machines)} phantom machines; ${count(s.stockouts_cooling)} offerings cooling off.` }));
    fill(sessions, s.session_clusters.length ? [h("p.muted", { text: `${plural(s.session_clusters.length, "operator")} connected:` }), h("p", {}, s.session_clusters.slice(0, SESSIONS).map((c) => [link(`/clusters/${encodeURIComponent(c)}`, c), "  "]), s.session_clusters.length > SESSIONS ? h("span.muted", { text: `and ${count(s.session_clusters.length - SESSIONS)} more` }) : null)] : h("p.muted", { text: "No operator is connected." }));
    fill(providers, table([
      { name: "Provider", cell: (p) => p.name }, { name: "Reachable", cell: (p) => (p.reachable ? chip("yes", "good") : chip("no", "bad")) },
      { name: "Machines", num: true, cell: (p) => count(p.machines) }, { name: "Last list", num: true, cell: (p) => ago(p.last_list_unix_seconds) },
      { name: "Address", cell: (p) => h("span.mono", { text: p.address }) }, { name: "Last error", cell: (p) => p.last_error || "–" },
    ], s.providers, { empty: "It has no provider: it can create no machine.", label: "Providers" }));
    fill(errors, s.errors.length ? s.errors.map((e) => h("p", {}, h("span.muted", { text: `${ago(e.unix_seconds)} ` }), e.text)) : h("p.muted", { text: "None since the dashboard started." }));
    fill(actions, facts(Object.entries(s.actions).map(([k, n]) => [k, count(n)])));
    times.set([s.cycles.map((c) => c.unix_seconds), s.cycles.map((c) => c.wall_ms)]);
    changes.set([s.cycles.map((c) => c.unix_seconds), s.cycles.map((c) => Object.values(c.actions).reduce((a, b) => a + b, 0))]);
  }
  const going = follow(async (signal) => {
    try { draw(await get(`/shards/${encodeURIComponent(part)}`, signal)); }
    catch (error) { if (error.name !== "AbortError") fill(top, h("p.error", { text: error.message })); }
  }, 1500);
  return () => { going.end(); times.end(); changes.end(); };
}
