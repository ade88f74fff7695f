// Text files that go with a message: read, shown in the composer, and written into the prompt.
import { element, iconButton } from "./dom.js";
import { icon } from "./icons.js";

const kMaxBytes = 2 << 20;  // far beyond every context

// Throws an Error with a sentence for a file that is no text.
export async function readTextFile(file) {
  if (file.size > kMaxBytes) throw new Error(`${file.name} has ${sizeText(file.size)}; at most ${sizeText(kMaxBytes)} can be attached.`);
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is no text file in UTF-8; only texts can be attached.`);
  }
  if (text.includes("\0")) throw new Error(`${file.name} is no text file; only texts can be attached.`);
  return { name: file.name, text };
}

export function sizeText(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  const units = ["KB", "MB", "GB", "TB"];
  let unit = -1;
  do bytes /= 1000; while (++unit < units.length - 1 && bytes >= 999.5);
  return `${bytes < 9.95 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

// What the model reads: the text of a message, and each file in a fence that its text cannot end.
export function fullText(message) {
  const parts = message.content ? [message.content] : [];
  for (const { name, text } of message.attachments ?? []) {
    let fence = "```";
    while (text.includes(fence)) fence += "`";
    parts.push(`File ${name}:\n${fence}\n${text}\n${fence}`);
  }
  return parts.join("\n\n");
}

// The name of a file with a button that takes it away.
export function attachmentChip({ name, text }, onremove) {
  return element("span", { class: "chip" }, icon("file"), element("span", { class: "chip-name" }, name),
                 element("span", { class: "muted" }, sizeText(text.length)),
                 iconButton("cross", `Remove ${name}`, onremove));
}

// A file of a sent message, which can be unfolded.
export function attachmentView({ name, text }) {
  return element("details", { class: "attachment" },
                 element("summary", {}, icon("file"), name, " ", element("span", { class: "muted" }, sizeText(text.length))),
                 element("pre", {}, text));
}
