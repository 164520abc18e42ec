"use strict";

// The board that one plays on. The server (pydlshogi/browser/server.py) owns the game and sends it
// after each change; this script draws it and asks.

const element = (id) => document.getElementById(id);
const all = (selector) => [...document.querySelectorAll(selector)];
const LOSS = 0.1;  // of winning chance, from which on a move is marked

let offer = null;        // the models, engines and handicaps of the server
let name = new URLSearchParams(location.search).get("game");
let game = null;         // the newest state of the game
let events = null;
let ply = 0;             // the position shown
let selected = null;     // the start of a move: a square such as 7g, or P* for a pawn in hand
let cursor = null;       // the square of the keyboard
let dragged = null;      // the pointer's place while it drags a piece
let promoting = null;    // the move that waits for the answer whether to promote
let busy = false;        // whether a move is on its way
let clockAt = 0;         // when the clocks of "game" were read
let values = [];         // Black's chance in each position
let opinion = null;      // the model's moves in the position shown
let hint = null;
let blunder = 0;         // what a person's newest move has cost, if it was a mistake
let judged = "";         // the moves after which that was asked
const NO_LINES = { ply: -1, model: 0, lines: [] };
let lines = NO_LINES;
let page = {};           // the progress of the game's page
let maps = [], chosenMap = null, askedSquare = null;
let exercise = null;     // the mistake that one practises: its game, the ones left, and what is said
let asked = 0;           // counts the questions about the position shown; old answers are dropped

const last = () => game.moves.length;
const model = () => Number(element("model").value || 0);
const shows = (key) => element("shows").querySelector(`[data-show=${key}]`).checked;
const hasValue = () => Boolean(offer && offer.models[model()].value);
const mine = () => game && !game.result && !game.paused && !busy && !promoting && ply === last() &&
  game.players[game.turn].kind === "human";
const side = (color) => word(game && game.handicap ? ["lower", "upper"][color] : ["black", "white"][color]);

// The server

async function ask(path, wish) {
  const options = wish === undefined ? {} : { method: "POST", body: JSON.stringify(wish),
    headers: { "Content-Type": "application/json" } };
  let answer, data;
  try {
    answer = await fetch(path, options);
    data = await answer.json();
  } catch {
    throw new Error(word("offline"));
  }
  if (!answer.ok) throw new Error(translated(data.error));
  return data;
}

async function tell(what, wish = {}) {
  try {
    return await ask(`game/${name}/${what}`, wish);
  } catch (error) {
    busy = false;
    complain(error.message);
    return null;
  }
}

function complain(sentence) {
  element("message").textContent = sentence;
  element("message").hidden = !sentence;
  clearTimeout(complain.timer);
  if (sentence) complain.timer = setTimeout(() => complain(""), 8000);
}

function listen() {
  if (events) events.close();
  events = null;
  if (!name || document.hidden) return;
  events = new EventSource(`game/${name}/events`);
  // The server has ended the search if this was the game's only stream.
  events.onopen = () => { lines = NO_LINES; if (game) analyze(); };
  events.addEventListener("state", (event) => receive(JSON.parse(event.data)));
  events.addEventListener("shown", (event) => {
    if (!game) return;
    const { left, runs, ...shown } = JSON.parse(event.data);
    Object.assign(game, { left, runs });
    clockAt = performance.now();
    if (shown.page.error && !page.error) complain(translated(shown.page.error));
    ({ lines, page } = shown);
    drawLines();
    buttons();
  });
  events.onerror = () => {
    if (events) complain(word("offline"));
  };
}

function receive(state) {
  const follows = !game || ply === last() || state.moves.length < last();
  const isNew = !game || state.moves.join() !== game.moves.join();
  if (game && game.error && !state.error) complain("");
  game = state;
  clockAt = performance.now();
  busy = false;
  if (isNew) {
    selected = promoting = dragged = hint = null;
    blunder = 0;
  }
  if (follows || ply > last()) ply = last();
  nameSides();
  if (exercise && exercise.table === name) judgeExercise();
  if (isNew || !values.length) think();
  draw();
}

function nameSides() {
  sides = [side(0).split(" ")[0], side(1).split(" ")[0]].map((text, color) =>
    game.handicap ? "下上"[color] + "手" : language === "ja" ? text : ["先手", "後手"][color]);
}

function open(wanted) {
  if (exercise && wanted !== exercise.table) exercise = null;
  complain("");
  name = wanted;
  game = null;
  asked++;  // answers on the game before come too late
  lines = NO_LINES;
  values = [];
  page = {};
  history.replaceState(null, "", `?game=${name}`);
  element("new").close();
  element("games").close();
  listen();
}

