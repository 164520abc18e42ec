"use strict";

// Draws a board: positions, pieces, hands, arrows and labels as SVG. The pages of games and the
// board in the browser share it; each script sets the names of the sides.

const PIECES = { P: "歩", L: "香", N: "桂", S: "銀", G: "金", B: "角", R: "飛", K: "玉",
  "+P": "と", "+L": "杏", "+N": "圭", "+S": "全", "+B": "馬", "+R": "龍" };
const FILES = "９８７６５４３２１", RANKS = "一二三四五六七八九";
const HAND = "RBGSNLP";
const PENTAGON = [[-0.40, 0.43], [0.40, 0.43], [0.32, -0.24], [0, -0.44], [-0.32, -0.24]];

let flipped = false;
let narrow = false;  // whether the hands stand above and below the board
let sides = ["", ""];  // names of Black and White

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
  return narrow ? flatHand(held, color) : tallHand(held, color);
}

function flatHand(held, color) {
  const below = (color === 0) !== flipped, top = below ? 9.2 : -1.85;
  let svg = rectangle(-0.12, top, 9.24, 1.1, "#f4d69c", 'opacity="0.5" rx="0.15"') +
    text(0.95, top + 0.55, 0.42, (color ? "☖" : "☗") + sides[color]);
  const places = {};
  let x = 2.45;
  for (const letter of HAND) {
    if (!held[letter]) continue;
    places[letter] = [x, top + 0.55];
    svg += piece(x, top + 0.55, color ? letter.toLowerCase() : letter);
    if (held[letter] > 1) svg += count(x + 0.4, top + 0.85, held[letter]);
    x += 0.98;
  }
  return { svg, places };
}

const count = (x, y, number) =>
  `<circle cx="${x}" cy="${y}" r="0.24" fill="#174a8b"/>` + text(x, y + 0.02, 0.32, number, "#fff");

function tallHand(held, color) {
  const right = (color === 0) !== flipped;
  const left = right ? 9.95 : -2.1, top = right ? 2.1 : 0;
  const name = (color ? "☖" : "☗") + sides[color];
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
  const most = Math.max(...candidates.map((move) => move.p)) || 1;
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

// The board of a SFEN with the last move and what lies below the pieces, and the places of the
// pieces in both hands.
function drawn(sfen, last, below = "") {
  const { pieces, held } = parse(sfen);
  const hands = [hand(held[0], 0), hand(held[1], 1)];
  const svg = rectangle(-0.12, -0.12, 9.24, 9.24, "#f4d69c") + (last ? highlight(last) : "") +
    below + grid() + pieces.map(([x, y, letter]) => piece(...seen(x, y), letter)).join("") +
    hands[0].svg + hands[1].svg;
  return { svg, pieces, places: hands.map((one) => one.places) };
}

// The axes of a graph over the game with a title, in the pixels of the screen so that letters keep
// their shape; x and y place a move number and a probability.
const MARGIN = { left: 38, right: 8, top: 20, bottom: 18 };

function graph(box, last, title) {
  const width = box.clientWidth || 600, height = box.clientHeight || 190;
  box.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const inner = [width - MARGIN.left - MARGIN.right, height - MARGIN.top - MARGIN.bottom];
  const x = (n) => MARGIN.left + inner[0] * n / Math.max(1, last);
  const y = (p) => MARGIN.top + inner[1] * (1 - p);
  let axes = text(MARGIN.left, 9, 11, title).replace("<text", '<text class="left"');
  for (const p of [0, 0.25, 0.5, 0.75, 1]) {
    axes += `<path d="M${x(0)} ${y(p)}H${x(last)}" stroke="${p === 0.5 ? "#999" : "#e5dcc8"}"/>`;
    if (p % 0.5 === 0) axes += text(MARGIN.left - 18, y(p), 10, percent(p), "#665");
  }
  const steps = [1, 5, 10, 20, 50, 100, 200, 500, 1000].find((step) => last / step <= inner[0] / 36);
  for (let n = 0; n <= last; n += steps || last)
    axes += `<path d="M${x(n)} ${y(0)}v3" stroke="#999"/>` + text(x(n), height - 8, 10, n, "#665");
  return { axes, x, y };
}

// The line of Black's chances, [move number, chance], and the area below it.
function course(wins, x, y) {
  const line = points(wins.map(([n, win]) => [x(n), y(win)]));
  return `<polygon points="${x(wins[0][0])},${y(0)} ${line} ${x(wins[wins.length - 1][0])},${y(0)}"` +
    ` fill="#3a3a3a" opacity="0.14"/>` +
    `<polyline points="${line}" fill="none" stroke="#222" stroke-width="1.5"/>`;
}

function plyAt(event, last) {
  const box = event.currentTarget.getBoundingClientRect();
  return Math.round(last * (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right));
}

// A frame of a notebook may not use the clipboard; then an old way works.
function copy(content) {
  const area = document.createElement("textarea");
  area.value = content;
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  if (!isDone && navigator.clipboard) navigator.clipboard.writeText(content).catch(() => {});
}
