// The live page of a run. The server sends the sections and pieces of the answer that changed, and
// new text with its place; after a lost connection it sends everything that was missed.

import { keepingFocus, morph } from "./morph.js";
import { announce } from "./page.js";

const run = document.getElementById("run");
const light = document.getElementById("live");
const FIRST_PAUSE = 500; // ms
const LONGEST_PAUSE = 15000;
const LONGEST_SILENCE = 8000; // the server says at least every 2 s that it is there
const SIGNED_OUT = 4403;
const TOO_MANY = 4429; // the reader has opened so many pages that this one made room

let pause = FIRST_PAUSE;
let socket = null;
let again = 0;
let heardAt = 0;
const texts = new Map(); // of each open output: where its drawn text ends, and what comes after

connect();
readTexts();
document.addEventListener("page:drawn", () => {
  readTexts();
  // The server knows only what it has sent here, and would not send that again.
  refresh();
  hurry();
});
document.addEventListener("visibilitychange", () => document.hidden || hurry());
window.addEventListener("focus", () => light.dataset.state === "many" && hurry());
window.addEventListener("online", hurry);
window.addEventListener("offline", () => socket && lost());
// A connection can be dead without being closed: after a change of network, say.
setInterval(() => socket && Date.now() - heardAt > LONGEST_SILENCE && lost(), 1000);

function connect() {
  const address = new URL(`/ws/runs/${run.dataset.run}/`, location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  address.searchParams.set("seq", run.dataset.seq);
  address.searchParams.set("lang", document.documentElement.lang);
  heardAt = Date.now();
  socket = new WebSocket(address);
  socket.onmessage = ({ data }) => hear(JSON.parse(data));
  socket.onclose = ({ code }) => lost(code);
}

function lost(code) {
  socket.onclose = socket.onmessage = null;
  socket.close();
  socket = null;
  if (code === SIGNED_OUT) return show("out");
  if (code === TOO_MANY) return show("many");
  show("away");
  // Jitter, so that after a restart not every page of the house comes at once.
  again = setTimeout(connect, pause * (0.5 + Math.random()));
  pause = Math.min(pause * 2, LONGEST_PAUSE);
}

/** Something says that the way may be free again: do not wait any longer. */
function hurry() {
  pause = FIRST_PAUSE;
  if (socket || !["away", "many"].includes(light.dataset.state)) return;
  clearTimeout(again);
  connect();
}

/** Have the server send everything anew. */
function refresh() {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: "refresh" }));
}

function show(state) {
  if (light.dataset.state === state) return;
  light.dataset.state = state;
  light.textContent = light.dataset[state];
}

function hear(message) {
  heardAt = Date.now();
  if (message.type === "beat") return;
  if (message.type === "away") return show("away");
  show("live");
  pause = FIRST_PAUSE;
  if (message.type === "state") draw(message);
  else if (message.type === "text") addText(message);
}

function draw({ seq, phase, order, html }) {
  // Overtaken by a page that was loaded meanwhile: after that everything is sent once more.
  if (Number(seq) < Number(run.dataset.seq)) return;
  keepingFocus(() => {
    const body = document.getElementById("run-body");
    for (const markup of Object.values(html)) put(body, parse(markup));
    arrange(body, order);
  });
  run.dataset.seq = seq;
  run.dataset.phase = phase;
  readTexts();
  const news = document.getElementById("run-verdict") ?? document.getElementById("run-head");
  announce(news.dataset.announce);
  document.dispatchEvent(new CustomEvent("run:drawn"));
}

function put(body, section) {
  const here = document.getElementById(section.id);
  if (here) morph(here, section, true);
  else (document.getElementById(section.dataset.in) ?? body).append(section);
  window.htmx?.process(here ?? section);
}

function parse(markup) {
  const template = document.createElement("template");
  template.innerHTML = markup;
  return template.content.firstElementChild;
}

/** Sections in their order, moving only those that are out of place. */
function arrange(body, order) {
  const wanted = order.map((name) => `run-${name}`);
  for (const child of [...body.children]) if (!wanted.includes(child.id)) child.remove();
  wanted.forEach((id, place) => {
    const section = document.getElementById(id);
    if (section && body.children[place] !== section) {
      body.insertBefore(section, body.children[place] ?? null);
    }
  });
}

/** After drawing: what was streamed already, and is not drawn yet, goes behind what is drawn. */
function readTexts() {
  const open = new Map();
  for (const place of document.querySelectorAll("[data-output]")) {
    const start = Number(place.dataset.start);
    const tail = place.querySelector("[data-tail]");
    const known = texts.get(place.dataset.output);
    let text = letters(tail.textContent);
    if (known && known.start <= start) {
      const rest = known.text.slice(start - known.start);
      if (rest.length > text.length) text = rest;
    }
    tail.textContent = text.join("");
    open.set(place.dataset.output, { start, text });
  }
  texts.clear();
  for (const [output, known] of open) texts.set(output, known);
}

/** The output reads as before up to `offset`, then as `text`. */
function addText({ output, offset, text }) {
  const known = texts.get(String(output));
  if (!known) return; // its place comes with the next drawing, and the text with it
  const end = known.start + known.text.length;
  const news = letters(text);
  if (offset + news.length <= end) return; // shown already
  if (offset > end) {
    refresh();
    return;
  }
  known.text = offset <= known.start
    ? news.slice(known.start - offset)
    : [...known.text.slice(0, offset - known.start), ...news];
  document.querySelector(`[data-output="${output}"] [data-tail]`).textContent = known.text.join("");
}

/** Characters as the server counts them: code points, not the halves of an emoji. */
function letters(text) {
  return Array.from(text);
}