// What the network thinks

async function think() {
  const number = ++asked;
  opinion = null;
  chosenMap = null;
  maps = [];
  const at = `model=${model()}&ply=${ply}`;
  try {
    if (hasValue()) {
      const found = await ask(`game/${name}/values?model=${model()}`);
      if (number !== asked) return;
      values = found;
      drawValue();
      drawMoves();
      buttons();
      lookForBlunder();
    } else values = [];
    if (shows("arrows")) {
      const found = await ask(`game/${name}/opinion?${at}`);
      if (number !== asked) return;
      opinion = found;
      draw();
    }
    const kind = shows("filters") ? "filters" : shows("planes") ? "planes" : "";
    if (kind) {
      const square = askedSquare === null ? "" : `&square=${askedSquare}`;
      const found = await ask(`game/${name}/${kind}?${at}${kind === "filters" ? square : ""}`);
      if (number !== asked) return;
      maps = found;
    }
    await analyze();
    drawMaps();
  } catch (error) {
    if (number === asked) complain(error.message);
  }
}

const hasLines = () => lines.ply === ply && lines.model === model();

async function analyze() {
  if (!document.hidden && shows("lines") && hasValue() && !hasLines()) await tell("analyze", { ply, model: model() });
}

const loss = (n) => {  // of the side that made move n, from 1
  if (values.length <= n || values[n] === null) return 0;
  const color = (n - 1) % 2 === firstTurn() ? 0 : 1;
  return (values[n - 1] - values[n]) * (color ? -1 : 1);
};
const firstTurn = () => game.start.split(" ")[1] === "b" ? 0 : 1;

// Drawing

function draw() {
  if (!game) return;
  narrow = document.documentElement.clientWidth < 640;
  const board = element("board"), position = game.positions[ply];
  board.setAttribute("viewBox", narrow ? "-0.3 -1.95 10.1 12.35" : "-2.2 -1 14.05 10.4");
  const turn = position.split(" ")[1] === "w" ? 1 : 0;
  const { svg, places } = drawn(position, ply ? game.moves[ply - 1] : "", below());
  board.places = places;
  let above = "";
  if (shows("arrows") && opinion)
    above += arrows(opinion.moves.filter((move, n) => move.p !== null && (n === 0 || move.p > 0.01)), places[turn]);
  if (hint && hint.ply === ply && hint.usi) above += arrows([{ usi: hint.usi, p: 1 }], places[turn]);
  board.innerHTML = svg + targets() + above + ghost(turn);
  board.setAttribute("aria-label", `${word("toMove", { side: side(turn) })} ${position}`);
  element("slider").max = last();
  element("slider").value = ply;
  element("promote").hidden = !promoting;
  drawSides();
  drawValue();
  drawMoves();
  drawOpinion();
  drawLines();
  status();
  buttons();
}

function below() {
  let svg = "";
  if (chosenMap !== null && maps[chosenMap])
    maps[chosenMap].values.forEach((value, n) => {
      const [x, y] = seen(n % 9 + 0.5, Math.floor(n / 9) + 0.5);
      if (value > 0) svg += rectangle(x - 0.5, y - 0.5, 1, 1, "#d9480f", `opacity="${0.8 * Math.min(1, value)}"`);
    });
  for (const [at, color] of [[selected, "#8fc6ff"], [cursor, "none"]]) {
    if (!at || at[1] === "*") continue;
    const [x, y] = seen(...square(at));
    svg += rectangle(x - 0.5, y - 0.5, 1, 1, color, at === cursor ? 'stroke="#174a8b" stroke-width="0.08"' : "");
  }
  return svg;
}

const movesFrom = (at) => game.legal.filter((usi) => usi.startsWith(at));

function targets() {
  if (!selected || !mine()) return "";
  const places = new Set(movesFrom(selected).map((usi) => usi.slice(2, 4)));
  return [...places].map((at) => {
    const [x, y] = seen(...square(at));
    return `<circle cx="${x}" cy="${y}" r="0.16" fill="#1a7f37" opacity="0.75"/>`;
  }).join("");
}

function ghost(turn) {
  if (!dragged || !selected) return selected && selected[1] === "*" ? held(turn) : "";
  const letter = selected[1] === "*" ? selected[0]
    : parse(game.positions[ply]).pieces.find(([x, y]) => String([x, y]) === String(square(selected)))[2];
  return `<g opacity="0.85">${piece(...dragged, turn ? letter.toLowerCase() : letter.toUpperCase())}</g>`;
}

