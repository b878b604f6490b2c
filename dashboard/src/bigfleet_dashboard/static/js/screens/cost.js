// Cost: spend, and which part of it is avoidable.
import { chip, fill, h, panel, table } from "../parts/dom.js";
import { follow } from "../parts/live.js";
import { get } from "../parts/api.js";
import { chart } from "../parts/chart.js";
import { token } from "../parts/colours.js";
import { count, money, percent, plural, shortId, way } from "../parts/format.js";
import { openMachine } from "../parts/rows.js";

const SHOWN = 12;
const WEIGHT = { pinned_on_spot: "bad", idle_money: "warn", more_expensive_than_necessary: "warn" };

export function show(root) {
  const top = h("div"), flags = h("div"), cross = h("div"), ways = h("div"), parts = h("div.stack");
  const past = chart({ label: "Spend per hour over the last half hour", series: [{ name: "Spend", colour: () => token("--accent") }], format: (v) => `$${v}`, height: 150 });
  root.append(h("div.stack", {}, top,
    h("div.cols.halves", {},
      h("div.stack", {}, panel("Red flags", h("span.muted", { text: "avoidable spend" }), flags), panel("Spend per hour", null, h("div.panel-body", {}, past.root)), ways),
      h("div.stack", {}, panel("By capacity type and penalty", null, cross), parts))));
  function meters(title, values, name = (k) => k) {
    const all = Object.entries(values).sort((a, b) => b[1] - a[1]);
    const rest = all.slice(SHOWN);
    const rows = rest.length > 1 ? [...all.slice(0, SHOWN), [`${count(rest.length)} others`, rest.reduce((sum, [, v]) => sum + v, 0)]] : all;
    const most = Math.max(...rows.map(([, v]) => v), 1e-9);
    return panel(title, null, h("div.panel-body", {}, rows.map(([k, v]) => h("div.meter", {}, h("span", { text: name(k) }), h("div.bar", {}, h("i", { css: { width: `${(v / most) * 100}%` } })), h("span.num", { text: money(v) })))));
  }
  function draw(c) {
    const idle = c.by_state.Idle || 0;
    const tile = (name, value, note, kind = "") => h(`div.tile${kind}`, {}, h("span.tile-name", { text: name }), h("span.tile-value", { text: value }), h("span.tile-note", { text: note }));
    const avoidable = c.flags.filter((f) => f.kind !== "pinned_on_spot").reduce((s, f) => s + f.dollars_per_hour, 0);
    fill(top, h("div.tiles", {}, tile("Spend", money(c.dollars_per_hour), "per hour, now"), tile("Projected month", money(c.dollars_per_hour * 730), "730 hours"),
      tile("Idle", money(idle), c.dollars_per_hour ? `${percent(idle / c.dollars_per_hour)} of all spend` : "of all spend"), tile("Potential savings", money(avoidable), "per hour, by the flags below", avoidable ? ".warn" : "")));
    fill(flags, c.flags.length ? c.flags.map((f) => h("div.panel-body", {}, h("p", {}, chip(f.kind === "pinned_on_spot" ? "risk" : `${money(f.dollars_per_hour)}/h`, WEIGHT[f.kind]), h("b", { text: ` ${f.title} ` }), h("span.muted", { text: plural(f.machines, "machine") })),
      h("p.muted", { text: f.text }), h("p", {}, f.examples.slice(0, 5).map((m) => [h("button.plain.mono", { type: "button", text: shortId(m.id), onclick: () => openMachine(m.index) }), " "]))))
      : h("p.empty", { text: "No red flag: nothing pinned on spot, no paid idle capacity, no machine more expensive than necessary." }));
    fill(cross, table([
      { name: "Capacity type", cell: (r) => way(r.capacity_type) }, { name: "Interruption penalty", cell: (r) => (r.capacity_type === "Spot" && r.penalty === "pinned" ? chip("pinned", "bad") : r.penalty) },
      { name: "Machines", num: true, cell: (r) => count(r.machines) }, { name: "Per hour", num: true, cell: (r) => money(r.dollars_per_hour) },
    ], c.by_capacity_type_and_penalty, { empty: "No machine costs anything.", label: "Spend by capacity type and penalty" }));
    fill(ways, meters("By capacity type", c.by_capacity_type, way));
    fill(parts, meters("By cluster", c.by_cluster), meters("By state", c.by_state));
  }
  const going = follow(async (signal) => {
    draw(await get("/cost", signal));
    const seen = await get("/history", signal);
    past.set([seen.time, seen.spend]);
  }, 2500);
  return () => { going.end(); past.end(); };
}
