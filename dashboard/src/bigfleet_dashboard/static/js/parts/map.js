// The live map of the fleet: one cell per machine (or per class of machines, when there are very many),
// grouped and coloured as asked. Drawn on a canvas; arrow keys walk through the cells.
import { fill, h, seg } from "./dom.js";
import { STATES, clusterColour, ramp, stateColour, token } from "./colours.js";
import { count, money, plural, shortId, way } from "./format.js";
import { get } from "./api.js";

const decode = (text, Kind) => new Kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const GROUPS = { way: (c) => way(c[0]), zone: (c) => c[1] || "no zone", type: (c) => c[2] || "no type", shard: (c) => c[4] };
const MARKS = new Set(["Failed", "Draining", "Creating", "Configuring", "Deleting"]);
const HEAD = 20, GAP = 10;

export function fleetMap(open) {
  const canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "Map of the fleet" });
  const legend = h("div.legend", { role: "group", "aria-label": "Legend; choose one to show it alone" });
  const said = h("p.sr", { role: "status" });
  const tip = document.getElementById("tip");
  const wrap = h("div.map-wrap", {}, canvas, said);
  let data = null, colourBy = "state", groupBy = "way", only = null, cells = [], size = 12, focus = -1, hover = null;

  const tools = h("div.tools", {},
    seg("Colour by", [["state", "State"], ["cluster", "Cluster"], ["price", "Price"]], colourBy, (v) => { colourBy = v; only = null; draw(); }),
    seg("Group by", [["way", "Paying"], ["zone", "Zone"], ["type", "Type"], ["shard", "Shard"]], groupBy, (v) => { groupBy = v; draw(); }));

  function set(document_) {
    data = {
      ...document_,
      state: decode(document_.state, Uint8Array),
      cls: decode(document_.class, Uint16Array),
      cluster: decode(document_.cluster, Uint16Array),
      counts: document_.count ? decode(document_.count, Uint32Array) : null,
    };
    draw();
  }

  const of = (i) => (data.counts ? data.counts[i] : 1);

  /** What a cell is by the present colouring: a key, for colour and legend. */
  function keyOf(i) {
    if (colourBy === "state") return data.state[i];
    if (colourBy === "cluster") return data.cluster[i];
    return data.classes[data.cls[i]][3];
  }

  function palette() {
    const totals = new Map();
    for (let i = 0; i < data.cells; i++) totals.set(keyOf(i), (totals.get(keyOf(i)) || 0) + of(i));
    const keys = [...totals.keys()].sort((a, b) => a - b);
    const most = Math.max(...keys, 1e-9);
    const found = new Map();
    for (const key of keys) {
      const colour = colourBy === "state" ? stateColour(data.states[key]) : colourBy === "cluster" ? clusterColour(key) : ramp(key / most);
      const name = colourBy === "state" ? data.states[key] : colourBy === "cluster" ? data.clusters[key] || "Not bound" : `${money(key)}/h`;
      found.set(key, { colour, name, total: totals.get(key) });
    }
    return found;
  }

  function groups() {
    const found = new Map();
    const name = GROUPS[groupBy];
    const names = data.classes.map(name);
    for (let i = 0; i < data.cells; i++) {
      const key = names[data.cls[i]];
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(i);
    }
    return [...found.entries()];
  }

  /** The largest cell with which everything fits a reasonable height. */
  function layout(width, all) {
    const columns = Math.min(all.length, width > 520 ? 2 : 1);
    const each = (width - GAP * 2 * (columns - 1)) / columns;
    const limit = data.cells > 20000 ? 900 : 430;
    for (let s = 30; s >= 2; s--) {
      const per = Math.max(1, Math.floor(each / s));
      let height = 0;
      for (let g = 0; g < all.length; g += columns) {
        height += HEAD + GAP + Math.max(...all.slice(g, g + columns).map(([, list]) => Math.ceil(list.length / per))) * s;
      }
      if (height <= limit || s === 2) return { columns, each, size: s, per, height };
    }
    return null;
  }

  function draw() {
    if (!data || !canvas.isConnected) return;
    const width = wrap.clientWidth - 32;
    if (width < 50) return;
    const all = groups();
    if (!all.length) { fill(legend); canvas.height = 0; return; }
    const place = layout(width, all);
    size = place.size;
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(place.height * scale);
    canvas.style.height = `${place.height}px`;
    const g = canvas.getContext("2d");
    g.scale(scale, scale);
    const colours = palette();
    const gap = size >= 20 ? 3 : size >= 8 ? 2 : size >= 4 ? 1 : 0;
    cells = [];
    let top = 0;
    g.textBaseline = "middle";
    for (let first = 0; first < all.length; first += place.columns) {
      let deepest = 0;
      all.slice(first, first + place.columns).forEach(([name, list], column) => {
        const left = column * (place.each + GAP * 2);
        g.font = "600 12px system-ui, sans-serif";
        g.fillStyle = token("--text");
        g.fillText(name, left, top + 7);
        const after = g.measureText(name).width + 8;
        g.font = "12px system-ui, sans-serif";
        g.fillStyle = token("--faint");
        g.fillText(count(list.reduce((sum, i) => sum + of(i), 0)), left + after, top + 7);
        list.forEach((i, n) => {
          const x = left + (n % place.per) * size, y = top + HEAD + Math.floor(n / place.per) * size;
          paint(g, i, x, y, size - gap, colours);
          cells.push({ i, x, y });
        });
        deepest = Math.max(deepest, Math.ceil(list.length / place.per) * size);
      });
      top += HEAD + GAP + deepest;
    }
    drawFocus(g);
    drawLegend(colours);
    canvas.setAttribute("aria-label", `Map of the fleet, ${plural(data.machines, "machine")}: ${[...colours.values()].map((c) => `${c.total} ${c.name}`).join(", ")}`);
  }

  function paint(g, i, x, y, s, colours) {
    const key = keyOf(i);
    const state = data.states[data.state[i]];
    g.globalAlpha = only !== null && only !== key ? 0.14 : 1;
    const absent = state === "Speculative";
    g.fillStyle = colours.get(key).colour;
    if (absent && colourBy !== "price" && s >= 6) {
      g.strokeStyle = token("--line-strong");
      g.lineWidth = 1;
      g.strokeRect(x + 0.5, y + 0.5, s - 1, s - 1);
    } else if (s >= 9) {
      g.beginPath();
      g.roundRect(x, y, s, s, s >= 16 ? 3 : 2);
      g.fill();
    } else g.fillRect(x, y, s, s);
    if (s >= 9 && colourBy === "state" && MARKS.has(state)) mark(g, state, x, y, s);
    g.globalAlpha = 1;
  }

  /** Signs beside colour, for those who cannot tell colours apart. */
  function mark(g, state, x, y, s) {
    g.strokeStyle = state === "Configuring" ? "#fff" : "#10131a";
    g.lineWidth = 1.5;
    const a = s * 0.3, b = s * 0.7, m = s / 2;
    const lines = {
      Failed: [[a, a, b, b], [b, a, a, b]], Draining: [[a, m - s * 0.08, m, b], [b, m - s * 0.08, m, b]],
      Creating: [[m, a, m, b], [a, m, b, m]], Configuring: [[a, m + s * 0.1, m, a], [b, m + s * 0.1, m, a]], Deleting: [[a, m, b, m]],
    }[state];
    g.beginPath();
    for (const [x0, y0, x1, y1] of lines) { g.moveTo(x + x0, y + y0); g.lineTo(x + x1, y + y1); }
    g.stroke();
  }

  function drawFocus(g) {
    const cell = cells[focus];
    if (!cell || document.activeElement !== canvas) return;
    g.strokeStyle = token("--text");
    g.lineWidth = 2;
    g.strokeRect(cell.x - 1, cell.y - 1, size, size);
  }

  function drawLegend(colours) {
    const shown = colourBy === "state" ? STATES.map((name) => data.states.indexOf(name)) : [...colours.keys()].slice(0, 24);
    fill(legend, shown.map((key) => {
      const found = colours.get(key) || { colour: stateColour(data.states[key] || "Idle"), name: data.states[key], total: 0 };
      const dot = h("span.dot", found.name === "Speculative" ? { class: "speculative" } : { css: { background: found.colour } });
      return h("button", { type: "button", "aria-pressed": String(only === key), onclick: () => { only = only === key ? null : key; draw(); } }, dot, found.name, h("b", { text: count(found.total) }));
    }));
  }

  function near(event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    return cells.findIndex((c) => x >= c.x && x < c.x + size && y >= c.y && y < c.y + size);
  }

  function words(i) {
    const c = data.classes[data.cls[i]];
    const cluster = data.clusters[data.cluster[i]];
    return [data.states[data.state[i]] + (cluster ? ` for ${cluster}` : ""), `${c[2]} in ${c[1]}, ${way(c[0]).toLowerCase()}, ${money(c[3])}/h`, data.counts ? plural(data.counts[i], "machine") : ""];
  }

  async function name(i) {
    if (data.counts) return "";
    try { return (await get(`/machines/@${i}`)).id; } catch { return ""; }
  }

  function show(number, x, y) {
    const i = cells[number].i;
    fill(tip, words(i).map((text, n) => (n ? h("div", { text }) : h("b", { text }))));
    tip.hidden = false;
    tip.style.left = `${Math.min(x + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(y + 14, innerHeight - tip.offsetHeight - 8)}px`;
    clearTimeout(hover);
    hover = setTimeout(async () => {
      const id = await name(i);
      if (id && !tip.hidden) tip.append(h("div.mono", { text: shortId(id) }));
    }, 250);
  }

  const hide = () => { tip.hidden = true; clearTimeout(hover); };
  canvas.addEventListener("mousemove", (e) => { const n = near(e); if (n < 0) hide(); else show(n, e.clientX, e.clientY); });
  canvas.addEventListener("mouseleave", hide);
  canvas.addEventListener("click", (e) => { const n = near(e); if (n >= 0 && !data.counts) { hide(); open(cells[n].i); } });
  canvas.addEventListener("blur", () => draw());
  canvas.addEventListener("keydown", (e) => {
    const row = Math.max(1, cells.findIndex((c) => c.y > cells[0].y));
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row };
    if (e.key === "Enter" && focus >= 0 && !data.counts) { open(cells[focus].i); return; }
    if (!(e.key in steps)) return;
    e.preventDefault();
    focus = Math.max(0, Math.min(cells.length - 1, focus + steps[e.key]));
    said.textContent = words(cells[focus].i).join("; ");
    draw();
  });
  const sized = new ResizeObserver(() => draw());
  sized.observe(wrap);
  const themed = () => draw();
  document.addEventListener("themechange", themed);
  return { root: h("div", {}, legend, wrap), tools, set, end() { hide(); sized.disconnect(); document.removeEventListener("themechange", themed); } };
}
