// Sentences for the person: a line for screen readers, and a banner that stays until it is closed.
import { byId, element, iconButton } from "./dom.js";

export function say(text) {
  byId("status").textContent = text;
}

// action: { label, run } adds a button.
export function showBanner(text, action) {
  const banner = byId("banner");
  banner.replaceChildren(element("span", {}, text));
  if (action)
    banner.append(element("button", { type: "button", class: "quiet-button",
                                      onclick: () => { hideBanner(); action.run(); } }, action.label));
  banner.append(iconButton("cross", "Close this message", hideBanner));
  banner.hidden = false;
}

export function hideBanner() {
  byId("banner").hidden = true;
}
