// What-if: the engine on a copy of the present state, with changes; both plans side by side.
import { chip, fill, h, panel, table } from "../parts/dom.js";
import { get, post } from "../parts/api.js";
import { amounts, count, money, plural, reasonWords, way } from "../parts/format.js";

const KINDS = [["demand", "Demand changes"], ["lose", "Machines are lost"], ["price", "Prices change"], ["add", "Machines are added"]];

export function show(root, { query }) {
  const form = h("div.panel-body"), result = h("div.stack", { "aria-live": "polite" });
  root.append(h("div.stack", {}, panel("Changes", h("span.muted", { text: "Nothing is done: the engine decides on a copy." }), form), result));
  const at = { shard: query.get("shard") || "" };
  let known = null, changes = [];
  const fresh = (kind) => ({ demand: { kind, factor: 1.5, cluster: "", priority_class: "" }, lose: { kind, share: 1, zone: known.zones[0] || "", instance_type: "", capacity_type: "" }, price: { kind, factor: 2, capacity_type: "Spot" }, add: { kind, count: 10, instance_type: known.instance_types[0] || "", zone: "", capacity_type: "OnDemand" } })[kind];

  const pick = (label, change, key, options, none) => {
    const el = h("select", { onchange: () => { change[key] = el.value; } }, (none ? [["", none], ...options] : options).map(([value, text]) => h("option", { value, text, selected: change[key] === value })));
    return h("label.field", {}, label, el);
  };
  const number = (label, change, key, { min = 0, max = 1000, step = 0.1, shown = (v) => v, read = (v) => v } = {}) => {
    const el = h("input", { type: "number", min, max, step, value: shown(change[key]), onchange: () => { change[key] = read(Number(el.value)); }, css: { width: "92px" } });
    return h("label.field", {}, label, el);
  };
  const pairs = (list, name = (v) => v) => list.map((v) => [v, name(v)]);
  const machines = (c) => [pick("Zone", c, "zone", pairs(known.zones), "any"), pick("Type", c, "instance_type", pairs(known.instance_types), "any"), pick("Capacity type", c, "capacity_type", pairs(known.capacity_types, way), "any")];
  const fields = {
    demand: (c) => [number("Multiplied by", c, "factor"), pick("Cluster", c, "cluster", pairs(known.clusters), "all clusters"), pick("Class", c, "priority_class", pairs(known.priority_classes), "all classes")],
    lose: (c) => [number("Share lost, %", c, "share", { max: 100, step: 5, shown: (v) => v * 100, read: (v) => v / 100 }), ...machines(c)],
    price: (c) => [number("Multiplied by", c, "factor"), pick("Capacity type", c, "capacity_type", pairs(known.capacity_types, way), "any")],
    add: (c) => [number("Machines", c, "count", { min: 1, max: 10000, step: 1 }), ...machines(c)],
  };

  function draw() {
    const kind = h("select", { "aria-label": "Kind of change" }, KINDS.map(([value, text]) => h("option", { value, text })));
    const run = h("button.primary", { type: "button", text: "Compare plans", onclick: () => ask(run) });
    const preset = (text, made) => h("button.ghost", { type: "button", text, onclick: () => { changes = [{ ...fresh(made.kind), ...made }]; draw(); ask(form.querySelector(".primary")); } });
    const zone = known.zones[0];
    fill(form,
      h("div.presets", {}, h("span.muted", { text: "Common questions:" }), preset("Demand grows by half", { kind: "demand", factor: 1.5 }),
        zone ? preset(`${zone} is lost`, { kind: "lose", zone, share: 1 }) : null, preset("Spot costs three times as much", { kind: "price", factor: 3, capacity_type: "Spot" }),
        known.instance_types.length ? preset("20 machines more", { kind: "add", count: 20 }) : null),
      changes.map((c, n) => h("div.change", {}, h("b", { text: KINDS.find(([k]) => k === c.kind)[1] }), fields[c.kind](c), h("button.ghost", { type: "button", text: "Remove", "aria-label": `Remove change ${n + 1}`, onclick: () => { changes.splice(n, 1); draw(); } }))),
      h("div.change", {}, h("label.field", {}, "Add a change", kind), h("button.ghost", { type: "button", text: "Add", onclick: () => { changes.push(fresh(kind.value)); draw(); } }),
        known.shards.length > 1 ? pick("Shard", at, "shard", pairs(known.shards)) : null, run));
  }

  async function ask(button) {
    button.disabled = true;
    button.textContent = "Deciding…";
    try { answer(await post("/whatif", { shard: at.shard || known.shards[0], changes })); }
    catch (error) { fill(result, h("p.error", { role: "alert", text: error.message })); }
    button.disabled = false;
    button.textContent = "Compare plans";
  }

  function answer(a) {
    const line = (name, before, after, format = count, bad = 1) => {
      const delta = after - before;
      const sign = Math.abs(delta) < 1e-9 ? "" : delta > 0 ? "+" : "−";
      return [h("div", { text: name }), h("div.num", { text: format(before) }), h("div.num", { text: format(after) }), h(`div.num${delta * bad > 1e-9 ? ".up" : delta * bad < -1e-9 ? ".down" : ""}`, { text: sign ? `${sign}${format(Math.abs(delta))}` : "same" })];
    };
    const kinds = [...new Set([...Object.keys(a.before.actions), ...Object.keys(a.after.actions)])];
    const clusters = [...new Set([...Object.keys(a.before.machines_by_cluster), ...Object.keys(a.after.machines_by_cluster)])].sort();
    const heads = (first) => [first, "now", "changed", "difference"].map((t, n) => h(`div.head${n ? ".num" : ""}`, { text: t }));
    fill(result, panel("Summary", h("span.muted", { text: `decided in ${a.seconds} s, on the state of this moment` }), inWords(a)),
      h("div.cols", {},
        panel("Key figures", null, h("div.compare", {}, heads(""),
          line("Unmet needs", a.before.unmet, a.after.unmet), line("Spend per hour, settled", a.before.dollars_per_hour, a.after.dollars_per_hour, money), line("Machines serving", a.before.machines_serving, a.after.machines_serving, count, 0), line("Machines in total", a.before.machines, a.after.machines, count, 0),
          Object.keys(a.before.machines_by_capacity_type).map((k) => line(`of these ${way(k).toLowerCase()}`, a.before.machines_by_capacity_type[k], a.after.machines_by_capacity_type[k], count, 0)))),
        panel("First actions", null, h("div.compare", {}, heads("Action"), kinds.length ? kinds.map((k) => line(k, a.before.actions[k] || 0, a.after.actions[k] || 0, count, 0)) : h("div.muted", { text: "none in either" })), h("div.compare", {}, heads("Machines by cluster"), clusters.map((k) => line(k, a.before.machines_by_cluster[k] || 0, a.after.machines_by_cluster[k] || 0, count, 0))))),
      panel("Needs that would become unmet", chip(count(a.newly_unmet_count), a.newly_unmet_count ? "bad" : "good"), table([
        { name: "Cluster", cell: (n) => n.cluster }, { name: "Priority", num: true, cell: (n) => count(n.priority) }, { name: "Why", cell: (n) => reasonWords(n.reason) }, { name: "Missing", cell: (n) => amounts(n.missing) },
      ], a.newly_unmet, { empty: "None: what is met stays met.", label: "Needs that would become unmet" })),
      a.relieved_count ? panel("Needs that would be met", chip(count(a.relieved_count), "good"), table([{ name: "Cluster", cell: (n) => n.cluster }, { name: "Priority", num: true, cell: (n) => count(n.priority) }, { name: "Missing now", cell: (n) => amounts(n.missing) }], a.relieved, { label: "Needs that would be met" })) : null);
  }

  function inWords(a) {
    const { before, after } = a, more = after.unmet - before.unmet, dollars = after.dollars_per_hour - before.dollars_per_hour;
    const head = more > 0 ? `${plural(more, "need")} more would be unmet: ${count(after.unmet)} instead of ${count(before.unmet)}.`
      : more < 0 ? `${plural(-more, "need")} fewer would be unmet: ${count(after.unmet)} instead of ${count(before.unmet)}.`
        : after.unmet ? `As many needs would be unmet as now: ${count(after.unmet)}.` : "All demand would still be met.";
    const worst = Math.max(...a.newly_unmet.map((n) => n.priority), -1);
    const lines = [
      Math.abs(dollars) < 0.005 ? `Spend would stay at ${money(before.dollars_per_hour)} an hour.` : `Spend would go ${dollars > 0 ? "up" : "down"} by ${money(Math.abs(dollars))} an hour, ${money(Math.abs(dollars) * 730)} a month, to ${money(after.dollars_per_hour)}.`,
      worst >= 0 ? `The most important need that becomes unmet has priority ${count(worst)}.` : null,
      after.actions.Preempt ? `${plural(after.actions.Preempt, "machine")} would be taken from less important needs.` : null,
      after.actions.Provision ? `${plural(after.actions.Provision, "machine")} would be created, ${count(after.actions.Bootstrap || 0)} idle ones used.` : null,
    ].filter(Boolean);
    return h("div.answer", {}, h("p", {}, h("b", { text: head })), h("ul", {}, lines.map((text) => h("li", { text }))));
  }

  get("/whatif").then((k) => { known = k; changes = [fresh("demand")]; draw(); }).catch((error) => fill(form, h("p.error", { text: error.message })));
  fill(result, h("p.note", { text: "Press one of the questions above, or put changes together: the engine decides twice, on the fleet as it is and on the fleet as changed, and both plans are shown side by side." }));
}
