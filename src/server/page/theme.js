// Light or dark: as the system says, until a person chooses.
import { byId, setIcon } from "./dom.js";
import { saveSettings, settings } from "./settings.js";

const system = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (settings.theme ? settings.theme === "dark" : system.matches);

function apply() {
  if (settings.theme) document.documentElement.dataset.theme = settings.theme;
  else delete document.documentElement.dataset.theme;
  setIcon(byId("theme"), isDark() ? "sun" : "moon");
}

// What the system says is not kept, so that the page goes on following it.
export function switchTheme() {
  const wanted = isDark() ? "light" : "dark";
  saveSettings({ theme: (wanted === "dark") === system.matches ? "" : wanted });
  apply();
}

export function startTheme() {
  apply();
  system.addEventListener("change", apply);
  byId("theme").addEventListener("click", switchTheme);
}
