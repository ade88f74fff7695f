// The panel with what Prism knows: device and why, placement, memory, and the speed of the last answer.
import { getJson } from "./api.js";
import { sizeText } from "./attachments.js";
import { chat } from "./chat.js";
import { showDefaults } from "./dialogs.js";
import { byId, element } from "./dom.js";
import { rateText, secondsText } from "./message_view.js";
import { saveSettings, settings } from "./settings.js";

let props = {};
let devices = null;  // null: not asked yet

const count = (number) => number.toLocaleString("en");

function section(title, ...content) {
  return element("section", { class: "facts-section" }, element("h3", {}, title), ...content);
}

// rows: [name, value]; those without a value are left out.
function table(rows) {
  const list = element("dl", { class: "facts-list" });
  for (const [name, value] of rows)
    if (value !== undefined && value !== "") list.append(element("dt", {}, name), element("dd", {}, value));
  return list;
}

function answerSection() {
  const answer = chat.tree.path().findLast((each) => each.timings);
  if (!answer) return section("Last answer", element("p", { class: "muted" }, "Speeds appear with the first answer."));
  const { timings, usage } = answer;
  const context = props.default_generation_settings?.n_ctx;
  const used = usage ? usage.prompt_tokens + usage.completion_tokens : 0;
  const parts = [table([
    ["Time to first token", secondsText(timings.first_token_ms)],
    ["Prompt", `${count(timings.prompt_n)} tokens`],
    ["From the cache", timings.cache_n ? `${count(timings.cache_n)} tokens` : ""],
    ["Prompt speed", timings.prompt_per_second > 0 ? `${rateText(timings.prompt_per_second)} tokens/s` : ""],
    ["Answer", `${count(timings.predicted_n)} tokens`],
    ["Answer speed", timings.predicted_per_second > 0 ? `${rateText(timings.predicted_per_second)} tokens/s` : ""],
  ])];
  if (context && used)
    parts.push(element("label", { class: "meter" }, `Context: ${count(used)} of ${count(context)} tokens`,
                       element("meter", { min: 0, max: context, value: used, high: context * 0.9 })));
  return section("Last answer", ...parts);
}

function modelSections() {
  if (!props.model_alias) return [];
  if (!props.device)
    return [section("Model", table([["Name", props.model_alias]]),
                    element("p", { class: "muted" }, "Not loaded yet: the first message loads it."))];
  const placement = props.placement.map((each) => element("li", {},
    element("strong", {}, each.id), ` ${each.name}`,
    table([["Layers", `${each.layers} of ${props.layers}`], ["Weights", sizeText(each.weight_bytes)],
           ["KV cache", sizeText(each.cache_bytes)], ["Working memory", each.work_bytes ? sizeText(each.work_bytes) : ""]])));
  return [
    section("Model", table([["Name", props.model_alias], ["Context", `${count(props.default_generation_settings.n_ctx)} tokens`],
                            ["Answers at once", props.total_slots], ["Loaded in", secondsText(props.load_seconds * 1000)],
                            ["Memory", sizeText(props.memory_bytes)]])),
    section("Device", element("p", {}, element("strong", {}, props.device.id), ` ${props.device.name}`),
            element("p", { class: "muted why" }, props.device.why)),
    section("Placement", element("ul", { class: "placement" }, ...placement)),
  ];
}

function devicesSection() {
  if (!devices) return "";
  const list = devices.map((each) => element("li", {}, element("strong", {}, each.id), ` ${each.name}`,
    each.is_software ? element("span", { class: "muted" }, " (software)") : ""));
  return section("All devices", element("ul", { class: "devices" }, ...list));
}

function show() {
  byId("facts").replaceChildren(answerSection(), ...modelSections(), devicesSection());
  const facts = byId("welcome-facts");
  if (facts && props.model_alias)
    facts.textContent = props.device ? `${props.model_alias} on ${props.device.name}` : props.model_alias;
}

// Asks again for the model that is chosen.
export async function refreshFacts() {
  props = await getJson(`props?model=${encodeURIComponent(settings.model)}`);
  showDefaults(props.default_generation_settings?.params ?? {});
  show();
  if (byId("panel").hidden || devices) return;
  devices = (await getJson("devices")).devices;
  show();
}

// The panel is an extra: what it cannot get is left out.
const refreshQuietly = () => refreshFacts().catch(() => {});

export function togglePanel() {
  const panel = byId("panel");
  panel.hidden = !panel.hidden;
  byId("toggle-panel").setAttribute("aria-expanded", !panel.hidden);
  saveSettings({ showsPanel: !panel.hidden });
  if (!panel.hidden) refreshQuietly();
}

export function startPanel(isNarrow) {
  for (const id of ["toggle-panel", "close-panel"]) byId(id).addEventListener("click", togglePanel);
  chat.addEventListener("open", show);
  chat.addEventListener("end", refreshQuietly);
  if (settings.showsPanel && !isNarrow) togglePanel();
}