function held(turn) {
  const place = element("board").places[turn][selected[0]];
  return place ? rectangle(place[0] - 0.5, place[1] - 0.5, 1, 1, "none",
    'stroke="#174a8b" stroke-width="0.08"') : "";
}

function drawSides() {
  for (const [id, color] of [["far", flipped ? 0 : 1], ["near", flipped ? 1 : 0]]) {
    const box = element(id), player = game.players[color];
    const label = game.names[color] || player.name || (player.kind === "human" ? word("you") : "");
    box.firstElementChild.textContent = `${color ? "☖" : "☗"} ${side(color)} · ${label}`;
    box.classList.toggle("turn", !game.result && game.turn === color);
  }
  tick();
}

function tick() {
  if (!game) return;
  for (const [id, color] of [["far", flipped ? 0 : 1], ["near", flipped ? 1 : 0]])
    element(id).lastElementChild.textContent = game.clock ? time(color) : "";
}

function time(color) {
  let left = game.left[color];
  const runs = game.runs && game.turn === color;
  if (runs) left -= (performance.now() - clockAt) / 1000;
  const form = (s) => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;
  if (left > 0 || !game.clock.byoyomi) return form(Math.max(0, left));
  return `${word("byoyomi").split(/[ （]/)[0]} ${Math.max(0, Math.ceil(game.clock.byoyomi + (runs ? left : 0)))}`;
}

function status() {
  if (!game) return;
  const end = game.result;
  let sentence;
  if (ply < last()) sentence = word("earlier", { n: ply, m: last() });
  else if (end) {
    // A mate has the mark of a resignation: readers of CSA find no winner after %TSUMI.
    const mark = end.reason === "no legal move" ? "TSUMI" : end.end_mark.replace(/^%[+-]?/, "");
    const why = word(mark), isDrawn = ["SENNICHITE", "JISHOGI", "HIKIWAKE", "MAX_MOVES"].includes(mark);
    sentence = end.winner !== null ? word("wins", { side: side(end.winner), why })
      : word(isDrawn ? "draw" : "over", { why });
  } else if (game.paused) sentence = word("paused");
  else {
    sentence = word(game.thinking ? "thinking" : "toMove", { side: side(game.turn) });
    if (game.check) sentence += " " + word("check");
  }
  if (blunder && !end && ply === last() && shows("value"))
    sentence += " " + word("lost", { n: Math.round(100 * blunder) });
  if (hint && hint.ply === ply) sentence += " " + word("hinted", { move: hint.text });
  if (exercise && exercise.table === name) sentence = exercise.said;
  element("status").textContent = sentence;
  if (game.error) {
    element("message").textContent = (game.failed ? word("engineFailed") + " " : "") + translated(game.error);
    element("message").hidden = false;
    clearTimeout(complain.timer);
  }
}

// Exercises: the position before each own mistake that a search of ten times the usual 0.2 s
// confirms. Their games are not saved.

const mistakes = () => game.moves.map((_, at) => ({ n: at + 1, color: (at + firstTurn()) % 2 }))
  .filter(({ n }) => moverIsHuman(n) && loss(n) >= LOSS);

async function chanceOf(color, table, at) {
  const { line } = await ask(`game/${table}/search`, { ply: at, seconds: 2, model: model() });
  return line ? { win: color ? 1 - line.win : line.win, move: line.texts[0] || word("declare") } : null;
}

// Another game may be opened meanwhile: then "exercise" is another one, or none.
async function nextExercise() {
  const now = exercise;
  let said = word("noMistakes");
  now.runs = true;
  buttons();
  try {
    while (now.left.length) {
      const { n, color } = now.left.shift();
      const best = await chanceOf(color, now.game, n - 1);
      if (now !== exercise) return;
      const after = await chanceOf(color, now.game, n);
      if (now !== exercise) return;
      const cost = best && after ? best.win - after.win : 0;
      if (cost < LOSS) continue;
      const start = { game: now.game, ply: n - 1 }, human = { kind: "human" };
      const made = await ask("new", { start, players: [human, human], exercise: true });
      if (now !== exercise) return;
      const task = word("exercise", { n: Math.round(100 * cost) });
      Object.assign(now, { n, color, best, task, table: made.name, judged: "", runs: false });
      flipped = Boolean(color);
      return open(made.name);
    }
  } catch (error) {
    if (now !== exercise) return;
    said = error.message;
  }
  exercise = null;
  if (name !== now.game) open(now.game);
  else draw();
  complain(said);
}

