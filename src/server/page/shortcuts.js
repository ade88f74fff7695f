// The keyboard shortcuts and their list. Letters go by their place on the keyboard: with Alt some systems type others.
import { chat } from "./chat.js";
import { openSettings } from "./dialogs.js";
import { byId, element } from "./dom.js";
import { togglePanel } from "./panel.js";
import { focusSearch, newConversation, toggleSidebar } from "./sidebar.js";
import { switchTheme } from "./theme.js";
import { editLast, regenerateLast } from "./thread_view.js";

const kShortcuts = [
  ["Enter", "send the message"],
  ["Shift+Enter", "a new line"],
  ["Esc", "stop the answer"],
  ["Alt+N", "new conversation", "KeyN", newConversation],
  ["Alt+K", "search conversations", "KeyK", focusSearch],
  ["Alt+M", "to the message field", "KeyM", () => byId("input").focus()],
  ["Alt+U", "edit the last question", "KeyU", editLast],
  ["Alt+R", "answer again", "KeyR", regenerateLast],
  ["Alt+B", "show or hide the conversations", "KeyB", toggleSidebar],
  ["Alt+I", "device, memory and speed", "KeyI", togglePanel],
  ["Alt+S", "settings", "KeyS", openSettings],
  ["Alt+L", "light or dark", "KeyL", switchTheme],
  ["Alt+/", "this list", "Slash", openShortcuts],
];

function openShortcuts() {
  byId("shortcuts").showModal();
}

export function startShortcuts() {
  const list = byId("shortcut-list");
  for (const [keys, does] of kShortcuts)
    list.append(element("dt", {}, ...keys.split("+").map((key) => element("kbd", {}, key))), element("dd", {}, does));
  byId("open-shortcuts").addEventListener("click", openShortcuts);
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && chat.isWriting()) return chat.stop();
    if (!event.altKey || event.ctrlKey || event.metaKey) return;
    const found = kShortcuts.find(([, , code]) => code && code === event.code);
    if (!found) return;
    event.preventDefault();
    found[3]();
  });
}
