// Providers: who supplies machines, how well they answer, what is sold out, and what things cost.
import { chip, fill, h, link, panel, table } from "../parts/dom.js";
import { follow } from "../parts/live.js";
import { get } from "../parts/api.js";
import { ago, count, lasting, money, ms, percent, way } from "../parts/format.js";
import { stateBar } from "../parts/rows.js";

const PRICES = 400;

export function show(root) {
  const top = h("div"), list = h("div"), calls = h("div"), prices = h("div");
  root.append(h("div.stack", {}, top, panel("Providers", null, list), panel("Calls since each shard started", null, calls), panel("Offerings and prices", null, prices)));
  function draw(d) {
    const seen = d.providers.flatMap((p) => p.shards.map((s) => ({ ...s, provider: p })));
    const reachable = new Set(seen.filter((s) => s.reachable).map((s) => s.provider.name)).size;
    const failures = Object.entries(d.create_failures).filter(([, n]) => n);
    const tile = (name, value, note, kind = "") => h(`div.tile${kind}`, {}, h("span.tile-name", { text: name }), h("span.tile-value", { text: value }), h("span.tile-note", { text: note, title: note }));
    fill(top, h("div.tiles", {},
      tile("Providers", count(d.providers.length), `${reachable} reachable`, reachable < d.providers.length ? ".bad" : ""),
      tile("Offerings sold out", count(d.stockouts_cooling), d.stockouts_cooling ? "put behind the others for a while" : "everything is to be had", d.stockouts_cooling ? ".warn" : ""),
      tile("Failed Creates", count(failures.reduce((s, [, n]) => s + n, 0)), failures.map(([k, n]) => `${n} ${k.replaceAll("_", " ")}`).join(", ") || "none since the shards started"),
      tile("Machines", count(seen.reduce((s, e) => s + e.machines, 0)), "in all lists")));
    fill(list, table([
      { name: "Provider", cell: (s) => s.provider.name }, { name: "Reachable", cell: (s) => (s.reachable ? chip("yes", "good") : chip("no", "bad")) },
      { name: "Seen by", cell: (s) => link(`/shards/${encodeURIComponent(s.shard)}`, s.shard) }, { name: "Registered", cell: (s) => (s.provider.registered ? "with the coordinator" : "by the shard's flag") },
      { name: "Machines", num: true, cell: (s) => count(s.machines) }, { name: "Last list", num: true, cell: (s) => ago(s.last_list_unix_seconds) }, { name: "Merged", num: true, cell: (s) => (s.reconcile_age_seconds === null ? "–" : lasting(s.reconcile_age_seconds)) },
      { name: "Held back", num: true, cell: (s) => (s.removals_held ? chip(count(s.removals_held), "bad") : "0") }, { name: "Address", cell: (s) => h("span.mono", { text: s.provider.address }) }, { name: "Last error", cell: (s) => s.last_error || "–" },
    ], seen, { empty: "No provider: nothing can be created.", label: "Providers" }));
    fill(calls, table([
      { name: "Provider", cell: (m) => m.provider }, { name: "Call", cell: (m) => m.method }, { name: "Calls", num: true, cell: (m) => count(m.calls) },
      { name: "Errors", num: true, cell: (m) => (m.errors ? chip(count(m.errors), "warn") : "0") }, { name: "Mean", num: true, cell: (m) => ms(m.mean_ms) },
    ], seen.flatMap((s) => s.methods.filter((m) => m.calls).map((m) => ({ ...m, provider: s.provider.name }))), { empty: "No call yet, or the shard's page is not readable.", label: "Calls" }));
    fill(prices, table([
      { name: "Type", cell: (p) => p.instance_type }, { name: "Capacity type", cell: (p) => way(p.capacity_type) }, { name: "Zone", cell: (p) => p.zone },
      { name: "Price", num: true, cell: (p) => `${money(p.price_per_hour)}/h` }, { name: "Interruption", num: true, cell: (p) => percent(p.interruption_probability) },
      { name: "Machines", num: true, cell: (p) => count(p.machines) }, { name: "By state", cell: (p) => h("div", { css: { width: "160px" } }, stateBar(p.by_state)) },
    ], d.prices.slice(0, PRICES), { empty: "No provider has listed anything yet.", label: "Offerings and prices" }),
      d.prices.length > PRICES ? h("p.note", { text: `${count(d.prices.length - PRICES)} more: /api/v1/providers has all of them.` }) : null);
  }
  const going = follow(async (signal) => draw(await get("/providers", signal)), 2000);
  return () => going.end();
}
