// What a person has chosen, kept in the browser's local storage. Empty texts mean the server's default.
const kName = "prism-settings";
const kDefaults = { system: "", temperature: "", top_p: "", top_k: "", min_p: "", repeat_penalty: "", seed: "",
                    max_tokens: "", key: "", model: "", theme: "", hidesSidebar: false, showsPanel: false };
const kNumbers = ["temperature", "top_p", "top_k", "min_p", "repeat_penalty", "seed", "max_tokens"];

function read() {
  try {
    return JSON.parse(localStorage.getItem(kName)) ?? {};
  } catch {
    return {};  // not readable: begin again
  }
}

export const settings = { ...kDefaults, ...read() };

export function saveSettings(changes) {
  Object.assign(settings, changes);
  try {
    localStorage.setItem(kName, JSON.stringify(settings));
  } catch {
    // Kept until the page closes.
  }
}

// The defaults of what the settings dialog shows.
export const resettable = () =>
  Object.fromEntries(["system", ...kNumbers].map((name) => [name, kDefaults[name]]));

// The fields of a request.
export function samplerFields() {
  const fields = {};
  for (const name of kNumbers) if (settings[name] !== "") fields[name] = Number(settings[name]);
  return fields;
}
