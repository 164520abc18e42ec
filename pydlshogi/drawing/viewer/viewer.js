// Shows a game: the board at one ply, the graph of the game, its mistakes and the table of its
// moves. A candidate can be played on the board.
// "data" is made by pydlshogi/drawing/page.py; positions[n] is the position after n moves.

const data = JSON.parse(document.getElementById("data").textContent);
const words = data.words;
const last = data.positions.length - 1;
const element = (id) => document.getElementById(id);
const RED = "#c8102e", BROWN = "#b36b00";
const mistakes = data.moves.map((move, n) => n).filter((n) => data.moves[n].mark);

let ply = 0;
let trial = null;  // a line that is played out: the candidate, and the number of its moves played
sides = data.sides;

const signed = (p) => (p > 0 ? "+" : "") + percent(p, 1);
const filled = (key, values) =>
  words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);

function made(tag, content = "", className = "") {
  const node = document.createElement(tag);
  node.textContent = content;
  node.className = className;
  return node;
}

// The SFEN after a move in USI notation.
function played(sfen, usi) {
  const [, turn, , number] = sfen.split(" ");
  const { pieces, held } = parse(sfen);
  const color = turn === "w" ? 1 : 0, at = {};
  for (const [x, y, letter] of pieces) at[[x, y]] = letter;
  const target = square(usi.slice(2, 4)), caught = at[target];
  if (caught) {
    const kind = caught.toUpperCase().slice(-1);
    held[color][kind] = (held[color][kind] || 0) + 1;
  }
  if (usi[1] === "*") {
    at[target] = color ? usi[0].toLowerCase() : usi[0];
    held[color][usi[0]] -= 1;
  } else {
    const start = square(usi);
    at[target] = (usi[4] ? "+" : "") + at[start];
    delete at[start];
  }
  const rows = Array.from({ length: 9 }, (_, y) =>
    Array.from({ length: 9 }, (_, x) => at[[x + 0.5, y + 0.5]] || "1").join("")
      .replace(/1+/g, (ones) => ones.length)).join("/");
  const hands = [0, 1].map((side) => [...HAND].filter((kind) => held[side][kind]).map((kind) =>
    (held[side][kind] > 1 ? held[side][kind] : "") + (side ? kind.toLowerCase() : kind)).join(""));
  return [rows, color ? "b" : "w", hands.join("") || "-", Number(number) + 1].join(" ");
}

// The position shown: that of the game, or one of a line.
function current() {
  const position = data.positions[ply];
  if (!trial) return { sfen: position.sfen, usi: ply ? data.moves[ply - 1].usi : "" };
  const moves = trial.line.split(" ").slice(0, trial.shown);
  return { sfen: moves.reduce(played, position.sfen), usi: moves[moves.length - 1] };
}

function drawBoard() {
  const position = data.positions[ply], { sfen, usi } = current();
  const { svg, places } = drawn(sfen, usi);
  const turn = sfen.split(" ")[1] === "w" ? 1 : 0;
  const shown = position.moves.filter((move, n) => move.p !== null && (n === 0 || move.p > 0.005));
  element("board").innerHTML = svg + (trial ? "" : arrows(shown, places[turn]));
  element("value").classList.toggle("none", position.win === null);
  if (position.win === null) return;
  const [black, bar, white] = element("value").children;
  black.textContent = `☗ ${percent(position.win)}`;
  white.textContent = `☖ ${100 - Math.round(100 * position.win)}%`;
  bar.firstChild.style.width = percent(position.win, 1);
}

// The graph: Black's winning probability, or without values the probabilities of the moves.
function drawGraph() {
  const wins = data.positions.map((position, n) => [n, position.win]).filter(([, win]) => win !== null);
  const isKnown = wins.length || data.moves.some(({ p }) => p !== null);
  element("graph").classList.toggle("none", !isKnown);
  if (!isKnown) return;
  const box = element("graph");
  const { axes, x, y } = graph(box, last, wins.length ? filled("win of", { side: sides[0] }) : words.policy);
  let svg = axes;
  if (wins.length) {
    svg += course(wins, x, y);
    for (const n of mistakes) {
      const { mark } = data.moves[n], at = data.positions[n + 1].win;
      svg += `<circle class="mistake" cx="${x(n + 1)}" cy="${y(at)}" r="${mark === "bad" ? 4.5 : 3.5}"` +
        ` fill="${mark === "bad" ? RED : BROWN}"/>`;
    }
  } else {
    data.moves.forEach(({ p, rank }, n) => {
      if (p !== null) svg += rectangle(x(n), y(p), 0.85 * (x(1) - x(0)), y(0) - y(p),
        rank === 1 ? "#174a8b" : "#c9c2b4");
    });
  }
  box.innerHTML = svg + `<path id="now" d="M${x(ply)} ${y(1)}V${y(0)}" stroke="${RED}" stroke-width="1.5"/>`;
}

// The columns of the table that the game has: a title, a text and a class for a move. A phone hides
// "before" and "share".
const columns = [
  ["#", (move, n) => n + 1],
  [words.moves, (move) => move.text],
  ["", (move) => move.mark ? words[move.mark] : null, (move) => move.mark],
  [words.rank, (move) => move.rank, (move) => move.rank === 1 ? "first" : ""],
  [data.searched ? words.share : words.policy, (move) => move.p === null ? null : percent(move.p, 1),
    () => "share"],
  [words.before, (move) => move.before === null ? null : percent(move.before, 1), () => "before"],
  [words.change, (move) => change(move) === null ? null : signed(change(move)), (move) => move.mark],
  [words.time, (move) => move.seconds === null ? null : Number(move.seconds.toFixed(1)) + " s"],
].filter(([, value]) => data.moves.some((move, n) => value(move, n) !== null));

