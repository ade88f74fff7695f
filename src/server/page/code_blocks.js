// Code blocks with their language and a button that copies them.
import { element, setIcon } from "./dom.js";
import { icon } from "./icons.js";
import { say } from "./notice.js";

export async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyBySelection(text);  // the clipboard needs https or this machine's own address
  }
  say("Copied");
  setIcon(button, "check");
  setTimeout(() => setIcon(button, "copy"), 1500);
}

function copyBySelection(text) {
  const area = element("textarea", { class: "visually-hidden", readonly: true });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function addCopyButtons(root) {
  for (const code of root.querySelectorAll("pre > code")) {
    const frame = element("div", { class: "code" });
    const button = element("button", { type: "button", class: "quiet-button", "aria-label": "Copy the code" },
                           icon("copy"), "Copy");
    button.addEventListener("click", () => copyText(code.textContent, button));
    const pre = code.parentElement;
    pre.tabIndex = 0;  // scrolls with the keyboard
    pre.replaceWith(frame);
    frame.append(element("div", { class: "code-top" }, element("span", {}, code.dataset.language || "text"), button), pre);
  }
}
