// Rows that several screens show: decisions, needs, machines, states as a bar.
import { chip, h, link } from "./dom.js";
import { STATES, kindClass, stateColour } from "./colours.js";
import { amounts, clock, count, money, plural, reasonWords, shortId, way } from "./format.js";
import { facts, openDrawer, section } from "./drawer.js";
import { get } from "./api.js";

export function stateBar(byState) {
  const total = STATES.reduce((sum, s) => sum + (byState[s] || 0), 0) || 1;
  const text = STATES.filter((s) => byState[s]).map((s) => `${byState[s]} ${s}`).join(", ");
  return h("div.bar", { role: "img", "aria-label": text || "none", title: text },
    STATES.filter((s) => byState[s]).map((s) => h("i", { css: { width: `${(byState[s] / total) * 100}%`, background: stateColour(s) } })));
}

export function stateChip(state) {
  const dot = h("span.dot", state === "Speculative" ? { class: "speculative" } : { css: { background: stateColour(state) } });
  return h("span.chip", {}, dot, state);
}

export function outcomeChip(outcome) {
  if (!outcome) return chip("under way", "accent");
  return chip(outcome.replaceAll("_", " "), outcome === "success" ? "good" : "bad");
}

export function verdict(row) {
  return row.satisfied ? chip("met", "good") : chip(reasonWords(row.reason) || "unmet", row.priority_class === "critical" || row.priority_class === "service" ? "bad" : "warn");
}

/** What each kind of decision does, for who has not read the documentation. */
export const KINDS = {
  Bootstrap: "An idle machine joins the cluster that needs it.",
  Provision: "No idle machine fits, so one is created.",
  Reclaim: "A cluster no longer needs a machine: it is emptied and becomes idle.",
  Preempt: "A machine is taken from a less important need for a more important one.",
  Drain: "Pods of a machine are moved away before it leaves its cluster.",
  Keep: "A machine that was about to leave stays: its need is back.",
  Delete: "A machine that no need uses is given back to its provider.",
};

export const kindChip = (kind) => h("span", { title: KINDS[kind] || "" }, chip(kind, kindClass(kind)));

export function decisionLine(d) {
  return h("li", { "data-number": d.number },
    h("time", { text: clock(d.unix_nanos) }),
    h("span.whom", {}, kindChip(d.kind), d.cluster ? link(`/clusters/${encodeURIComponent(d.cluster)}`, d.cluster) : null),
    h("span.mono.muted", { text: shortId(d.machine) }),
    h("span.what", { title: `${d.machine}: ${d.reason}`, text: d.reason }));
}

/** A text that a narrow column cuts: the pointer shows all of it. */
export const whole = (text) => h("span", { text, title: text });

export const decisionColumns = [
  { name: "Time", width: "98px", cell: (d) => clock(d.unix_nanos) },
  { name: "What", width: "104px", cell: (d) => kindChip(d.kind) },
  { name: "For", width: "104px", wide: true, cell: (d) => (d.cluster ? link(`/clusters/${encodeURIComponent(d.cluster)}`, d.cluster) : "–") },
  { name: "Why", width: "minmax(170px, 3fr)", phone: "minmax(120px, 1fr)", cell: (d) => whole(d.reason) },
  { name: "Machine", width: "minmax(150px, 1fr)", mono: true, wide: true, cell: (d) => shortId(d.machine) },
  { name: "Price", width: "92px", num: true, wide: true, cell: (d) => (d.cost_per_hour ? `${money(d.cost_per_hour)}/h` : "$0") },
  { name: "Outcome", width: "128px", wide: true, cell: (d) => outcomeChip(d.outcome) },
  { name: "Cycle", width: "84px", num: true, wide: true, cell: (d) => count(d.cycle) },
];

export function openDecision(d) {
  openDrawer(`${d.kind} ${shortId(d.machine)}`, outcomeChip(d.outcome), facts([
    ["Why", d.reason], ["For", d.cluster], ["Machine", h("span.mono", { text: d.machine })], ["Meaning", KINDS[d.kind]], ["Price", `${money(d.cost_per_hour)}/h`],
    ["Decided", clock(d.unix_nanos)], ["Shard", link(`/shards/${encodeURIComponent(d.shard)}`, d.shard)], ["Cycle", count(d.cycle)],
    ["Profile", d.profile_fingerprint && h("span.mono", { text: d.profile_fingerprint })],
  ]));
}

