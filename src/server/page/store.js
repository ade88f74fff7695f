// Keeps conversations and their messages in the browser's IndexedDB, each message as a record of its own, so that two
// open pages never overwrite each other's messages.
const channel = new BroadcastChannel("prism-conversations");

function promised(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

const opened = new Promise((resolve, reject) => {
  const request = indexedDB.open("prism", 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore("conversations", { keyPath: "id" });
    request.result.createObjectStore("messages", { keyPath: "id" }).createIndex("conversation", "conversation");
  };
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});
opened.catch(() => {});  // every use reports it

// Runs work with the two stores in one transaction: all of it happens, or nothing.
async function transaction(mode, work) {
  const database = await opened;
  const running = database.transaction(["conversations", "messages"], mode);
  const ended = new Promise((resolve, reject) => {
    running.oncomplete = resolve;
    running.onabort = () => reject(running.error);
  });
  const result = await work(running.objectStore("conversations"), running.objectStore("messages"));
  await ended;
  if (mode === "readwrite") channel.postMessage("changed");
  return result;
}

const put = (store, record) => promised(store.put(record));

// The newest first, without messages.
export async function listConversations() {
  const all = await transaction("readonly", (conversations) => promised(conversations.getAll()));
  return all.sort((a, b) => b.updated - a.updated);
}

export const readConversation = (id) =>
  transaction("readonly", (conversations) => promised(conversations.get(id)));

export const messagesOf = (id) =>
  transaction("readonly", (_, messages) => promised(messages.index("conversation").getAll(id)));

export const saveConversation = (conversation) =>
  transaction("readwrite", (conversations) => put(conversations, conversation));

// Of a conversation that was deleted meanwhile nothing is written again.
export const saveMessage = (message) =>
  transaction("readwrite", async (conversations, messages) => {
    if (await promised(conversations.getKey(message.conversation))) await put(messages, message);
  });

export const deleteMessages = (ids) =>
  transaction("readwrite", (_, messages) => Promise.all(ids.map((id) => promised(messages.delete(id)))));

export const deleteConversation = (id) =>
  transaction("readwrite", async (conversations, messages) => {
    await promised(conversations.delete(id));
    for (const key of await promised(messages.index("conversation").getAllKeys(id))) await promised(messages.delete(key));
  });

// The conversations whose messages contain the text, each with the first such message: Map of id to text.
export async function searchMessages(text) {
  const wanted = text.toLowerCase();
  const found = new Map();
  for (const message of await transaction("readonly", (_, messages) => promised(messages.getAll())))
    if (!found.has(message.conversation) && message.content.toLowerCase().includes(wanted))
      found.set(message.conversation, message.content);
  return found;
}

// Adds conversations with their messages; what is there stays.
export const addAll = (entries) =>
  transaction("readwrite", async (conversations, messages) => {
    for (const { messages: list, ...conversation } of entries) {
      if (!(await promised(conversations.getKey(conversation.id)))) await put(conversations, conversation);
      for (const message of list)
        if (!(await promised(messages.getKey(message.id)))) await put(messages, message);
    }
  });

// Calls back when another page of this browser has changed something.
export const onOtherPage = (callback) => channel.addEventListener("message", callback);