async function judgeExercise() {
  const now = exercise, end = game.result, answer = game.moves[now.n - 1] || (end && end.end_mark) || "";
  if (!answer) Object.assign(now, { judged: "", said: now.task });
  if (!answer || now.judged === answer || last() > now.n) return;
  now.judged = answer;
  now.said = word("judging");
  const found = end ? { win: end.winner === null ? 0.5 : end.winner === now.color ? 1 : 0 }
    : await chanceOf(now.color, name, last()).catch(() => null);
  if (now !== exercise || now.judged !== answer) return;
  const cost = found && now.best.win - found.win;
  now.said = found ? word(cost < 0.03 ? "solved" : "missed", { n: Math.round(100 * cost), move: now.best.move })
    : word("unjudged");
  status();
}

// Looks for a mistake in a person's newest move: the network suspects it, and a search confirms it.
async function lookForBlunder() {
  const moves = game.moves.join();
  const n = [last(), last() - 1].find((one) => one > 0 && moverIsHuman(one));
  if (moves === judged || !n || !shows("value") || loss(n) < LOSS || game.result || exercise) return;
  judged = moves;
  const chances = [];
  for (const at of [n - 1, n]) {
    const found = await tell("search", { ply: at, seconds: 1, model: model() });
    if (!found || !found.line || !game || game.moves.join() !== moves) return;
    chances.push(found.line.win);
  }
  const cost = (chances[0] - chances[1]) * ((n - 1 + firstTurn()) % 2 ? -1 : 1);
  blunder = cost >= LOSS ? cost : 0;
  status();
}

const moverIsHuman = (n) => game.players[(n - 1 + firstTurn()) % 2].kind === "human";

function buttons() {
  const human = game.players.some((player) => player.kind === "human");
  const set = (key, can, text = word(key)) => {
    const button = document.querySelector(`[data-do=${key}]`);
    button.disabled = !can;
    button.textContent = text;
  };
  set("undo", human && last() > 0 && !(game.result && game.result.end_mark === "%CHUDAN"));
  set("hint", mine());
  set("resign", mine());
  set("declare", mine() && game.declare);
  document.querySelector("[data-do=declare]").hidden = !game.declare;
  set("pause", !game.result, word(!game.paused ? "pause" : game.failed ? "renew" : "resume"));
  set("fork", ply < last() || game.result);
  const runs = exercise && exercise.runs;
  set("practise", !runs && (exercise || mistakes().length), word(runs ? "checking" : exercise ? "next" : "practise"));
  const isOver = game.result || ply < last();
  document.querySelector("[data-do=practise]").hidden = !hasValue() || !(exercise || isOver);
  const isMade = page.ready === false && !page.error;
  set("page", !isMade, word(isMade ? "making" : "page", { n: page.done || 0, m: game.positions.length }));
  document.querySelector("[data-do=page]").hidden = page.ready || exercise || !isOver || !last();
  element("page").hidden = !page.ready || Boolean(exercise);
  element("page").href = `game/${name}/page?language=${language}`;
  for (const [key, can] of [["first", ply > 0], ["back", ply > 0], ["forward", ply < last()], ["last", ply < last()]])
    document.querySelector(`[data-do=${key}]`).disabled = !can;
  for (const key of ["kif", "csa"]) {
    element(`save_${key}`).href = `game/${name}/${key}`;
    element(`save_${key}`).download = `${name}.${key === "kif" ? "kifu" : key}`;
  }
  element("notes").textContent = [game.handicap && word("handicap", { name: game.handicap }),
    !hasValue() && word("noValue", { name: offer.models[model()].name })].filter(Boolean).join(" ");
}

function drawValue() {
  const win = values[ply], on = shows("value") && hasValue() && win !== undefined && win !== null;
  element("value").hidden = !on;
  element("graph").toggleAttribute("hidden", !(shows("value") && hasValue()));
  if (!on) return;
  element("value").firstElementChild.style.width = percent(win, 1);
  element("value").lastElementChild.textContent = `☗ ${percent(win)} · ☖ ${percent(1 - win)}`;
  drawGraph();
}

