// Talks to the server. Failures are sentences that a person can act on.
import { settings } from "./settings.js";

export class ServerError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;  // of HTTP; 0: the server was not reached or the connection was lost
  }
}

const kUnreachable = "The server cannot be reached. Is prism serve still running?";
const kLost = "The connection to the server was lost before the answer was complete. What had arrived is kept.";

function headers() {
  return settings.key ? { authorization: `Bearer ${settings.key}` } : {};
}

// The sentence of an error answer: that of the server if it gave one.
async function failure(response) {
  let message = "";
  try {
    message = (await response.json()).error?.message ?? "";
  } catch {
    // Not JSON: an answer of something in between.
  }
  const reason = message || `status ${response.status}`;
  if (response.status === 429) {
    const seconds = response.headers.get("retry-after");
    return new ServerError(`The server is busy: ${reason}. Try again${seconds ? ` in ${seconds} s` : " soon"}.`, 429);
  }
  return new ServerError(`The server refused: ${reason}.`, response.status);
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (thrown) {
    if (thrown.name === "AbortError") throw thrown;
    throw new ServerError(kUnreachable);
  }
  if (!response.ok) throw await failure(response);
  return response;
}

export async function getJson(path) {
  return (await request(path, { headers: headers() })).json();
}

// The events of a streamed answer, parsed. Throws ServerError, also for one that ends too early, and AbortError.
export async function* streamChat(body, signal) {
  const response = await request("v1/chat/completions", {
    method: "POST", headers: { ...headers(), "content-type": "application/json" }, body: JSON.stringify(body), signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch (thrown) {
      throw signal.aborted ? thrown : new ServerError(kLost);
    }
    if (part.done) throw new ServerError(kLost);
    unread += part.value;
    const lines = unread.split("\n");
    unread = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue;  // the end of an event, or a comment that keeps the connection open
      if (line === "data: [DONE]") return;
      const event = JSON.parse(line.slice(6));
      if (event.error) throw new ServerError(`The server could not finish: ${event.error.message}.`, 500);
      yield event;
    }
  }
}
