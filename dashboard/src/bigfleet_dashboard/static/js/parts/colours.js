// Colours by meaning, read from the style sheet so that both themes have their own.

export const STATES = ["Speculative", "Creating", "Idle", "Configuring", "Configured", "Draining", "Deleting", "Failed"];
const LIGHT = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8f7a00", "#7a5195", "#4d8f3c", "#a05a2c"];
const KINDS = { Bootstrap: "accent", Provision: "accent", Reclaim: "warn", Drain: "warn", Preempt: "bad", Delete: "", Keep: "good" };

let cache = new Map();
export function forgetColours() { cache = new Map(); }

export function token(name) {
  if (!cache.has(name)) cache.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return cache.get(name);
}

export const stateColour = (state) => token(`--state-${state.toLowerCase()}`);
export const clusterColour = (index) => (index <= 0 ? token("--state-speculative") : index <= LIGHT.length ? LIGHT[index - 1] : `hsl(${(index * 137.5) % 360} 55% 50%)`);
export const kindClass = (kind) => KINDS[kind] ?? "";

/** One hue from pale to strong, for a share from 0 to 1. */
export function ramp(share) {
  const dark = matchDark();
  const l = dark ? 25 + share * 50 : 88 - share * 58;
  return `hsl(232 ${50 + share * 20}% ${l}%)`;
}

export function matchDark() {
  const theme = document.documentElement.dataset.theme;
  return theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
}
