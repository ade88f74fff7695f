// One message as an element, which follows its content while it is written.
import { attachmentView } from "./attachments.js";
import { copyText } from "./code_blocks.js";
import { chat } from "./chat.js";
import { confirmDelete } from "./dialogs.js";
import { element, iconButton } from "./dom.js";
import { MarkdownView } from "./markdown.js";

const kReadingShownAfterMs = 500;  // most prompts take less time to read

export class MessageView {
  constructor(message) {
    this.message = message;
    this.body = element("div", { class: "body" });
    this.foot = element("div", { class: "foot" });
    const name = message.role === "user" ? "Your message" : "Answer";
    this.element = element("article", { class: `message ${message.role}`, "aria-label": name, "data-id": message.id },
                           this.body, this.foot);
    if (message.role === "user") this.#showQuestion();
    else this.update();
  }

  // Shows the content of an answer as it is now.
  update() {
    const { message } = this;
    this.element.dataset.state = message.state;
    this.#showReading();
    this.#showThinking();
    this.content ??= this.body.appendChild(element("div", { class: "content" }));
    this.markdown ??= new MarkdownView(this.content);
    this.caret?.remove();
    this.markdown.show(message.content);
    if (message.state === "writing") {
      this.caret ??= element("span", { class: "caret", "aria-label": "Writing" });
      const last = this.content.lastElementChild;
      const isText = last && /^(P|UL|OL|H\d)$/.test(last.tagName);
      (isText ? deepest(last) : this.content).append(this.caret);
      this.foot.replaceChildren();
    } else {
      this.#showEnd();
    }
  }

  #showQuestion() {
    const { message } = this;
    const files = (message.attachments ?? []).map(attachmentView);
    this.body.replaceChildren(...files, ...(message.content ? [element("div", { class: "bubble" }, message.content)] : []));
    this.foot.replaceChildren(this.#branches(), iconButton("pencil", "Edit and ask again", () => this.edit()),
                              copyButton(message.content), this.#deleteButton());
  }

  // How much of a long prompt the model has read.
  #showReading() {
    const { state, promptProgress: at } = this.message;
    const isShown = state === "writing" && at && at.processed < at.total && at.time_ms > kReadingShownAfterMs;
    if (!isShown) {
      this.reading?.remove();
      this.reading = null;
      return;
    }
    if (!this.reading) {
      this.readingText = element("span");
      this.readingBar = element("progress", { max: 1 });
      this.reading = element("label", { class: "meter reading" }, this.readingText, this.readingBar);
      this.body.prepend(this.reading);
    }
    const share = at.processed / at.total;
    this.readingText.textContent = `Reading ${at.total.toLocaleString("en")} tokens: ${Math.floor(share * 100)}%`;
    this.readingBar.value = share;
  }

  #showThinking() {
    const { message } = this;
    if (!message.reasoning) return;
    if (!this.thinking) {
      this.thoughts = element("div", { class: "thoughts" });
      this.thinkingTitle = element("summary");
      this.thinking = element("details", { class: "thinking" }, this.thinkingTitle, this.thoughts);
      this.body.prepend(this.thinking);
    }
    const isThinking = message.state === "writing" && !message.content;
    const seconds = message.thoughtMs >= 100 ? ` for ${(message.thoughtMs / 1000).toFixed(1)} s` : "";
    this.thinkingTitle.textContent = isThinking ? "Thinking …" : `Thought${seconds}`;
    this.thinking.classList.toggle("is-thinking", isThinking);
    this.thoughts.textContent = message.reasoning.trim();
  }

  #showEnd() {
    const { message } = this;
    this.note?.remove();
    this.note = endNote(message);
    if (this.note) this.body.append(this.note);
    this.foot.replaceChildren(this.#branches(), copyButton(message.content),
                              iconButton("refresh", "Answer again", () => chat.regenerate(message)),
                              this.#deleteButton(), element("span", { class: "figures" }, figures(message)));
  }

  // < 2/3 > if the message has siblings.
  #branches() {
    const { message } = this;
    const siblings = chat.tree.childrenOf(message.parent);
    if (siblings.length < 2) return "";
    const at = siblings.indexOf(message);
    return element("span", { class: "branches", role: "group", "aria-label": "Versions" },
                   iconButton("left", "Previous version", () => chat.switchBranch(message, -1), { disabled: at === 0 }),
                   element("span", { class: "branch" }, `${at + 1}/${siblings.length}`),
                   iconButton("right", "Next version", () => chat.switchBranch(message, 1),
                              { disabled: at === siblings.length - 1 }));
  }

  #deleteButton() {
    return iconButton("trash", "Delete this message and what follows it", async () => {
      if (await confirmDelete("Delete this message and what follows it?")) chat.remove(this.message);
    });
  }

  // Replaces a question by a field with its text.
  edit() {
    const field = element("textarea", { class: "edit", "aria-label": "Edited message", rows: "3" });
    field.value = this.message.content;
    const leave = () => this.#showQuestion();
    const send = () => { if (field.value.trim()) chat.edit(this.message, field.value); };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
      if (event.key === "Escape") { event.stopPropagation(); leave(); }
    });
    this.body.replaceChildren(field);
    this.foot.replaceChildren(element("button", { type: "button", class: "quiet-button", onclick: leave }, "Cancel"),
                              element("button", { type: "button", class: "main-button", onclick: send }, "Send"));
    field.focus();
  }
}

function copyButton(text) {
  const button = iconButton("copy", "Copy", () => copyText(text, button));
  return button;
}

function deepest(node) {
  while (node.lastElementChild && /^(UL|OL|LI|P)$/.test(node.lastElementChild.tagName)) node = node.lastElementChild;
  return node;
}

// Why an answer ended, where that is not plain.
function endNote(message) {
  if (message.state === "failed")
    return element("div", { class: "note failure", role: "alert" }, message.error, " ",
                   element("button", { type: "button", class: "quiet-button", onclick: () => chat.regenerate(message) },
                           "Try again"));
  if (message.state === "stopped") return element("div", { class: "note" }, "Stopped.");
  if (message.finish === "length")
    return element("div", { class: "note" }, "Cut at the most tokens, or at the end of the context.");
  if (!message.content && !message.reasoning) return element("div", { class: "note" }, "The model answered nothing.");
  return null;
}

// "42 tokens · 35.1 tokens/s · first after 0.21 s"
export function figures({ timings }) {
  if (!timings) return "";
  const parts = [`${timings.predicted_n} tokens`];
  if (timings.predicted_per_second > 0) parts.push(`${rateText(timings.predicted_per_second)} tokens/s`);
  parts.push(`first after ${secondsText(timings.first_token_ms)}`);
  return parts.join(" · ");
}

export const rateText = (rate) => (rate < 100 ? rate.toFixed(1) : Math.round(rate).toLocaleString("en"));
export const secondsText = (ms) => (ms < 10000 ? `${(ms / 1000).toFixed(2)} s` : `${Math.round(ms / 1000)} s`);
