// A conversation as a tree of messages. An edited question or another answer is a sibling of the first one; the chosen
// child of each message makes the path that is shown.
const kRoot = "root";  // stands for the parent of first messages

export class Tree {
  // chosen: from the id of a message (or "root") to the id of its chosen child; kept in the conversation's record.
  constructor(messages, chosen) {
    this.messages = new Map(messages.map((each) => [each.id, each]));
    this.chosen = chosen;
  }

  childrenOf(parent) {
    return [...this.messages.values()]
      .filter((each) => each.parent === parent)
      .sort((a, b) => a.created - b.created);
  }

  // From the first message to the last one. A child that was never chosen is the newest.
  path() {
    const path = [];
    for (let parent = null; ; parent = path.at(-1).id) {
      const children = this.childrenOf(parent);
      if (children.length === 0) return path;
      path.push(children.find((each) => each.id === this.chosen[parent ?? kRoot]) ?? children.at(-1));
    }
  }

  // From the first message to this one.
  pathTo(message) {
    const path = [];
    for (let at = message; at; at = this.messages.get(at.parent)) path.unshift(at);
    return path;
  }

  add(message) {
    this.messages.set(message.id, message);
    this.choose(message);
  }

  choose(message) {
    this.chosen[message.parent ?? kRoot] = message.id;
  }

  // Removes a message and all that follow it; returns their ids.
  remove(message) {
    const ids = [message.id];
    for (const child of this.childrenOf(message.id)) ids.push(...this.remove(child));
    this.messages.delete(message.id);
    delete this.chosen[message.id];
    if (this.chosen[message.parent ?? kRoot] === message.id) delete this.chosen[message.parent ?? kRoot];
    return ids;
  }
}
