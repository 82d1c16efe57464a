/* Dashboard page: panels, notices, connection status and token. */

import { Polling, request, token } from "./api.js";
import { disconnectedNotice, formatProblem, formatTokenReason, statusNotices } from "./notices.js";
import { GroupsPanel } from "./groups_panel.js";
import { MapPanel } from "./map_panel.js";
import { StatusPanel } from "./status_panel.js";
import { UserPanel } from "./user_panel.js";

const { bindTabs, bindThemeButton, byId, create, setContent } = window.locbUi;
const STATUS_SECONDS = 2;
const PANEL_SECONDS = 10;

/* Methods of a panel:
     load()                    returns a promise of the data of the panel
     show(data)                shows the data
     open(rest)                optional; called when the address changes to #name/rest
     handleProblem(problem)    optional; returns whether the panel handled the problem
   A panel calls reload(), which startPanel sets, to load its data again. */
const panels = { status: new StatusPanel(), map: new MapPanel(), groups: new GroupsPanel(), user: new UserPanel() };
let currentPanel = null; // name of the visible panel
let panelPolling = null;
let lastStatusTime = null; // Unix time in the last response of /v1/status
let isDisconnected = false;
let serviceNotices = []; // pairs [level, sentence]
let panelNotices = []; // pairs [level, sentence]
let shownNotices = "";

const statusPolling = new Polling(STATUS_SECONDS, () => request("/v1/status"), onStatus, onStatusProblem);

// Status

function onStatus(status) {
  const isFirst = lastStatusTime === null;
  lastStatusTime = status.time;
  hideTokenForm();
  panels.status.showStatus(status);
  serviceNotices = statusNotices(status);
  const levels = serviceNotices.map(([level]) => level);
  if (levels.includes("bad")) setBadge("bad", "store unavailable");
  else if (levels.includes("warn")) setBadge("warn", "degraded");
  else setBadge("good", "running");
  showNotices();
  if (isFirst || isDisconnected) startPanel();
  isDisconnected = false;
}

function onStatusProblem(problem, retrySeconds) {
  const reason = formatTokenReason(problem, token.get() !== null);
  if (reason !== null) {
    showTokenForm(reason);
    return;
  }
  isDisconnected = true;
  setBadge("bad", problem.status === 0 ? "disconnected" : "error");
  serviceNotices = [disconnectedNotice(problem, retrySeconds, lastStatusTime)];
  panelNotices = [];
  showNotices();
}

function setBadge(level, text) {
  const badge = byId("connection");
  badge.className = `badge ${level}`;
  if (badge.textContent !== text) badge.textContent = text;
}

/* Updates the notices only if they changed, so that screen readers read them once. */
function showNotices() {
  const notices = [...serviceNotices, ...panelNotices];
  const key = JSON.stringify(notices);
  if (key === shownNotices) return;
  shownNotices = key;
  setContent(byId("notices"), notices.map(([level, text]) => create("p", { className: `note ${level}` }, text)));
}

// Token

function showTokenForm(reason) {
  statusPolling.stop();
  panelPolling?.stop();
  serviceNotices = panelNotices = [];
  showNotices();
  setBadge("warn", "token required");
  byId("panels").hidden = true;
  byId("token").hidden = false;
  setContent(byId("token-reason"), reason);
  token.remove();
  byId("sign-out").hidden = true;
  byId("token-text").focus();
}

function hideTokenForm() {
  byId("sign-out").hidden = token.get() === null;
  if (byId("token").hidden) return;
  byId("token").hidden = true;
  byId("panels").hidden = false;
  byId("panels").querySelector("section:not([hidden]) h1")?.focus();
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set(byId("token-text").value.trim());
  byId("token-text").value = "";
  lastStatusTime = null;
  statusPolling.start();
});

byId("sign-out").addEventListener("click", () => {
  token.remove();
  location.reload(); // removes all data that was read with the token
});

// Panels

function startPanel() {
  panelPolling?.stop();
  panelNotices = [];
  const panel = panels[currentPanel];
  if (lastStatusTime === null) return;
  const onData = (data) => {
    panelNotices = [];
    showNotices();
    panel.show(data);
    if (isDisconnected) statusPolling.poll();
  };
  const onProblem = (problem, retrySeconds) => {
    if ([0, 401, 403].includes(problem.status) && problem.type !== "timeout") statusPolling.poll();
    else if (!panel.handleProblem?.(problem)) panelNotices = [["bad", formatProblem(problem, retrySeconds)]];
    showNotices();
  };
  panelPolling = new Polling(PANEL_SECONDS, () => panel.load(), onData, onProblem);
  panel.reload = startPanel;
  panelPolling.start();
}

bindThemeButton(byId("theme"));
byId("skip-link").addEventListener("click", (event) => {
  event.preventDefault();
  byId("content").focus();
});
bindTabs(byId("tabs"), (name, rest) => {
  currentPanel = name;
  document.title = `${name[0].toUpperCase()}${name.slice(1)}${rest ? `: ${rest}` : ""} · locb`;
  panels[name].open?.(rest);
  startPanel();
});
statusPolling.start();
