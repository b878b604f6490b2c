// Before the first paint, so that a dark page never flashes light.
(() => {
  let kept = null;
  try { kept = localStorage.getItem("bigfleet-theme"); } catch { /* storage may be forbidden */ }
  document.documentElement.dataset.theme = kept === "dark" || kept === "light" ? kept : "auto";
})();
