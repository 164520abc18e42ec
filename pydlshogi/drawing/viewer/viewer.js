// Shows a game: the board at one ply, the graph of the game, and the table of its moves.
// "data" is made by pydlshogi/drawing/page.py; positions[n] is the position after n moves.

const data = JSON.parse(document.getElementById("data").textContent);
const words = data.words;
const last = data.positions.length - 1;
const element = (id) => document.getElementById(id);
const LOSS = 0.08;  // of winning probability, from which on a move is shown in red

let ply = 0;
sides = [words.black, words.white];

function drawBoard() {
  const position = data.positions[ply];
  const { svg, places } = drawn(position.sfen, ply ? data.moves[ply - 1].usi : "");
  const turn = position.sfen.split(" ")[1] === "w" ? 1 : 0;
  const shown = position.moves.filter((move, n) => move.p !== null && (n === 0 || move.p > 0.005));
  element("board").innerHTML = svg + arrows(shown, places[turn]);
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
