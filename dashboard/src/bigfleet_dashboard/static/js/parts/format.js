// Numbers, money and times as people read them.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

const brief = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

/** `100K` from ten thousand on, where there is little room. */
export const short = (n) => (n >= 10000 ? brief.format(n) : whole.format(n));
export const count = (n) => (n === null || n === undefined ? "–" : whole.format(n));
export const plural = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

export function money(dollars) {
  if (dollars === null || dollars === undefined) return "–";
  if (dollars === 0) return "$0";
  const digits = Math.abs(dollars) >= 1000 ? 0 : Math.abs(dollars) < 0.1 ? 3 : 2;
  return `$${dollars.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}

export function ms(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return `${value >= 100 ? value.toFixed(0) : value.toFixed(1)} ms`;
}

export function lasting(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return "now";
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${Math.floor(seconds)} s`;
}

export function ago(unix) {
  if (!unix) return "never";
  const seconds = Math.max(0, Date.now() / 1000 - unix);
  return seconds < 1 ? "just now" : `${lasting(seconds)} ago`;
}

export function clock(nanos) {
  return new Date(nanos / 1e6).toLocaleTimeString("en-GB");
}

export const percent = (share) => `${(share * 100).toFixed(share < 0.1 && share > 0 ? 1 : 0)} %`;

/** `24.5` of `24500m`: quantities as people say them. */
const quantity = (text) => (/^\d+m$/.test(text) ? String(Number(text.slice(0, -1)) / 1000) : text);
export const amounts = (resources) =>
  Object.entries(resources || {}).map(([name, text]) => `${name} ${quantity(text)}`).join(", ") || "nothing";

/** The last two parts of a machine's id: ids are long, and begin alike. */
export function shortId(id) {
  const parts = id.split("/");
  return parts.length > 2 ? parts.slice(-2).join("/") : id;
}

export const WAYS = { BareMetal: "Bare metal", Reserved: "Reserved", OnDemand: "On demand", Spot: "Spot" };
export const way = (name) => WAYS[name] || name;
export const reasonWords = (reason) => (reason ? reason.replaceAll("_", " ").toLowerCase() : "");
