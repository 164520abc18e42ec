"use strict";

// Shows a game: the board at one ply, the graph of the game, and the table of its moves.
// "data" is made by pydlshogi/drawing/page.py; positions[n] is the position after n moves.

const data = JSON.parse(document.getElementById("data").textContent);
const words = data.words;
const last = data.positions.length - 1;
const element = (id) => document.getElementById(id);
const PIECES = { P: "歩", L: "香", N: "桂", S: "銀", G: "金", B: "角", R: "飛", K: "玉",
  "+P": "と", "+L": "杏", "+N": "圭", "+S": "全", "+B": "馬", "+R": "龍" };
const FILES = "９８７６５４３２１", RANKS = "一二三四五六七八九";
const HAND = "RBGSNLP";
const PENTAGON = [[-0.40, 0.43], [0.40, 0.43], [0.32, -0.24], [0, -0.44], [-0.32, -0.24]];
const LOSS = 0.08;  // of winning probability, from which on a move is shown in red

let ply = 0;
let flipped = false;

const isBlack = (letter) => letter === letter.toUpperCase();
const percent = (p, digits = 0) => (100 * p).toFixed(digits) + "%";
const seen = (x, y) => flipped ? [9 - x, 9 - y] : [x, y];

// Position: the board of a SFEN as [x, y, letter] with the middles of the squares, and both hands.
function parse(sfen) {
  const [rows, , hands] = sfen.split(" ");
  const pieces = [], held = [{}, {}];
  rows.split("/").forEach((row, y) => {
    let x = 0;
    for (const [, digit, letter] of row.matchAll(/(\d)|(\+?[A-Za-z])/g)) {
      if (letter) pieces.push([x + 0.5, y + 0.5, letter]);
      x += digit ? Number(digit) : 1;
    }
  });
  for (const [, count, letter] of hands.matchAll(/(\d*)([A-Za-z])/g))
    held[isBlack(letter) ? 0 : 1][letter.toUpperCase()] = Number(count || 1);
  return { pieces, held };
}

const square = (name) => [9.5 - Number(name[0]), name.charCodeAt(1) - 96.5];
const text = (x, y, size, content, color = "#221a12", turn = 0) =>
  `<text x="${x}" y="${y}" font-size="${size}" fill="${color}"` +
  ` transform="rotate(${turn} ${x} ${y})">${content}</text>`;
const rectangle = (x, y, width, height, color, more = "") =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${color}" ${more}/>`;
const points = (corners) => corners.map((corner) => corner.join()).join(" ");

function piece(x, y, letter) {
  const turned = isBlack(letter) === flipped, sign = turned ? -1 : 1;
  const kind = letter.toUpperCase();
  const name = kind === "K" && !isBlack(letter) ? "王" : PIECES[kind];
  const corners = PENTAGON.map(([dx, dy]) => [x + sign * dx, y + sign * dy]);
  return `<polygon points="${points(corners)}" fill="#fbe9c3" stroke="#5b4630"` +
    ` stroke-width="0.02"/>` +
    text(x, y + 0.05 * sign, 0.6, name, kind[0] === "+" ? "#b3201c" : "#221a12", turned ? 180 : 0);
}

function grid() {
  let svg = "";
  for (let n = 0; n < 10; n++) {
    const width = n % 9 ? 0.015 : 0.035;
    svg += `<path d="M${n} 0V9M0 ${n}H9" stroke="#5b4630" stroke-width="${width}"/>`;
  }
  for (let n = 0; n < 9; n++) {
    const place = flipped ? 8.5 - n : n + 0.5;
    svg += text(place, -0.38, 0.38, FILES[n]) + text(9.42, place, 0.38, RANKS[n]);
  }
  return svg;
}

// The pieces in hand of a side, and the place of each kind, from which drops come.
function hand(held, color) {
  const right = (color === 0) !== flipped;
  const left = right ? 9.95 : -2.1, top = right ? 2.1 : 0;
  const name = (color ? "☖" : "☗") + words[color ? "white" : "black"];
  let svg = rectangle(left, top, 1.75, 6.9, "#f4d69c", 'opacity="0.5" rx="0.15"') +
    text(left + 0.87, top - 0.35, 0.34, name);
  const places = {};
  let y = top + 0.6;
  for (const letter of HAND) {
    if (!held[letter]) continue;
    places[letter] = [left + 0.6, y];
    svg += piece(left + 0.6, y, color ? letter.toLowerCase() : letter);
    if (held[letter] > 1) svg += text(left + 1.3, y, 0.42, held[letter]);
    y += 0.95;
  }
  return { svg, places };
}

