// The open conversation and the answers that are being written. Views listen to its events:
//   "open"     another conversation is shown, or messages came or went
//   "message"  the content of a message has changed (detail: the message)
//   "list"     the list of conversations has changed
//   "end"      an answer has ended (detail: the message)
//   "failure"  something could not be done (detail: an Error)
import { streamChat } from "./api.js";
import { fullText } from "./attachments.js";
import { samplerFields, settings } from "./settings.js";
import * as store from "./store.js";
import { Tree } from "./tree.js";

const kSaveEveryMs = 500;  // while an answer is written
const kTitleLength = 60;

// The beginning of a line, up to a whole word.
function shortened(line) {
  if (line.length <= kTitleLength) return line;
  const start = line.slice(0, kTitleLength);
  return `${start.slice(0, Math.max(start.lastIndexOf(" "), kTitleLength / 2)).trimEnd()}\u2026`;
}

class Chat extends EventTarget {
  conversation = null;  // null: a new one, which is kept with its first message
  tree = new Tree([], {});
  #running = new Map();  // from the id of a conversation to { message, abort, isDeleted }

  async open(id) {
    const conversation = await store.readConversation(id);
    if (!conversation) return this.startNew();
    const messages = await store.messagesOf(id);
    const running = this.#running.get(id);
    for (const [at, each] of messages.entries()) {
      if (each.id === running?.message.id) messages[at] = running.message;
      // The page was closed while the answer was written.
      else if (each.state === "writing") each.state = "stopped";
    }
    this.conversation = conversation;
    this.tree = new Tree(messages, conversation.chosen);
    this.#tell("open");
  }

  startNew() {
    this.conversation = null;
    this.tree = new Tree([], {});
    this.#tell("open");
  }

  isWriting() {
    return this.#running.has(this.conversation?.id);
  }

  async send(text, attachments) {
    if (this.isWriting()) return;
    const last = this.tree.path().at(-1) ?? null;
    await this.#ask(last?.id ?? null, text, attachments);
  }

  // Asks again with another text, beside the first question.
  async edit(message, text) {
    if (this.isWriting()) this.stop();
    await this.#ask(message.parent, text, message.attachments);
  }

  // Another answer to the same question.
  async regenerate(message) {
    if (this.isWriting()) this.stop();
    const question = message.role === "user" ? message : this.tree.messages.get(message.parent);
    if (question) await this.#answer(question);
  }

  stop() {
    this.#running.get(this.conversation?.id)?.abort.abort();
  }

  // Shows another sibling; step: 1 or -1.
  switchBranch(message, step) {
    const siblings = this.tree.childrenOf(message.parent);
    const next = siblings[siblings.indexOf(message) + step];
    if (!next) return;
    this.tree.choose(next);
    this.#keep(store.saveConversation(this.conversation));
    this.#tell("open");
  }

  async remove(message) {
    const running = this.#running.get(this.conversation.id);
    const ids = this.tree.remove(message);
    if (running && ids.includes(running.message.id)) {
      running.isDeleted = true;
      running.abort.abort();
    }
    await this.#keep(store.deleteMessages(ids));
    await this.#keep(store.saveConversation(this.conversation));
    this.#tell("open");
  }

  async rename(id, title) {
    const conversation = id === this.conversation?.id ? this.conversation : await store.readConversation(id);
    conversation.title = title;
    await this.#keep(store.saveConversation(conversation));
    this.#tell("list");
    if (conversation === this.conversation) this.#tell("open");
  }

  async delete(id) {
    this.#running.get(id)?.abort.abort();
    await this.#keep(store.deleteConversation(id));
    if (id === this.conversation?.id) this.startNew();
    this.#tell("list");
  }

  async #ask(parent, text, attachments) {
    if (!this.conversation) {
      const title = shortened((text.trim() || attachments[0].name).split("\n")[0]);
      this.conversation = { id: newId(), title, created: Date.now(), updated: Date.now(), chosen: {} };
      this.tree = new Tree([], this.conversation.chosen);
    }
    const question = this.#newMessage(parent, "user", { content: text, attachments, state: "done" });
    this.tree.add(question);
    this.conversation.updated = Date.now();
    await this.#keep(store.saveConversation(this.conversation));
    await this.#keep(store.saveMessage(question));
    this.#tell("list");
    await this.#answer(question);
  }

  #newMessage(parent, role, fields) {
    return { id: newId(), conversation: this.conversation.id, parent, role, created: Date.now(), content: "",
             ...fields };
  }

  async #answer(question) {
    const conversation = this.conversation;
    const messages = requestMessages(this.tree.pathTo(question));
    const answer = this.#newMessage(question.id, "assistant", { model: settings.model, reasoning: "", state: "writing" });
    const running = { message: answer, abort: new AbortController(), isDeleted: false };
    this.tree.add(answer);
    this.#running.set(conversation.id, running);
    conversation.updated = Date.now();
    await this.#keep(store.saveConversation(conversation));
    await this.#keep(store.saveMessage(answer));
    this.#tell("open");

    let saved = Date.now();
    try {
      const body = { model: settings.model, messages, ...samplerFields(), stream: true, return_progress: true,
                     stream_options: { include_usage: true } };
      for await (const event of streamChat(body, running.abort.signal)) {
        addEvent(answer, event);
        this.#tell("message", answer);
        if (Date.now() - saved < kSaveEveryMs || running.isDeleted) continue;
        saved = Date.now();
        this.#keep(store.saveMessage({ ...answer }));
      }
      answer.state = "done";
    } catch (thrown) {
      answer.state = thrown.name === "AbortError" ? "stopped" : "failed";
      if (answer.state === "failed") answer.error = thrown.message;
      if (answer.state === "failed") this.#tell("failure", thrown);
    }
    // An edited question may have begun the next answer already.
    if (this.#running.get(conversation.id) === running) this.#running.delete(conversation.id);
    if (!running.isDeleted) await this.#keep(store.saveMessage(answer));
    this.#tell("message", answer);
    this.#tell("end", answer);
  }

  // Waits for the store; a failure is shown and the chat goes on.
  async #keep(saving) {
    try {
      await saving;
    } catch (thrown) {
      this.#tell("failure", new Error(`This browser could not keep the conversation: ${thrown.message}`));
    }
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

// randomUUID() is missing on pages that come by plain http from another machine.
function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Adds what an event of the stream brings.
function addEvent(answer, event) {
  const delta = event.choices?.[0]?.delta ?? {};
  if (delta.reasoning_content) {
    answer.thoughtFrom ??= Date.now();
    answer.reasoning += delta.reasoning_content;
  }
  if (delta.content) {
    if (answer.thoughtFrom) answer.thoughtMs ??= Date.now() - answer.thoughtFrom;
    answer.content += delta.content;
  }
  // Of use until the answer begins.
  answer.promptProgress = answer.content || answer.reasoning ? undefined : event.prompt_progress ?? answer.promptProgress;
  if (event.model) answer.model = event.model;
  if (event.choices?.[0]?.finish_reason) answer.finish = event.choices[0].finish_reason;
  if (event.timings) answer.timings = event.timings;
  if (event.usage) answer.usage = event.usage;
}

// The messages of a request. Templates want roles to alternate, so the questions around an answer that brought nothing
// are joined.
function requestMessages(path) {
  const messages = settings.system ? [{ role: "system", content: settings.system }] : [];
  for (const each of path) {
    const content = fullText(each);
    if (!content) continue;
    if (messages.at(-1)?.role === each.role) messages.at(-1).content += "\n\n" + content;
    else messages.push({ role: each.role, content });
  }
  return messages;
}

export const chat = new Chat();
