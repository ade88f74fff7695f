// The list of conversations: open, search, rename, delete.
import { chat } from "./chat.js";
import { confirmDelete } from "./dialogs.js";
import { byId, element, iconButton, isNarrow, narrow } from "./dom.js";
import { saveSettings, settings } from "./settings.js";
import * as store from "./store.js";
import { exportConversations, startTransfer } from "./transfer.js";

const kExcerpt = 60;
let latest = 0;  // number of the latest drawing: an older search may end later

async function showList() {
  const number = ++latest;
  const wanted = byId("search").value.trim();
  let all = [], found = new Map();
  try {
    all = await store.listConversations();
    if (wanted) found = await store.searchMessages(wanted);
  } catch {
    // The first message that cannot be kept says so.
  }
  if (number !== latest) return;
  const list = all.filter((each) => !wanted || found.has(each.id) || each.title.toLowerCase().includes(wanted.toLowerCase()));
  const nodes = [];
  let group = "";
  for (const each of list) {
    if (age(each.updated) !== group) nodes.push(element("h2", { class: "group" }, (group = age(each.updated))));
    nodes.push(row(each, excerpt(found.get(each.id), wanted)));
  }
  if (list.length === 0)
    nodes.push(element("p", { class: "muted nothing" }, wanted ? "Nothing found." : "Conversations appear here."));
  const focused = document.activeElement?.closest("#conversations [data-id]")?.dataset.id;
  byId("conversations").replaceChildren(...nodes);
  if (focused) nodes.find((each) => each.dataset.id === focused)?.querySelector(".row-open").focus();
}

function age(time) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  if (time >= midnight) return "Today";
  if (time >= midnight - 86400000) return "Yesterday";
  return time >= midnight - 7 * 86400000 ? "Last 7 days" : "Earlier";
}

// The place where the text was found.
function excerpt(content, wanted) {
  if (!content) return "";
  const at = Math.max(0, content.toLowerCase().indexOf(wanted.toLowerCase()) - 15);
  return (at > 0 ? "… " : "") + content.slice(at, at + kExcerpt);
}

function row(conversation, found) {
  const isOpen = conversation.id === chat.conversation?.id;
  const open = element("button", { type: "button", class: "row-open", "aria-current": isOpen && "true",
                                   onclick: () => { hideIfNarrow(); chat.open(conversation.id); } },
                       element("span", { class: "row-title" }, conversation.title));
  if (found) open.append(element("span", { class: "row-found" }, found));
  const made = element("div", { class: "row", "data-id": conversation.id }, open,
    element("span", { class: "row-buttons" },
      iconButton("pencil", `Rename ${conversation.title}`, () => rename(made, conversation)),
      iconButton("download", `Export ${conversation.title}`, () => exportConversations([conversation])),
      iconButton("trash", `Delete ${conversation.title}`, async () => {
        if (await confirmDelete(`Delete “${conversation.title}”?`)) await chat.delete(conversation.id);
      })));
  return made;
}

function rename(made, conversation) {
  const field = element("input", { class: "row-edit", "aria-label": "New title" });
  field.value = conversation.title;
  let isDone = false;
  const end = (isKept) => {
    if (isDone) return;
    isDone = true;
    const title = field.value.trim();
    if (isKept && title) chat.rename(conversation.id, title);
    else showList();
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing) end(true);
    if (event.key === "Escape") { event.stopPropagation(); end(false); }
  });
  field.addEventListener("blur", () => end(true));
  made.replaceChildren(field);
  field.select();
}

function setSidebar(isShown) {
  document.body.classList.toggle("hides-sidebar", !isShown);
  byId("veil").hidden = !(isShown && isNarrow());
  if (!isNarrow()) saveSettings({ hidesSidebar: !isShown });
}

function hideIfNarrow() {
  if (isNarrow()) setSidebar(false);
}

export function toggleSidebar() {
  setSidebar(document.body.classList.contains("hides-sidebar"));
}

export function newConversation() {
  hideIfNarrow();
  chat.startNew();
  byId("input").focus();
}

export function focusSearch() {
  setSidebar(true);
  byId("search").focus();
}

const setByWidth = () => setSidebar(!isNarrow() && !settings.hidesSidebar);

export function startSidebar() {
  setByWidth();
  narrow.addEventListener("change", setByWidth);
  for (const id of ["show-sidebar", "hide-sidebar", "veil"]) byId(id).addEventListener("click", toggleSidebar);
  byId("new").addEventListener("click", newConversation);
  byId("search").addEventListener("input", showList);
  for (const event of ["list", "open"]) chat.addEventListener(event, showList);
  store.onOtherPage(showList);
  startTransfer(showList);
}
