// The live map of the fleet: one cell per machine (or per class of machines, when there are very many),
// grouped and coloured as asked. Drawn on a canvas; arrow keys walk through the cells. Small cells are
// written as pixels of one picture: a hundred thousand of them must not hold up the page.
import { fill, h, seg } from "./dom.js";
import { STATES, clusterColour, ramp, stateColour, token } from "./colours.js";
import { count, money, plural, shortId, way } from "./format.js";
import { get } from "./api.js";

function decode(text, Kind) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Kind(bytes.buffer);
}
const GROUPS = { way: (c) => way(c[0]), zone: (c) => c[1] || "no zone", type: (c) => c[2] || "no type", shard: (c) => c[4] };
const MARKS = new Set(["Failed", "Draining", "Creating", "Configuring", "Deleting"]);
const HEAD = 20, GAP = 10;
const PIXELS = 9;
/** Below this size a cell is a square of pixels, without corners or marks. */

export function fleetMap(open) {
  const canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "Map of the fleet" });
  const legend = h("div.legend", { role: "group", "aria-label": "Legend; choose one to show it alone" });
  const said = h("p.sr", { role: "status" });
  const tip = document.getElementById("tip");
  const nothing = h("p.empty", { hidden: true, text: "No machine is known yet: a shard lists what its providers offer." });
  const wrap = h("div.map-wrap", {}, canvas, nothing, said);
  let data = null, colourBy = "state", groupBy = "way", only = null, boxes = [], order = new Uint32Array(0), size = 12, focus = -1, hover = null;

  const tools = h("div.tools", {},
    seg("Colour by", [["state", "State"], ["cluster", "Cluster"], ["price", "Price"]], colourBy, (v) => { colourBy = v; only = null; draw(); }),
    seg("Group by", [["way", "Capacity type"], ["zone", "Zone"], ["type", "Type"], ["shard", "Shard"]], groupBy, (v) => { groupBy = v; draw(); }));

  function set(document_) {
    data = {
      ...document_,
      state: decode(document_.state, Uint8Array),
      cls: decode(document_.class, document_.class_bits === 32 ? Uint32Array : Uint16Array),
      cluster: decode(document_.cluster, Uint16Array),
      counts: document_.count ? decode(document_.count, Uint32Array) : null,
    };
    draw();
  }

  const of = (i) => (data.counts ? data.counts[i] : 1);

  /** Per cell a small number by the present colouring, and what each number is. */
  function palette() {
    const n = data.cells;
    let keys, names, colours;
    if (colourBy === "state") {
      keys = data.state;
      names = data.states;
      colours = names.map((name) => (name === "Unspecified" ? token("--line") : stateColour(name)));
    } else if (colourBy === "cluster") {
      keys = data.cluster;
      names = data.clusters.map((name) => name || "Not bound");
      colours = names.map((_, i) => clusterColour(i));
    } else {
      const prices = [...new Set(data.classes.map((c) => c[3]))].sort((x, y) => x - y);
      const most = Math.max(prices.at(-1) || 0, 1e-9);
      const number = Uint16Array.from(data.classes, (c) => prices.indexOf(c[3]));
      keys = new Uint16Array(n);
      for (let i = 0; i < n; i++) keys[i] = number[data.cls[i]];
      names = prices.map((price) => `${money(price)}/h`);
      colours = prices.map((price) => ramp(price / most));
    }
    const totals = new Uint32Array(names.length);
    for (let i = 0; i < n; i++) totals[keys[i]] += of(i);
    return { keys, names, colours, totals };
  }

  /** Cells by group: their numbers one group after the other, and where each group begins. */
  function groups() {
    const titles = [], known = new Map();
    const ofClass = Uint16Array.from(data.classes, (c) => {
      const title = GROUPS[groupBy](c);
      if (!known.has(title)) { known.set(title, titles.length); titles.push(title); }
      return known.get(title);
    });
    const counts = new Uint32Array(titles.length);
    for (let i = 0; i < data.cells; i++) counts[ofClass[data.cls[i]]]++;
    const starts = new Uint32Array(titles.length + 1);
    for (let g = 0; g < titles.length; g++) starts[g + 1] = starts[g] + counts[g];
    const next = starts.slice();
    order = new Uint32Array(data.cells);
    for (let i = 0; i < data.cells; i++) order[next[ofClass[data.cls[i]]]++] = i;
    return titles.map((title, g) => ({ title, from: starts[g], to: starts[g + 1], length: counts[g] })).filter((g) => g.length).sort((x, y) => order[x.from] - order[y.from]);
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
        height += HEAD + GAP + Math.max(...all.slice(g, g + columns).map((each) => Math.ceil(each.length / per))) * s;
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
    nothing.hidden = Boolean(all.length);
    canvas.hidden = !all.length;
    if (!all.length) { fill(legend); return; }
    const place = layout(width, all);
    size = place.size;
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(place.height * scale);
    canvas.style.height = `${place.height}px`;
    const g = canvas.getContext("2d");
    const paint = palette();
    const gap = size >= 20 ? 3 : size >= 8 ? 2 : size >= 4 ? 1 : 0;
    boxes = [];
    let top = 0;
    for (let first = 0; first < all.length; first += place.columns) {
      const row = all.slice(first, first + place.columns);
      row.forEach((group, column) => boxes.push({ ...group, x: column * (place.each + GAP * 2), y: top + HEAD, per: place.per, head: top + 7 }));
      top += HEAD + GAP + Math.max(...row.map((group) => Math.ceil(group.length / place.per) * size));
    }
    if (size - gap < PIXELS) drawPixels(g, paint, gap, scale);
    g.setTransform(scale, 0, 0, scale, 0, 0);
    if (size - gap >= PIXELS) drawCells(g, paint, gap);
    drawHeads(g);
    drawFocus(g);
    drawLegend(paint);
    const told = paint.names.map((name, k) => (paint.totals[k] ? `${paint.totals[k]} ${name}` : "")).filter(Boolean).slice(0, 12).join(", ");
    canvas.setAttribute("aria-label", `Map of the fleet, ${plural(data.machines, "machine")}: ${told}`);
  }

  function drawPixels(g, paint, gap, scale) {
    const picture = g.createImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(picture.data.buffer);
    const inks = Uint32Array.from(paint.colours, (colour, k) => ink(g, colour, only !== null && only !== k ? 0.16 : 1));
    const step = size * scale, side = Math.max(1, Math.round((size - gap) * scale));
    for (const box of boxes) {
      for (let n = box.from; n < box.to; n++) {
        const at = n - box.from;
        const x = Math.round(box.x * scale + (at % box.per) * step), y = Math.round(box.y * scale + Math.floor(at / box.per) * step);
        const colour = inks[paint.keys[order[n]]];
        for (let dy = 0; dy < side; dy++) {
          const from = (y + dy) * canvas.width + x;
          pixels.fill(colour, from, from + side);
        }
      }
    }
    g.putImageData(picture, 0, 0);
  }

  /** A colour as a pixel: drawn once, and read again. */
  function ink(g, colour, alpha) {
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, 1, 1);
    g.globalAlpha = alpha;
    g.fillStyle = colour;
    g.fillRect(0, 0, 1, 1);
    g.globalAlpha = 1;
    return new Uint32Array(g.getImageData(0, 0, 1, 1).data.buffer)[0];
  }

  function drawCells(g, paint, gap) {
    const s = size - gap, line = token("--line-strong");
    for (const box of boxes) {
      for (let n = box.from; n < box.to; n++) {
        const i = order[n], at = n - box.from, key = paint.keys[i], state = data.states[data.state[i]];
        const x = box.x + (at % box.per) * size, y = box.y + Math.floor(at / box.per) * size;
        g.globalAlpha = only !== null && only !== key ? 0.14 : 1;
        if (state === "Speculative" && colourBy !== "price") {
          g.strokeStyle = line;
          g.lineWidth = 1;
          g.strokeRect(x + 0.5, y + 0.5, s - 1, s - 1);
        } else {
          g.fillStyle = paint.colours[key];
          g.beginPath();
          g.roundRect(x, y, s, s, s >= 16 ? 3 : 2);
          g.fill();
        }
        if (colourBy === "state" && MARKS.has(state)) mark(g, state, x, y, s);
      }
    }
    g.globalAlpha = 1;
  }

  function drawHeads(g) {
    g.textBaseline = "middle";
    for (const box of boxes) {
      g.font = "600 12px system-ui, sans-serif";
      g.fillStyle = token("--text");
      g.fillText(box.title, box.x, box.head);
      const after = g.measureText(box.title).width + 8;
      g.font = "12px system-ui, sans-serif";
      g.fillStyle = token("--faint");
      let total = box.length;
      if (data.counts) { total = 0; for (let n = box.from; n < box.to; n++) total += of(order[n]); }
      g.fillText(count(total), box.x + after, box.head);
    }
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
    const box = boxes.find((each) => focus >= each.from && focus < each.to);
    if (!box || document.activeElement !== canvas) return;
    const at = focus - box.from;
    g.strokeStyle = token("--text");
    g.lineWidth = 2;
    g.strokeRect(box.x + (at % box.per) * size - 1, box.y + Math.floor(at / box.per) * size - 1, size, size);
  }

  function drawLegend(paint) {
    const shown = colourBy === "state" ? STATES.map((name) => data.states.indexOf(name)) : [...paint.totals.keys()].filter((k) => paint.totals[k]).slice(0, 24);
    fill(legend, shown.map((key) => {
      const name = paint.names[key];
      const dot = h("span.dot", name === "Speculative" ? { class: "speculative" } : { css: { background: paint.colours[key] } });
      return h("button", { type: "button", "aria-pressed": String(only === key), onclick: () => { only = only === key ? null : key; draw(); } }, dot, name, h("b", { text: count(paint.totals[key]) }));
    }));
  }

  /** The place in `order` of the cell under the pointer; -1 for none. */
  function near(event) {
    const at = canvas.getBoundingClientRect();
    const x = event.clientX - at.left, y = event.clientY - at.top;
    for (const box of boxes) {
      const column = Math.floor((x - box.x) / size), row = Math.floor((y - box.y) / size);
      const n = box.from + row * box.per + column;
      if (column >= 0 && column < box.per && row >= 0 && n < box.to) return n;
    }
    return -1;
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
    const i = order[number];
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
  canvas.addEventListener("click", (e) => { const n = near(e); if (n >= 0 && !data.counts) { hide(); open(order[n]); } });
  canvas.addEventListener("blur", () => draw());
  canvas.addEventListener("keydown", (e) => {
    const row = boxes[0]?.per || 1;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row };
    if (e.key === "Enter" && focus >= 0 && !data.counts) { open(order[focus]); return; }
    if (!(e.key in steps)) return;
    e.preventDefault();
    focus = Math.max(0, Math.min(order.length - 1, focus + steps[e.key]));
    said.textContent = words(order[focus]).join("; ");
    draw();
  });
  let drawnFor = 0;
  // Drawing changes the height, which does not require another drawing.
  const sized = new ResizeObserver(() => { if (wrap.clientWidth !== drawnFor) { drawnFor = wrap.clientWidth; draw(); } });
  sized.observe(wrap);
  const themed = () => draw();
  document.addEventListener("themechange", themed);
  return { root: h("div", {}, legend, wrap), tools, set, end() { hide(); sized.disconnect(); document.removeEventListener("themechange", themed); } };
}