function change(move) {
  return move.before === null || move.after === null ? null : move.after - move.before;
}

function drawTable() {
  const head = element("table").querySelector("thead"), body = element("table").querySelector("tbody");
  const hidden = { [words.before]: "before", [words.share]: "share", [words.policy]: "share" };
  head.innerHTML = "<tr>" + columns.map(([title]) =>
    `<th${hidden[title] ? ` class="${hidden[title]}"` : ""}>${title}</th>`).join("") + "</tr>";
  data.moves.forEach((move, n) => {
    const row = body.insertRow();
    for (const [, value, className] of columns) {
      const content = value(move, n);
      row.append(made("td", content === null ? "" : content, className ? className(move) : ""));
    }
    row.onclick = () => show(n + 1);
  });
  const row = body.insertRow();
  row.append(made("td"), made("td", data.end));
  row.onclick = () => show(last);
}

function drawMistakes() {
  const known = data.moves.some((move) => change(move) !== null);
  element("list").classList.toggle("none", !known);
  element("list").firstChild.textContent = `${words.mistakes} (${mistakes.length})`;
  document.querySelector('[data-go="next mistake"]').classList.toggle("none", !mistakes.length);
  element("mistakes").replaceChildren(...mistakes.map((n) => {
    const move = data.moves[n], item = made("li");
    const content = `${n + 1} ${move.text}  ${words[move.mark]}  ${signed(change(move))}`;
    const button = made("button", content, move.mark);
    button.onclick = () => show(n);
    item.append(button);
    return item;
  }));
  if (!mistakes.length) element("mistakes").append(made("li", words["no mistakes"]));
}

function drawOpinion() {
  const position = data.positions[ply], next = data.moves[ply];
  const isMistake = !trial && next && next.mark;
  element("verdict").textContent = !isMistake ? "" : filled(`${next.mark} move`,
    { move: next.text, before: percent(next.before), after: percent(next.after) });
  element("verdict").className = isMistake ? next.mark : "";
  element("here").textContent = position.moves.length ? words.candidates : "";
  element("candidates").replaceChildren(...position.moves.map((move) => {
    const item = made("li"), button = made("button", move.text);
    const numbers = [move.p === null ? "" : `${data.searched ? words.share : words.policy} ${percent(move.p, 1)}`,
      move.value === null ? "" : `${words.value} ${percent(move.value, 1)}`,
      move.visits ? `${words.visits} ${move.visits}` : ""];
    button.onclick = () => tryLine(move, 1);
    item.append(button, made("span", numbers.filter(Boolean).join(" / ")));
    item.classList.toggle("played", Boolean(next) && next.usi === move.usi);
    return item;
  }));
  drawLine(trial || position.moves.find((move) => move.line) || null);
}

// The moves of a line; a click plays as far as the move.
function drawLine(move) {
  element("line").replaceChildren();
  if (!move || !(move.line || trial)) return;
  element("line").append(made("span", `${words.line}: `));
  (move.texts || move.text).split(" ").forEach((content, n) => {
    const button = made("button", content, trial && n + 1 === trial.shown ? "now" : "");
    button.onclick = () => tryLine(move, n + 1);
    element("line").append(button);
  });
  if (!trial) return;
  const button = made("button", words["to the game"], "back");
  button.onclick = () => show(ply);
  element("line").append(button);
}

function tryLine(move, shown) {
  const line = move.line || move.usi;
  if (shown < 1) return show(ply);
  trial = { ...move, line, shown: Math.min(shown, line.split(" ").length) };
  drawBoard();
  drawOpinion();
}

function markRow() {
  const rows = element("table").querySelectorAll("tbody tr");
  rows.forEach((row, n) => row.classList.toggle("now", n + 1 === ply));
  const box = element("table"), row = rows[Math.max(0, ply - 1)];
  box.scrollTop = row.offsetTop - box.clientHeight / 2;
}

function show(wanted) {
  trial = null;
  ply = Math.min(last, Math.max(0, wanted));
  element("slider").value = ply;
  drawBoard();
  drawGraph();
  drawOpinion();
  markRow();
}

function copyAndSay(content) {
  copy(content);
  element("copied").textContent = words.copied;
  setTimeout(() => { element("copied").textContent = ""; }, 1500);
}

const actions = {
  first: () => show(0),
  back: () => trial ? tryLine(trial, trial.shown - 1) : show(ply - 1),
  forward: () => trial ? tryLine(trial, trial.shown + 1) : show(ply + 1),
  last: () => show(last),
  flip: () => { flipped = !flipped; drawBoard(); },
  "next mistake": () => show(mistakes.find((n) => n > ply) ?? mistakes[0]),
  "copy sfen": () => copyAndSay(current().sfen),
  "copy kif": () => copyAndSay(data.kif),
};
const KEYS = { ArrowLeft: "back", ArrowRight: "forward", Home: "first", End: "last" };

document.querySelectorAll("[data-go]").forEach((button) => {
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
element("graph").onclick = (event) => show(plyAt(event, last));
window.onresize = drawGraph;
element("keys").textContent = words.keys;
element("about").textContent = data.about;
element("notes").replaceChildren(...data.notes.map((note) => made("li", note)));
document.querySelector('[data-go="copy kif"]').classList.toggle("none", !data.kif);
drawTable();
drawMistakes();
show(mistakes.length ? mistakes[0] : 0);