function drawGraph() {
  const { axes, x, y } = graph(element("graph"), Math.max(10, last()), word("winOf", { side: side(0) }));
  const known = values.map((win, n) => [n, win]).filter(([, win]) => win !== null);
  let svg = axes + course(known, x, y);
  for (let n = 1; n <= last(); n++)
    if (loss(n) >= LOSS) svg += `<circle cx="${x(n)}" cy="${y(values[n])}" r="3" fill="#c8102e"/>`;
  element("graph").innerHTML = svg + `<path d="M${x(ply)} ${y(1)}V${y(0)}" stroke="#174a8b" stroke-width="1.5"/>`;
}

function drawMoves() {
  if (!game) return;
  const body = element("moves").querySelector("tbody");
  body.replaceChildren(...[word("startMove"), ...game.texts].map((text, n) => {
    const row = document.createElement("tr"), cost = n ? loss(n) : 0;
    const win = shows("value") && values[n] !== undefined && values[n] !== null ? percent(values[n]) : "";
    [n || "", text, n && game.clock && game.seconds[n - 1] !== null ? `${game.seconds[n - 1]} s` : "", win, shows("value") && cost >= LOSS ? `−${Math.round(100 * cost)}` : ""]
      .forEach((content) => row.insertCell().textContent = content);
    row.classList.toggle("now", n === ply);
    row.onclick = () => show(n);
    return row;
  }));
  const row = body.rows[ply], box = element("moves");
  if (row) box.scrollTop = row.offsetTop - box.clientHeight / 2;
}

function drawOpinion() {
  const rows = shows("arrows") && opinion ? opinion.moves : [];
  element("candidates").replaceChildren(...rows.map((move) => {
    const item = document.createElement("li");
    item.textContent = `${move.text} ${move.p === null ? "" : percent(move.p, 1)}`;
    return item;
  }));
}

function drawLines() {
  const on = shows("lines") && hasValue() && hasLines(), found = on ? lines.lines : [];
  const texts = found.map((line) => `☗ ${percent(line.win)} ${line.texts.join(" ") || word("declare")}`);
  if (found.length) texts[0] += ` (${word("nodes", { n: found[0].nodes })})`;
  else if (on) texts.push(lines.error ? translated(lines.error) : word("searching"));
  element("lines").replaceChildren(...texts.map((content) => {
    const item = document.createElement("li");
    item.textContent = content;
    return item;
  }));
}

function drawMaps() {
  const box = element("maps"), filters = shows("filters");
  box.hidden = !filters && !shows("planes");
  if (box.hidden) return box.replaceChildren();
  const note = document.createElement("p");
  const full = maps.map((map, n) => [map, n]).filter(([map]) => map.values.some((value) => value > 0));
  note.textContent = filters ? word("filtersNote") : word("planesNote", { n: full.length, m: maps.length });
  const parts = [note];
  if (filters) {
    const label = document.createElement("label"), check = document.createElement("input");
    check.type = "checkbox";
    check.id = "pick";
    check.checked = askedSquare !== null || picks();
    check.onchange = () => { box.picks = check.checked; askedSquare = null; think(); };
    const at = askedSquare === null ? word("anywhere") : FILES[askedSquare % 9] + RANKS[Math.floor(askedSquare / 9)];
    label.append(check, " " + word("pick", { name: at }));
    parts.push(label);
  }
  const list = document.createElement("div");
  list.append(...full.map(([map, n]) => {
    const button = document.createElement("button");
    button.innerHTML = `<svg viewBox="0 0 9 9">${map.values.map((value, at) => value > 0
      ? rectangle(at % 9, Math.floor(at / 9), 1, 1, "#d9480f", `opacity="${Math.min(1, value)}"`) : "").join("")}</svg>`;
    const title = document.createElement("span");
    title.textContent = filters ? `#${map.name}` : `${map.name} ${word(map.side + "Plane")}`;
    button.append(title);
    button.classList.toggle("chosen", n === chosenMap);
    button.onclick = () => { chosenMap = chosenMap === n ? null : n; draw(); drawMaps(); };
    return button;
  }));
  box.replaceChildren(...parts, list);
}

const picks = () => Boolean(element("maps").picks) && shows("filters");

function show(wanted) {
  if (!game) return;
  ply = Math.min(last(), Math.max(0, wanted));
  selected = dragged = null;
  draw();
  think();
}

// Moves: by click, by drag, and by the keyboard

function placeOf(event) {
  const board = element("board");
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(board.getScreenCTM().inverse());
  return [at.x, at.y];
}

function targetOf([px, py]) {
  const turn = game.turn;
  for (const [letter, [x, y]] of Object.entries(element("board").places[turn]))
    if (Math.abs(px - x) < 0.55 && Math.abs(py - y) < 0.55) return letter + "*";
  const [x, y] = seen(px, py);
  if (x < 0 || x >= 9 || y < 0 || y >= 9) return null;
  return String(9 - Math.floor(x)) + "abcdefghi"[Math.floor(y)];
}

