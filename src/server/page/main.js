// Starts the page: the views, then the first questions to the server.
import { getJson } from "./api.js";
import { chat } from "./chat.js";
import { startComposer } from "./composer.js";
import { askForKey, startDialogs } from "./dialogs.js";
import { byId, element, isNarrow, placeIcons } from "./dom.js";
import { hideBanner, showBanner } from "./notice.js";
import { refreshFacts, startPanel } from "./panel.js";
import { saveSettings, settings } from "./settings.js";
import { startShortcuts } from "./shortcuts.js";
import { startSidebar } from "./sidebar.js";
import { startTheme } from "./theme.js";
import { startThread } from "./thread_view.js";

function showModels(names) {
  if (!names.includes(settings.model)) saveSettings({ model: names[0] });
  byId("model").replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  byId("model").value = settings.model;
}

// Asks the server what it has; also after a failure, and with another key.
async function connect() {
  try {
    showModels((await getJson("v1/models")).data.map((each) => each.id));
    await refreshFacts();
    hideBanner();
  } catch (thrown) {
    await handleFailure(thrown);
  }
}

async function handleFailure(thrown) {
  if (thrown.status === 401) {
    const reason = settings.key ? "The server does not know the key that this browser has." : "This server needs an API key.";
    if (await askForKey(reason)) await connect();
  } else {
    showBanner(thrown.message, { label: "Try again", run: connect });
  }
}

placeIcons(document);
startTheme();
startDialogs();
startThread();
startComposer();
startSidebar();
startPanel(isNarrow());
startShortcuts();
byId("model").addEventListener("change", (event) => {
  saveSettings({ model: event.target.value });
  refreshFacts().catch(handleFailure);
});
// A failed answer shows its own sentence.
chat.addEventListener("failure", ({ detail }) => {
  if (detail.status === 401) handleFailure(detail);
  else if (detail.status === undefined) showBanner(detail.message);
});
window.addEventListener("hashchange", openFromAddress);
chat.addEventListener("open", () => history.replaceState(null, "", chat.conversation ? `#${chat.conversation.id}` : "./"));

// The address names the open conversation, so that a reload shows it again.
function openFromAddress() {
  const id = location.hash.slice(1);
  if (id) chat.open(id).catch((thrown) => { chat.startNew(); showBanner(thrown.message); });
  else chat.startNew();
}

openFromAddress();
connect();
