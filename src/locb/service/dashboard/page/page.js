/* The page: which panel is shown, what holds for all of them, and the token. */

import { ask, token } from "./api.js";
import { Polling } from "./polling.js";
import { ofNow, ofProblem, ofToken } from "./words.js";
import { NowPanel } from "./now.js";
import { MapPanel } from "./map.js";
import { GroupsPanel } from "./groups.js";
import { UserPanel } from "./user.js";

const { make, put, tabs, themeSwitch, time } = window.look;
const at = (id) => document.getElementById(id);

const panels = { now: new NowPanel(), map: new MapPanel(), groups: new GroupsPanel(), user: new UserPanel() };
let shown = null; // the name of the panel
let seen = null; // when the last figures came
let polling = null; // of the panel
let lost = false; // whether there was no answer the last time
let general = []; // what is to be known of the service: [kind, sentence]
let particular = []; // and of the panel
let told = "";

const beat = new Polling(2, () => ask("/v1/status"), alive, silent);

function alive(now) {
  const first = seen === null;
  seen = now.time;
  admit();
  panels.now.showNow(now);
  const words = ofNow(now);
  const worst = words.find(([kind]) => kind === "bad") ?? words.find(([kind]) => kind === "warn");
  badge(worst ? worst[0] : "good", worst ? (worst[0] === "bad" ? "not writing" : "behind") : "running");
  general = words;
  notices();
  if (first || lost) restart();
  lost = false;
}

function silent(problem, seconds) {
  const why = ofToken(problem, token.get() !== null);
  if (why !== null) {
    askForToken(why);
    return;
  }
  lost = true;
  badge("bad", problem.status === 0 ? "no answer" : "problem");
  const old = seen === null ? "" : ` What you see is of ${time(seen)}.`;
  general = [["bad", ofProblem(problem, seconds) + old]];
  particular = [];
  notices();
}

function badge(kind, text) {
  const status = at("status");
  status.className = `badge ${kind}`;
  if (status.textContent !== text) status.textContent = text;
}

/* Read aloud once, not with every answer. */
function notices() {
  const words = [...general, ...particular];
  const next = JSON.stringify(words);
  if (next === told) return;
  told = next;
  put(at("notices"), words.map(([kind, text]) => make("p", { className: `note ${kind}` }, text)));
}

// Token

function askForToken(why) {
  beat.stop();
  polling?.stop();
  general = particular = [];
  notices();
  badge("warn", "token needed");
  at("panels").hidden = true;
  at("token").hidden = false;
  put(at("token-why"), why);
  token.forget();
  at("forget").hidden = true;
  at("token-text").focus();
}

function admit() {
  at("forget").hidden = token.get() === null;
  if (at("token").hidden) return;
  at("token").hidden = true;
  at("panels").hidden = false;
  at("panels").querySelector("section:not([hidden]) h1")?.focus();
}

at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set(at("token-text").value.trim());
  at("token-text").value = "";
  seen = null;
  beat.start();
});

at("forget").addEventListener("click", () => {
  token.forget();
  location.reload(); // nothing that was read with it stays
});

// Panels

function restart() {
  polling?.stop();
  particular = [];
  const panel = panels[shown];
  if (seen === null) return;
  const show = (answer) => {
    particular = [];
    notices();
    panel.show(answer);
    if (lost) beat.now(); // it answers again
  };
  const fail = (problem, seconds) => {
    if ([0, 401, 403].includes(problem.status) && problem.kind !== "slow") beat.now();
    else if (!panel.fail?.(problem, seconds)) particular = [["bad", ofProblem(problem, seconds)]];
    notices();
  };
  polling = new Polling(10, () => panel.ask(), show, fail);
  panel.again = restart;
  polling.start();
}

themeSwitch(at("theme"));
at("skip").addEventListener("click", (event) => {
  event.preventDefault();
  at("content").focus();
});
tabs(at("tabs"), (name, rest) => {
  shown = name;
  document.title = `${name[0].toUpperCase()}${name.slice(1)}${rest ? `: ${rest}` : ""} · locb`;
  panels[name].open?.(rest);
  restart();
});
beat.start();