// Chooses a square or a piece in hand: the start of a move, or its target.
function choose(at) {
  if (picks() && at && at[1] !== "*") {
    const [x, y] = square(at);
    askedSquare = 9 * Math.floor(y) + Math.floor(x);
    return think();
  }
  if (!mine()) return;
  if (selected && at && at[1] !== "*") {
    const found = movesFrom(selected).filter((usi) => usi.slice(2, 4) === at);
    if (found.length) return play(found);
  }
  selected = at && at !== selected && movesFrom(at).length ? at : null;
  draw();
}

function play(found) {
  if (found.length === 2) {
    promoting = found[0].slice(0, 4);
    const kind = parse(game.positions[ply]).pieces.find(([x, y]) => String([x, y]) === String(square(promoting)))[2];
    all("[data-promote]").forEach((button) => {
      const sign = button.dataset.promote;
      button.textContent = `${PIECES[sign + kind.toUpperCase()]} ${word(sign ? "promote" : "keep")}`;
    });
    draw();
    document.querySelector("[data-promote='+']").focus();
  } else send(found[0]);
}

function send(usi) {
  selected = promoting = dragged = null;
  busy = true;
  tell("move", { move: usi, ply });
  draw();
}

element("board").onpointerdown = (event) => {
  if (!game || event.button) return;
  if (promoting) { promoting = null; selected = null; return draw(); }
  const before = selected;
  choose(targetOf(placeOf(event)));
  if (selected && selected !== before) {
    element("board").setPointerCapture(event.pointerId);
    element("board").start = placeOf(event);
  }
};
element("board").onpointermove = (event) => {
  const start = element("board").start;
  if (!start || !selected) return;
  const at = placeOf(event);
  if (!dragged && Math.hypot(at[0] - start[0], at[1] - start[1]) < 0.25) return;
  dragged = at;
  draw();
};
element("board").onpointerup = (event) => {
  element("board").start = null;
  if (!dragged) return;
  dragged = null;
  const at = targetOf(placeOf(event));
  if (at && at !== selected) choose(at);
  if (!promoting && !busy) selected = null;
  draw();
};
element("board").onpointercancel = () => { element("board").start = dragged = selected = null; draw(); };
all("[data-promote]").forEach((button) => {
  button.onclick = () => promoting && send(promoting + button.dataset.promote);
});

const KEYS = { ArrowLeft: "back", ArrowRight: "forward", Home: "first", End: "last" };
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

document.onkeydown = (event) => {
  if (!game || event.ctrlKey || event.altKey || event.metaKey) return;
  if (all("dialog").some((dialog) => dialog.open)) return;
  if (event.key === "Escape") { selected = promoting = cursor = null; return draw(); }
  if (document.activeElement === element("board")) return onBoard(event);
  if (!KEYS[event.key] || ["INPUT", "SELECT"].includes(document.activeElement.tagName)) return;
  event.preventDefault();
  actions[KEYS[event.key]]();
};

function onBoard(event) {
  const step = STEPS[event.key];
  if (step) {
    const [x, y] = square(cursor || (flipped ? "5c" : "5g")), sign = flipped ? -1 : 1;
    const to = [x + sign * step[0], y + sign * step[1]].map((at) => Math.floor(Math.min(8, Math.max(0, at))));
    cursor = cursor ? String(9 - to[0]) + "abcdefghi"[to[1]] : flipped ? "5c" : "5g";
    draw();
  } else if (event.key === "Enter" || event.key === " ") choose(cursor);
  else if (event.key.length === 1 && HAND.includes(event.key.toUpperCase())) choose(event.key.toUpperCase() + "*");
  else return;
  event.preventDefault();
}

// Buttons

function copyAndSay(content) {
  copy(content);
  complain(word("copied"));
}