function arrow([x0, y0], [x1, y1], strength) {
  const length = Math.hypot(x1 - x0, y1 - y0) || 1;
  const dx = (x1 - x0) / length, dy = (y1 - y0) / length;
  const half = 0.03 + 0.08 * strength, head = 0.2 + 2.6 * half, wide = 2 * half + 0.08;
  const corners = [[0, half], [length - head, half], [length - head, wide], [length, 0],
    [length - head, -wide], [length - head, -half], [0, -half]]
    .map(([a, b]) => [x0 + a * dx - b * dy, y0 + a * dy + b * dx]);
  return `<polygon points="${points(corners)}" fill="#174a8b" stroke="#fff" stroke-width="0.02"` +
    ` opacity="${0.35 + 0.5 * strength}"/>`;
}

function label([x, y], content, row) {
  const width = 0.22 + 0.17 * content.length, top = y - 0.34 + 0.34 * row;
  return rectangle(x - width / 2, top - 0.15, width, 0.3, "#fff",
    'stroke="#174a8b" stroke-width="0.025" rx="0.1"') + text(x, top, 0.26, content, "#174a8b");
}

// The model's moves: arrows first, then the labels above them.
function arrows(candidates, places) {
  const most = Math.max(...candidates.map((move) => move.p));
  const rows = {};
  let shapes = "", labels = "";
  for (const { usi, p } of candidates) {
    const target = seen(...square(usi.slice(2, 4)));
    const start = usi[1] === "*" ? places[usi[0]] : seen(...square(usi));
    shapes = arrow(start, target, Math.sqrt(p / most)) + shapes;
    rows[target] = rows[target] === undefined ? 0 : rows[target] + 1;
    labels += label(target, (p < 0.0095 ? "<1%" : percent(p)) + (usi[4] ? "成" : ""), rows[target]);
  }
  return shapes + labels;
}

function highlight(usi) {
  return [usi.slice(0, 2), usi.slice(2, 4)].filter((name) => name[1] !== "*").map((name) => {
    const [x, y] = seen(...square(name));
    return rectangle(x - 0.5, y - 0.5, 1, 1, "#ffe680");
  }).join("");
}

function drawBoard() {
  const position = data.positions[ply];
  const { pieces, held } = parse(position.sfen);
  const hands = [hand(held[0], 0), hand(held[1], 1)];
  const turn = position.sfen.split(" ")[1] === "w" ? 1 : 0;
  const shown = position.moves.filter((move, n) => move.p !== null && (n === 0 || move.p > 0.005));
  element("board").innerHTML = rectangle(-0.12, -0.12, 9.24, 9.24, "#f4d69c") +
    (ply ? highlight(data.moves[ply - 1].usi) : "") + grid() +
    pieces.map(([x, y, letter]) => piece(...seen(x, y), letter)).join("") +
    hands[0].svg + hands[1].svg + arrows(shown, hands[turn].places);
  element("value").classList.toggle("none", position.win === null);
  if (position.win === null) return;
  element("value").firstChild.style.width = percent(position.win, 1);
  element("value").lastChild.textContent = `☗ ${percent(position.win)}`;
}

// The graph: Black's winning probability, or without values the probabilities of the moves.
function drawGraph() {
  const x = (n) => 100 * n / Math.max(1, last);
  const wins = data.positions.map((position, n) => [x(n), position.win])
    .filter(([, win]) => win !== null).map(([at, win]) => [at, 100 - 100 * win]);
  let svg = "";
  if (wins.length) {
    const line = points(wins);
    svg = `<polygon points="${wins[0][0]},100 ${line} ${wins[wins.length - 1][0]},100" fill="#3a3a3a"` +
      ` opacity="0.18"/><polyline points="${line}" fill="none" stroke="#222" stroke-width="1.5"` +
      ` vector-effect="non-scaling-stroke"/>` +
      `<path d="M0 50H100" stroke="#999" vector-effect="non-scaling-stroke"/>`;
  } else {
    data.moves.forEach(({ p, rank }, n) => {
      if (p !== null) svg += rectangle(x(n), 100 - 100 * p, 0.85 * x(1), 100 * p,
        rank === 1 ? "#174a8b" : "#c9c2b4");
    });
  }
  element("graph").innerHTML = svg + `<path id="now" d="M${x(ply)} 0V100" stroke="#c8102e"` +
    ` stroke-width="1.5" vector-effect="non-scaling-stroke"/>`;
  element("graph").classList.toggle("none", !svg);
}

