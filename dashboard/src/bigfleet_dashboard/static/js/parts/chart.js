// Small charts on uPlot: a line with an area, or states stacked. Redrawn when data or theme change.
import { h } from "./dom.js";
import { token } from "./colours.js";

const WHOLE = [1, 2, 5].flatMap((n) => [1, 10, 100, 1e3, 1e4, 1e5, 1e6].map((ten) => n * ten)).sort((a, b) => a - b);

/** series: [{name, colour (a function), value}], stacked draws each on top of the one before; `whole`
 * is for what is counted, which has no halves. */
export function chart({ label, series, stacked = false, whole = false, format = (v) => v, height = 132 }) {
  const box = h("div.chart", { role: "img", "aria-label": label, css: { height: `${height}px` } });
  let plot = null, data = null;

  function options() {
    const axis = { stroke: token("--faint"), grid: { stroke: token("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    return {
      width: Math.max(120, box.clientWidth), height, legend: { show: false }, padding: [8, 26, 0, 0],
      cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
      scales: { x: { time: true }, y: { range: (_u, _min, max) => [0, Math.max(max * 1.1, whole ? 4 : stacked ? 1 : 0.5)] } },
      axes: [{ ...axis, space: 84, size: 24, values: (_u, all) => all.map((t) => new Date(t * 1000).toLocaleTimeString("en-GB")) }, { ...axis, size: 46, space: 34, ...(whole ? { incrs: WHOLE } : {}), values: (_u, all) => all.map(format) }],
      series: [{}, ...series.map((s) => ({ label: s.name, stroke: s.colour(), width: stacked ? 0 : 1.6, fill: stacked ? s.colour() : `${s.colour()}22`, points: { show: false } }))],
    };
  }

  function draw() {
    if (!data || !box.isConnected) return;
    plot?.destroy();
    plot = new window.uPlot(options(), shape(data), box);
  }

  /** Stacked areas are drawn from the top one down, each over what is above it. */
  function shape([x, ...columns]) {
    if (!stacked) return [x, ...columns];
    const sums = [];
    let below = x.map(() => 0);
    for (const column of columns) { below = below.map((v, i) => v + (column[i] || 0)); sums.push(below); }
    return [x, ...sums.reverse()];
  }

  const sized = new ResizeObserver(() => { if (plot && Math.abs(plot.width - box.clientWidth) > 2) plot.setSize({ width: Math.max(120, box.clientWidth), height }); });
  sized.observe(box);
  const themed = () => draw();
  document.addEventListener("themechange", themed);
  if (stacked) series = [...series].reverse();
  return {
    root: box,
    set(next) {
      data = next;
      if (plot && box.isConnected) plot.setData(shape(next));
      else draw();
    },
    end() { sized.disconnect(); document.removeEventListener("themechange", themed); plot?.destroy(); },
  };
}
