// Overview: the numbers, the live map, what is decided, what is wrong, and the last half hour.
import { chip, fill, h, panel } from "../parts/dom.js";
import { follow, latest, on } from "../parts/live.js";
import { get } from "../parts/api.js";
import { fleetMap } from "../parts/map.js";
import { chart } from "../parts/chart.js";
import { STATES, stateColour, token } from "../parts/colours.js";
import { count, money, ms, plural, short } from "../parts/format.js";
import { decisionLine, openMachine, stateBar } from "../parts/rows.js";

const FEED = 13, PROBLEMS = 8;

export function show(root) {
  const tiles = h("div.tiles");
  const map = fleetMap(openMachine);
  const feed = h("ul.feed", { "aria-live": "off" });
  const problems = h("ul.problems");
  const line = (name, colour, format) => chart({ label: `${name} over the last half hour`, series: [{ name, colour }], format, whole: !format });
  const spend = line("Spend per hour", () => token("--accent"), (v) => `$${v}`);
  const unmet = line("Unmet needs", () => token("--state-failed"));
  const actions = line("Actions per minute", () => token("--state-configuring"));
  const states = chart({ label: "Machines by state over the last half hour", stacked: true, whole: true, series: STATES.slice(1).map((s) => ({ name: s, colour: () => stateColour(s) })) });
  const charts = [["Spend per hour", spend], ["Unmet needs", unmet], ["Machines by state", states], ["Actions per minute", actions]];
  const decided = new Map();

  root.append(h("div.stack", {},
    tiles,
    h("div.cols.wide-left", {},
      h("div.stack", {},
        panel("Fleet map", map.tools, map.root),
        h("div.pair", {}, charts.map(([name, c]) => panel(name, null, h("div.panel-body", {}, c.root))))),
      h("div.stack", {},
        panel("Needs attention", null, problems),
        panel("Decisions", h("a", { href: "/decisions", "data-link": true, text: "All decisions" }), feed)))));

  function numbers(o) {
    const c = o.unmet_by_priority;
    const worst = c.critical || c.service ? "bad" : o.needs.unmet ? "warn" : "";
    const tile = (href, name, value, unit, note, kind = "") => h(`a.tile${kind ? `.${kind}` : ""}`, { href, "data-link": true },
      h("span.tile-name", { text: name }), h("span.tile-value", {}, value, unit ? h("small", { text: ` ${unit}` }) : null),
      note instanceof Node ? note : h("span.tile-note", { text: note, title: note }));
    const real = o.machines.total - (o.machines.by_state.Speculative || 0);
    fill(tiles,
      tile("/machines", "Machines", count(real), `of ${short(o.machines.total)}`, stateBar(o.machines.by_state)),
      tile("/needs?verdict=unmet", "Unmet needs", count(o.needs.unmet), `of ${short(o.needs.total)}`,
        o.needs.unmet ? Object.entries(c).filter(([, n]) => n).map(([k, n]) => `${n} ${k}`).join(", ") : o.needs.total ? "all demand is met" : "no demand yet", worst),
      tile("/cost", "Spend", money(o.spend_per_hour), "/h", `${money(o.spend_per_hour * 730)} a month`),
      tile("/shards", "Cycle p99", ms(o.cycle_ms.p99), "", `median ${ms(o.cycle_ms.p50)}`),
      tile("/decisions", "Actions", count(o.actions_per_minute.total), "/min", kinds(o.actions_per_minute.by_kind)),
      tile("/shards", "Shards", count(o.shards.answering), `of ${count(o.shards.total)}`, !o.shards.total ? "none known yet" : o.shards.answering === o.shards.total ? "all answer" : `${o.shards.total - o.shards.answering} silent`, o.shards.answering < o.shards.total ? "bad" : ""),
      tile("/clusters", "Clusters", count(o.clusters.connected), `of ${count(o.clusters.total)}`, !o.clusters.total ? "none known yet" : o.clusters.connected === o.clusters.total ? "all connected" : "some are not connected", o.clusters.connected < o.clusters.total ? "warn" : ""));
    const more = o.problems.length - PROBLEMS;
    fill(problems, o.problems.length ? [...o.problems.slice(0, PROBLEMS).map((p) => h("li", {},
      chip(p.weight, { error: "bad", warning: "warn" }[p.weight]),
      h("div", {}, h("a", { href: p.link, "data-link": true, text: p.text }), p.remedy ? h("p", { text: p.remedy }) : null))),
      more > 0 ? h("li", {}, chip("more"), h("div", { text: `${count(more)} not shown here; all of them: /api/v1/overview` })) : null]
      : h("li", {}, chip("fine", "good"), h("div", { text: "Nothing needs attention." })));
  }

  function take(list) {
    for (const d of list) decided.set(`${d.shard} ${d.cycle} ${d.kind} ${d.machine}`, d);
    const newest = [...decided.values()].sort((a, b) => b.unix_nanos - a.unix_nanos);
    for (const d of newest.slice(60)) decided.delete(`${d.shard} ${d.cycle} ${d.kind} ${d.machine}`);
    fill(feed, newest.length ? newest.slice(0, FEED).map(decisionLine) : h("li", {}, h("span.what", { text: "Nothing decided yet." })));
  }

  let version = -1;
  const ends = [on("overview", numbers), on("decisions", take)];
  numbers(latest);
  get(`/decisions?limit=${FEED}`).then((a) => take(a.decisions)).catch(() => {});
  const mapping = follow(async (signal) => {
    if (latest.machines_version === version) return;
    const document_ = await get("/map", signal);
    version = document_.version;
    map.set(document_);
  }, 700);
  const drawing = follow(async (signal) => {
    const past = await get("/history", signal);
    spend.set([past.time, past.spend]);
    unmet.set([past.time, past.unmet]);
    actions.set([past.time, past.actions]);
    states.set([past.time, ...STATES.slice(1).map((s) => past.states[s] || [])]);
  }, 4000);
  return () => { ends.forEach((e) => e()); mapping.end(); drawing.end(); map.end(); charts.forEach(([, c]) => c.end()); };
}

function kinds(byKind) {
  const told = Object.entries(byKind).sort((a, b) => b[1] - a[1]).slice(0, 2).map(([k, n]) => plural(n, k.toLowerCase()));
  return told.join(", ") || "nothing to do";
}