// The columns of the table that the game has: a title, a text and a class for a move.
const columns = [
  ["#", (move, n) => n + 1],
  [words.moves, (move) => move.text],
  [words.rank, (move) => move.rank, (move) => move.rank === 1 ? "first" : ""],
  [words.policy, (move) => move.p === null ? null : percent(move.p, 1)],
  [words.before, (move) => move.before === null ? null : percent(move.before, 1)],
  [words.change, (move) => change(move) === null ? null : (change(move) > 0 ? "+" : "") + percent(change(move), 1),
    (move) => change(move) <= -LOSS ? "loss" : ""],
  [words.time, (move) => move.seconds === null ? null : move.seconds.toFixed(1) + " s"],
].filter(([, value]) => data.moves.some((move, n) => value(move, n) !== null));

function change(move) {
  return move.before === null || move.after === null ? null : move.after - move.before;
}

function cell(content, className = "") {
  const made = document.createElement("td");
  made.textContent = content === null ? "" : content;
  made.className = className;
  return made;
}

function drawTable() {
  const head = element("table").querySelector("thead"), body = element("table").querySelector("tbody");
  head.innerHTML = "<tr>" + columns.map(([title]) => `<th>${title}</th>`).join("") + "</tr>";
  data.moves.forEach((move, n) => {
    const row = body.insertRow();
    columns.forEach(([, value, className]) =>
      row.append(cell(value(move, n), className ? className(move) : "")));
    row.onclick = () => show(n + 1);
  });
  const row = body.insertRow();
  row.append(cell(""), cell(data.end));
  row.onclick = () => show(last);
}

function drawOpinion() {
  const position = data.positions[ply], played = data.moves[ply];
  element("here").textContent = position.moves.length ? words.candidates : "";
  element("candidates").replaceChildren(...position.moves.map(({ usi, text: name, p }) => {
    const item = document.createElement("li");
    item.textContent = name + (p === null ? "" : "  " + percent(p, 1));
    item.classList.toggle("played", Boolean(played) && played.usi === usi);
    return item;
  }));
  element("line").textContent = position.line ? `${words.line}: ${position.line}` : "";
}

function markRow() {
  const rows = element("table").querySelectorAll("tbody tr");
  rows.forEach((row, n) => row.classList.toggle("now", n + 1 === ply));
  const box = element("table"), row = rows[Math.max(0, ply - 1)];
  box.scrollTop = row.offsetTop - box.clientHeight / 2;
}

function show(wanted) {
  ply = Math.min(last, Math.max(0, wanted));
  element("slider").value = ply;
  drawBoard();
  drawGraph();
  drawOpinion();
  markRow();
}

const actions = {
  first: () => show(0),
  back: () => show(ply - 1),
  forward: () => show(ply + 1),
  last: () => show(last),
  flip: () => { flipped = !flipped; show(ply); },
};
const KEYS = { ArrowLeft: "back", ArrowRight: "forward", Home: "first", End: "last" };

document.querySelectorAll("button").forEach((button) => {
  button.textContent = words[button.dataset.go];
  button.onclick = actions[button.dataset.go];
});
document.onkeydown = (event) => {
  const action = KEYS[event.key];
  if (!action || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  actions[action]();
};
element("slider").max = last;
element("slider").oninput = (event) => show(Number(event.target.value));
element("graph").onclick = (event) => {
  const box = element("graph").getBoundingClientRect();
  show(Math.round(last * (event.clientX - box.left) / box.width));
};
element("keys").textContent = words.keys;
element("notes").replaceChildren(...data.notes.map((note) => {
  const item = document.createElement("li");
  item.textContent = note;
  return item;
}));
drawTable();
show(0);
