// One cluster: demand, what is bound and coming, where it is, and what was decided for it.
import { chip, fill, h, link, panel } from "../parts/dom.js";
import { follow } from "../parts/live.js";
import { get } from "../parts/api.js";
import { vtable } from "../parts/vtable.js";
import { ago, count, lasting, money, way } from "../parts/format.js";
import { decisionColumns, needColumns, openDecision, openNeed } from "../parts/rows.js";

export function show(root, { part }) {
  const top = h("div"), places = h("div.cols");
  const needs = vtable({ label: "Needs of this cluster", columns: needColumns.filter((c) => c.name !== "Cluster"), open: openNeed, empty: "This cluster requests nothing.", height: "340px" });
  const decisions = vtable({ label: "Decisions for this cluster", columns: decisionColumns.filter((c) => c.name !== "For"), open: openDecision, empty: "No decision for this cluster yet.", height: "340px" });
  const rest = h("div.stack", { hidden: true }, places, panel("Needs", null, needs.root), panel("Decisions", null, decisions.root));
  root.append(h("div.stack", {}, top, rest));
  function meters(title, counts, name = (k) => k) {
    const most = Math.max(...Object.values(counts), 1);
    const rows = Object.entries(counts).sort((a, b) => b[1] - a[1]);
    return panel(title, null, h("div.panel-body", {}, rows.length ? rows.map(([k, n]) => h("div.meter", {}, h("span", { text: name(k) }), h("div.bar", {}, h("i", { css: { width: `${(n / most) * 100}%` } })), h("span.num", { text: count(n) }))) : h("p.muted", { text: "No machine." })));
  }
  function draw(c) {
    rest.hidden = false;
    const tile = (name, value, note, kind = "") => h(`div.tile${kind}`, {}, h("span.tile-name", { text: name }), h("span.tile-value", {}, value), h("span.tile-note", {}, note));
    const nodes = c.upcoming_nodes;
    fill(top, h("div.tiles", {},
      tile("Operator", c.connected ? chip("connected", "good") : chip("not connected", "warn"), c.shard ? ["at ", link(`/shards/${encodeURIComponent(c.shard)}`, c.shard)] : "no shard"),
      tile("Unmet needs", count(c.unmet), `of ${count(c.needs)}`, c.unmet ? ".bad" : ""),
      tile("Bound", count(c.bound), `${count(c.machines_wanted)} counted for its needs`),
      tile("Upcoming nodes", count(c.upcoming), nodes ? Object.entries(nodes).map(([k, n]) => `${n} ${k}`).join(", ") : `${count(c.draining)} draining`),
      tile("Spend", money(c.spend_per_hour), "per hour"),
      tile("Acknowledgement lag", lasting(c.acknowledgement_lag_seconds), c.bound_since_unix_seconds ? `bound ${ago(c.bound_since_unix_seconds)}` : "")));
    fill(places, meters("By capacity type", c.by_capacity_type, way), meters("By zone", c.by_zone), meters("By type", c.by_instance_type));
    needs.setRows(c.need_rows);
    decisions.setRows(c.decisions);
  }
  const going = follow(async (signal) => {
    try { draw(await get(`/clusters/${encodeURIComponent(part)}`, signal)); }
    catch (error) { if (error.name !== "AbortError") fill(top, h("p.error", { text: error.message })); }
  }, 1500);
  return () => { going.end(); needs.end(); decisions.end(); };
}