const actions = {
  first: () => show(0), back: () => show(ply - 1), forward: () => show(ply + 1), last: () => show(last()),
  flip: () => { flipped = !flipped; draw(); },
  // Back to the last move of a person, whose turn it is then again.
  undo: () => {
    let to = last() - 1;
    while (to > 0 && game.players[(to + firstTurn()) % 2].kind !== "human") to--;
    tell("back", { ply: to });
  },
  hint: async () => {
    const at = ply, table = name, best = hasValue() ? await tell("search", { ply: at, seconds: 1, model: model() })
      : { line: await ask(`game/${name}/opinion?model=${model()}&ply=${at}`).catch(() => null) };
    const line = best && best.line;
    if (!best || at !== ply || table !== name) return;
    if (line && line.texts && !line.texts.length) hint = { ply: at, text: word("declare") };
    else if (!line || !line.moves.length) return complain(word("noHint"));
    else hint = line.texts ? { ply: at, usi: line.moves[0], text: line.texts[0] } : { ply: at, ...line.moves[0] };
    draw();
  },
  resign: () => { if (confirm(word("sure"))) tell("resign", { ply: last() }); },
  declare: () => tell("win", { ply: last() }),
  pause: () => { complain(""); tell("pause", { paused: !game.paused }); },
  fork: () => newGame("here"),
  practise: () => {
    if (!exercise) exercise = { game: name, left: mistakes() };
    if (!exercise.runs) nextExercise();
  },
  page: () => tell("page", { model: model() }),
  ask: () => newGame("even"),
  list: listGames,
  language: () => {
    language = language === "ja" ? "en" : "ja";
    remembered("language", language);
    nameAll();
    if (!game) return;
    nameSides();
    draw();
    drawMaps();
  },
  sfen: () => copyAndSay(game.positions[ply]),
  kif: async () => copyAndSay(await (await fetch(`game/${name}/kif`)).text()),
};

function nameAll() {
  document.documentElement.lang = language;
  all("[data-word]").forEach((one) => { one.textContent = word(one.dataset.word); });
}

// New games

const fill = (select, pairs, value) => {
  select.replaceChildren(...pairs.map(([key, content]) => new Option(content, key)));
  if (value !== undefined && pairs.some(([key]) => String(key) === String(value))) select.value = value;
};

function newGame(start) {
  const places = [["even", word("even")], ...offer.handicaps.map((key) => [key, key]),
    ["sfen", word("sfen")], ["record", word("record")], ...(game ? [["here", word("here")]] : [])];
  fill(element("start"), places, start);
  fill(element("clock"), [["none", word("none")], ["times", word("times")]], element("clock").value);
  all(".player").forEach((row, color) => {
    const kinds = [["human", word("you")],
      ...["mcts_player", "search1_player", "policy_player"].filter((kind) =>
        offer.models.some((one) => one.players.includes(kind))).map((kind) => [kind, word(kind)]),
      ...offer.engines.map((engine, n) => [`engine ${n}`, engine])];
    const [kind, number, level] = row.querySelectorAll("select");
    const before = game && game.players[color];
    const wanted = before ? (before.kind === "engine" ? `engine ${before.number}` : before.kind)
      : kind.value || (color ? kinds[1][0] : "human");
    fill(kind, kinds, wanted);
    kind.onchange = () => {
      fill(number, offer.models.map((one, n) => [n, one.name]).filter(([n]) =>
        offer.models[n].players.includes(kind.value)), number.value || (before ? before.number : undefined));
      number.hidden = !number.options.length;
      number.onchange();
    };
    number.onchange = () => {
      const most = kind.value === "mcts_player" ? offer.models[Number(number.value || 0)].levels : 0;
      const levels = Array.from({ length: most }, (_, n) => [n + 1, word(n === 19 ? "full" : "level", { n: n + 1 })]);
      fill(level, levels, level.value || (before ? before.level : Math.min(most, 5)));
      level.hidden = !most;
      choices();
    };
    kind.onchange();
  });
  choices();
  element("wrong").textContent = "";
  if (!element("new").open) element("new").showModal();
}

function choices() {
  const start = element("start").value;
  element("with_sfen").hidden = start !== "sfen";
  element("with_file").hidden = start !== "record";
  element("times").hidden = element("clock").value !== "times";
  element("thinks").hidden = !element("times").hidden || players().every((player) => player.kind === "human");
  element("begin").textContent = word(start === "record" ? "open" : "begin");
  element("seat").hidden = start !== "here" || ply < last();
  all(".player").forEach((row, color) => {
    row.hidden = start === "record";
    row.querySelector("b").textContent =
      word((offer.handicaps.includes(start) ? ["lower", "upper"] : ["black", "white"])[color]);
  });
  element("about").textContent = offer.handicaps.includes(start) ? word("handicap", { name: start })
    : players().filter((player) => player.kind in { mcts_player: 1, policy_player: 1 } && !offer.models[player.number].value)
      .map((player) => word("noValue", { name: offer.models[player.number].name }))[0] || "";
}

