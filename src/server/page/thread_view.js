// The messages of the open conversation, kept in view while an answer grows.
import { chat } from "./chat.js";
import { byId, element } from "./dom.js";
import { MessageView } from "./message_view.js";
import { say } from "./notice.js";

const kNearEnd = 80;  // pixels: closer to the end means that a person follows the answer
const kPauses = 3;    // times the time of a drawing: long answers must not keep the browser busy

const views = new Map();  // by the id of a message
const dirty = new Set();  // the messages to draw in the next frame
let lastMs = 0;           // that the last drawing took
let follows = true;

const scroll = () => byId("scroll");

function toEnd() {
  scroll().scrollTop = scroll().scrollHeight;
  follows = true;
  byId("to-end").hidden = true;
}

function showAll() {
  const thread = byId("thread");
  const path = chat.tree.path();
  views.clear();
  for (const message of path) views.set(message.id, new MessageView(message));
  thread.replaceChildren(...[...views.values()].map((view) => view.element));
  thread.classList.toggle("is-empty", path.length === 0);
  if (path.length === 0) thread.append(welcome());
  byId("title").textContent = chat.conversation?.title ?? "";
  document.title = chat.conversation ? `${chat.conversation.title} · Prism` : "Prism";
  showButtons();
}

function welcome() {
  return element("div", { class: "welcome" }, element("img", { src: "page/icon.svg", alt: "", width: "56", height: "56" }),
                 element("p", { class: "welcome-text" }, "What is on your mind?"),
                 element("p", { id: "welcome-facts", class: "muted" }));
}

function showButtons() {
  const isWriting = chat.isWriting();
  byId("send").hidden = isWriting;
  byId("stop").hidden = !isWriting;
  byId("thread").setAttribute("aria-busy", isWriting);
}

// Drawn at most once a frame, however many pieces arrive.
function drawSoon(message) {
  if (dirty.size === 0) setTimeout(() => requestAnimationFrame(draw), lastMs * kPauses);
  dirty.add(message.id);
}

function draw() {
  const began = performance.now();
  for (const id of dirty) views.get(id)?.update();
  dirty.clear();
  if (follows) toEnd();
  lastMs = performance.now() - began;  // with the layout, which toEnd() needs
}

export function startThread() {
  let shown = null;
  chat.addEventListener("open", () => {
    showAll();
    // A branch that is switched stays where it is.
    if (shown !== chat.conversation?.id || chat.isWriting()) toEnd();
    shown = chat.conversation?.id;
  });
  chat.addEventListener("message", (event) => drawSoon(event.detail));
  chat.addEventListener("end", (event) => {
    showButtons();
    say(event.detail.state === "done" ? "The answer is complete." : "The answer has ended.");
  });
  scroll().addEventListener("scroll", () => {
    follows = scroll().scrollHeight - scroll().scrollTop - scroll().clientHeight < kNearEnd;
    byId("to-end").hidden = follows;
  });
  byId("to-end").addEventListener("click", toEnd);
}

// For shortcuts: the newest question, and the newest answer.
export function editLast() {
  const last = chat.tree.path().findLast((each) => each.role === "user");
  if (last) views.get(last.id).edit();
}

export function regenerateLast() {
  const last = chat.tree.path().at(-1);
  if (last && !chat.isWriting()) chat.regenerate(last);
}
