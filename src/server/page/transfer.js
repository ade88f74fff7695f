// Saves conversations to a JSON file and reads them back.
import { byId, element } from "./dom.js";
import { showBanner } from "./notice.js";
import * as store from "./store.js";

const kFormat = "prism-conversations";

export async function exportConversations(conversations) {
  const list = [];
  for (const each of conversations) list.push({ ...each, messages: await store.messagesOf(each.id) });
  const text = JSON.stringify({ format: kFormat, version: 1, conversations: list }, null, 1);
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })),
                              download: `prism-${new Date().toISOString().slice(0, 10)}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Checks what a file has, and takes over only what this page knows. Throws an Error with a sentence.
export function readExport(text) {
  let json;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
  if (json?.format !== kFormat || !Array.isArray(json.conversations)) throw new Error("it is no export of this page");
  if (json.version !== 1) throw new Error(`its version is ${json.version}, and this page reads version 1`);
  return json.conversations.map(readConversation);
}

const kText = "string", kNumber = "number";
const check = (value, type, what) => {
  if (typeof value !== type) throw new Error(`${what} is missing or wrong`);
  return value;
};

function readConversation(given) {
  const id = check(given?.id, kText, "the id of a conversation");
  const messages = given.messages;
  if (!Array.isArray(messages)) throw new Error("a conversation has no messages");
  const chosen = {};
  for (const [parent, child] of Object.entries(given.chosen ?? {})) chosen[parent] = check(child, kText, "a chosen message");
  return { id, title: check(given.title, kText, "a title"), created: check(given.created, kNumber, "a time"),
           updated: check(given.updated, kNumber, "a time"), chosen,
           messages: messages.map((each) => readMessage(each, id)) };
}

function readMessage(given, conversation) {
  const role = given?.role;
  if (role !== "user" && role !== "assistant") throw new Error("a message is neither a question nor an answer");
  const attachments = (given.attachments ?? []).map((each) => ({ name: check(each?.name, kText, "the name of a file"),
                                                                 text: check(each?.text, kText, "the text of a file") }));
  return { id: check(given.id, kText, "the id of a message"), conversation, role, attachments,
           parent: given.parent === null ? null : check(given.parent, kText, "the place of a message"),
           created: check(given.created, kNumber, "a time"), content: check(given.content, kText, "the text of a message"),
           reasoning: String(given.reasoning ?? ""), model: String(given.model ?? ""),
           state: ["stopped", "failed"].includes(given.state) ? given.state : "done",
           error: String(given.error ?? ""), finish: given.finish === "length" ? "length" : "stop",
           ...(typeof given.thoughtMs === kNumber && { thoughtMs: given.thoughtMs }),
           ...(isTimings(given.timings) && { timings: given.timings }) };
}

const isTimings = (given) =>
  typeof given === "object" && given !== null && Object.values(given).every((each) => typeof each === kNumber) &&
  ["prompt_n", "predicted_n", "first_token_ms"].every((name) => name in given);

async function importFile(file) {
  try {
    const conversations = readExport(await file.text());
    await store.addAll(conversations);
    showBanner(`${conversations.length} conversation${conversations.length === 1 ? "" : "s"} imported from ${file.name}.`);
  } catch (thrown) {
    showBanner(`${file.name} cannot be imported: ${thrown.message}.`);
  }
}

export function startTransfer(onchange) {
  byId("export").addEventListener("click", async () => exportConversations(await store.listConversations()));
  byId("import").addEventListener("click", () => byId("import-file").click());
  byId("import-file").addEventListener("change", async (event) => {
    for (const file of event.target.files) await importFile(file);
    event.target.value = "";
    onchange();
  });
}
