// The field for a new message, with its files.
import { attachmentChip, readTextFile } from "./attachments.js";
import { chat } from "./chat.js";
import { byId } from "./dom.js";
import { showBanner } from "./notice.js";

let attachments = [];

const input = () => byId("input");
// A keyboard on a screen has no Shift+Enter.
const isTouch = () => window.matchMedia("(pointer: coarse)").matches;

function fitHeight() {
  input().style.height = "auto";
  input().style.height = `${input().scrollHeight}px`;
}

function showAttachments() {
  const list = byId("attachments");
  list.hidden = attachments.length === 0;
  list.replaceChildren(...attachments.map((each) => attachmentChip(each, () => {
    attachments = attachments.filter((other) => other !== each);
    showAttachments();
    input().focus();
  })));
}

async function attach(files) {
  for (const file of files) {
    try {
      attachments.push(await readTextFile(file));
    } catch (thrown) {
      showBanner(thrown.message);
    }
  }
  showAttachments();
  input().focus();
}

function send(event) {
  event?.preventDefault();
  const text = input().value;
  if (chat.isWriting() || (!text.trim() && attachments.length === 0)) return;
  const files = attachments;
  input().value = "";
  attachments = [];
  showAttachments();
  fitHeight();
  chat.send(text, files);
}

export function startComposer() {
  const form = byId("composer");
  form.addEventListener("submit", send);
  input().addEventListener("input", fitHeight);
  input().addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !isTouch()) send(event);
  });
  input().addEventListener("paste", (event) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    attach(event.clipboardData.files);
  });
  // The address after # names a conversation, so the link must not change it.
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); input().focus(); });
  byId("stop").addEventListener("click", () => { chat.stop(); input().focus(); });
  byId("attach").addEventListener("click", () => byId("attach-file").click());
  byId("attach-file").addEventListener("change", async (event) => {
    await attach(event.target.files);
    event.target.value = "";
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    attach(event.dataTransfer.files);
  });
  chat.addEventListener("open", () => { if (!isTouch() && document.activeElement === document.body) input().focus(); });
}