const players = () => all(".player").map((row) => {
  const [kind, number, level] = row.querySelectorAll("select");
  if (kind.value.startsWith("engine ")) return { kind: "engine", number: Number(kind.value.slice(7)) };
  return { kind: kind.value, number: Number(number.value || 0), level: Number(level.value || 20) };
});

async function wished() {
  const start = element("start").value, number = (id) => Number(element(id).value);
  const wish = { start: {}, players: players(), think: number("think"), clock: null };
  if (element("clock").value === "times")
    wish.clock = { main: 60 * number("main"), byoyomi: number("byoyomi"), increment: number("increment") };
  if (start === "sfen") wish.start.sfen = element("sfen").value;
  else if (start === "here") Object.assign(wish.start, { game: name, ply });
  else if (start === "record") {
    const file = element("file").files[0];
    if (!file) throw new Error(word("chooseFile"));
    if (file.size > 200000) throw new Error(word("tooLarge"));
    const bytes = new Uint8Array(await file.arrayBuffer());
    let binary = "";
    for (const byte of bytes) binary += String.fromCharCode(byte);
    Object.assign(wish.start, { record: btoa(binary), file: file.name });
    delete wish.players;
  } else if (start !== "even") wish.start.handicap = start;
  return wish;
}

async function begin() {
  try {
    const wish = await wished(), opened = !wish.players;
    const wasBlack = opened || wish.players[0].kind === "human" || wish.players[1].kind !== "human";
    const made = await ask("new", wish);
    flipped = !wasBlack;
    open(made.name);
  } catch (error) {
    element("wrong").textContent = error.message;
  }
}

async function listGames() {
  let games;
  try {
    games = await ask("games");
  } catch (error) {
    return complain(error.message);
  }
  const list = element("games").querySelector("div");
  list.replaceChildren(...games.map((one) => {
    const button = document.createElement("button");
    const at = `${one.name.slice(0, 4)}-${one.name.slice(4, 6)}-${one.name.slice(6, 8)} ${one.name.slice(9, 11)}:${one.name.slice(11, 13)}`;
    const names = one.players.map((player) => player || word("you")).join(" – ");
    button.textContent = `${at} ${names} · ${word("moves", { n: one.moves })}${one.over ? "" : " · " + word("unfinished")}`;
    button.onclick = () => open(one.name);
    return button;
  }));
  if (!games.length) list.textContent = word("noGames");
  element("games").showModal();
}

// Start

all("[data-do]").forEach((button) => button.onclick = () => actions[button.dataset.do]());
element("slider").oninput = (event) => show(Number(event.target.value));
element("graph").onclick = (event) => show(plyAt(event, Math.max(10, last())));
element("start").onchange = element("clock").onchange = choices;
element("begin").onclick = begin;
element("seat").onclick = async () => {
  const { players: both, think: seconds } = await wished();
  element("new").close();
  tell("players", { players: both, think: seconds });
};
element("cancel").onclick = () => element("new").close();
element("close").onclick = () => element("games").close();
all("[data-show]").forEach((box) => {
  const kept = remembered(box.dataset.show);
  box.checked = kept === null ? box.dataset.show === "value" : kept === "true";
  box.onchange = () => {
    remembered(box.dataset.show, box.checked);
    for (const [one, other] of [["planes", "filters"], ["filters", "planes"]])
      if (box.dataset.show === one && box.checked)
        element("shows").querySelector(`[data-show=${other}]`).checked = false;
    if (box.dataset.show === "lines" && !box.checked && name) tell("analyze", {});
    if (box.dataset.show === "lines") lines = NO_LINES;
    if (!game) return;
    think();
    draw();
    drawMaps();
  };
});
element("model").onchange = () => {
  values = [];
  if (!game) return;
  if (shows("lines")) tell("analyze", {});
  think();
  draw();
};
document.onvisibilitychange = listen;  // a browser opens few streams: hidden tabs have none
window.onresize = draw;
setInterval(tick, 200);
nameAll();

new FontFace("Shogi", "url(font.woff)").load().then((font) => document.fonts.add(font), () => {});
ask("offer").then((found) => {
  offer = found;
  fill(element("model"), offer.models.map((one, n) => [n, one.name]));
  const switches = () => ["value", "lines"].forEach((key) => {
    element("shows").querySelector(`[data-show=${key}]`).parentElement.hidden = !hasValue();
  });
  element("model").addEventListener("change", switches);
  switches();
  if (name) listen();
  else newGame("even");
}).catch((error) => complain(error.message));
