// Finds and makes elements. Texts become text nodes, never HTML.
import { icon } from "./icons.js";

export const byId = (id) => document.getElementById(id);

// element("button", { class: "send", onclick: send, "aria-label": "Send" }, "text or node", ...)
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return made;
}

// A button that shows only an icon; `label` is its accessible name and its tooltip.
export function iconButton(name, label, onclick, properties = {}) {
  return element("button", { type: "button", class: "icon-button", title: label, "aria-label": label, onclick,
                             ...properties }, icon(name));
}

// Puts icons into the elements of the HTML that have data-icon.
export function placeIcons(root) {
  for (const each of root.querySelectorAll("[data-icon]")) each.prepend(icon(each.dataset.icon));
}

export function setIcon(button, name) {
  button.querySelector("svg")?.remove();
  button.prepend(icon(name));
}

// On a narrow screen the conversations lie above the messages (style.css has the same width).
export const narrow = window.matchMedia("(max-width: 860px)");
export const isNarrow = () => narrow.matches;