export const needColumns = [
  { name: "Verdict", width: "182px", phone: "minmax(140px, 1fr)", cell: (n) => verdict(n) },
  { name: "Cluster", width: "100px", phone: "80px", cell: (n) => link(`/clusters/${encodeURIComponent(n.cluster)}`, n.cluster) },
  { name: "Class", width: "80px", wide: true, cell: (n) => n.priority_class },
  { name: "Priority", width: "122px", phone: "88px", num: true, cell: (n) => count(n.priority) },
  { name: "Asks for", width: "minmax(188px, 1fr)", wide: true, cell: (n) => whole(amounts(n.asks)) },
  { name: "As", width: "minmax(180px, 1fr)", wide: true, cell: (n) => whole(n.label) },
  { name: "Machines", width: "92px", num: true, wide: true, cell: (n) => count(n.machines) },
  { name: "Penalty", width: "76px", num: true, wide: true, cell: (n) => (n.penalty === "pinned" ? "pinned" : money(Number(n.penalty))) },
  { name: "Unmet for", width: "98px", num: true, wide: true, cell: (n) => (n.satisfied ? "–" : plural(n.age_cycles, "cycle")) },
];

export async function openNeed(row) {
  openDrawer(`${row.cluster}: ${amounts(row.asks)}`, h("p.muted", { text: "Loading…" }));
  let need;
  try { need = await get(`/needs/${row.key}`); } catch (error) { openDrawer(`${row.cluster}: ${amounts(row.asks)}`, h("p.error", { text: error.message })); return; }
  openDrawer(need.title, h("p", {}, verdict(need), " ", h("span.muted", { text: need.summary })),
    section("Why it is unmet", need.why), section("What the engine tried", need.tried), section("What would help", need.helps),
    need.helps.length ? h("p", {}, h("a.ghost", { href: `/whatif?shard=${encodeURIComponent(need.shard)}`, "data-link": true, text: "Try a change in What-if" })) : null,
    section("Demand", need.asks), section("Supply", need.got),
    need.domains.length ? section("Domains considered", need.domains.map((d) => `${d.domain}: covers ${d.coverage_percent} %${d.covers ? ", enough" : ""}`)) : null,
    h("section", {}, facts([["Shard", need.shard], ["Penalty", need.penalty === "pinned" ? "pinned: never interrupt" : `${money(Number(need.penalty))} per interruption`], ["Key", h("span.mono", { text: need.key })]])));
}

export async function openMachine(index) {
  let machine;
  try { machine = await get(`/machines/${typeof index === "number" ? `@${index}` : index}`); } catch (error) { openDrawer("Machine", h("p.error", { text: error.message })); return; }
  openDrawer(shortId(machine.id), stateChip(machine.state), h("section", {}, facts([
    ["Id", h("span.mono", { text: machine.id })],
    ["Cluster", machine.cluster && link(`/clusters/${encodeURIComponent(machine.cluster)}`, machine.cluster)],
    ["Type", machine.instance_type], ["Zone", machine.zone], ["Capacity type", way(machine.capacity_type)],
    ["Price", `${money(machine.price_per_hour)}/h`], ["Interruption", `${(machine.interruption_probability * 100).toFixed(1)} % per hour`],
    ["Serves priority", machine.priority === null ? null : count(machine.priority)],
    ["Shard", link(`/shards/${encodeURIComponent(machine.shard)}`, machine.shard)], ["Last error", machine.last_error],
    ["Ends", machine.ends_at_unix_nanos && clock(machine.ends_at_unix_nanos)],
  ])), section("Recent actions", machine.decisions.map((d) => `${clock(d.unix_nanos)} ${d.kind}: ${d.reason}${d.outcome ? ` (${d.outcome})` : ""}`)));
}
