"use strict";

// All words of the page: English, Japanese. {…} is filled in.
const WORDS = {
  ask: ["New game", "新規対局"], list: ["Games", "対局一覧"], language: ["日本語", "English"],
  black: ["Black", "先手"], white: ["White", "後手"],
  lower: ["Black (下手)", "下手"], upper: ["White (上手)", "上手"],
  you: ["You", "あなた"], engine: ["Engine", "エンジン"],
  mcts_player: ["Search (mcts_player)", "探索（mcts_player）"],
  search1_player: ["One move ahead (search1_player)", "1手読み（search1_player）"],
  policy_player: ["Policy (policy_player)", "方策のみ（policy_player）"],
  level: ["Level {n}", "レベル {n}"], full: ["Full strength", "最強"],
  start: ["Start", "開始局面"], even: ["Even game", "平手"], sfen: ["A position (SFEN)", "局面（SFEN）"],
  record: ["A record from a file", "棋譜ファイル"], here: ["The position shown", "表示中の局面"],
  file: ["File", "ファイル"], clock: ["Clock", "持ち時間"], none: ["No clock", "なし"],
  times: ["With clocks", "あり"], main: ["Minutes", "持ち時間（分）"], byoyomi: ["Byoyomi (s)", "秒読み（秒）"],
  increment: ["Increment (s)", "1手ごとの加算（秒）"], think: ["Engine's seconds a move", "エンジンの1手の秒数"],
  begin: ["Play", "対局開始"], open: ["Open", "開く"], cancel: ["Cancel", "キャンセル"], close: ["Close", "閉じる"],
  seat: ["Change players only", "対局者だけ変更"],
  undo: ["Take back", "待った"], hint: ["Hint", "ヒント"], resign: ["Resign", "投了"],
  declare: ["Declare victory", "入玉宣言"], pause: ["Pause", "一時停止"], resume: ["Go on", "再開"],
  renew: ["Start a new engine", "エンジンを起動し直す"],
  fork: ["Continue from here", "ここから続ける"], flip: ["Turn the board", "盤を反転"],
  shows: ["The network's view", "ネットワークの考え"], value: ["Value", "勝率"], arrows: ["Moves", "候補手"],
  lines: ["Search", "読み筋"], planes: ["Input planes", "入力平面"], filters: ["Filters", "フィルタ"],
  copySfen: ["Copy SFEN", "SFENをコピー"], copyKif: ["Copy KIF", "KIFをコピー"],
  saveKif: ["Save KIF", "KIFを保存"], saveCsa: ["Save CSA", "CSAを保存"], copied: ["Copied.", "コピーしました。"],
  promote: ["Promote", "成"], keep: ["Do not", "不成"],
  toMove: ["{side} to move", "{side}の手番です"], check: ["Check!", "王手！"],
  thinking: ["{side} is thinking …", "{side}が考えています…"], paused: ["Paused.", "一時停止中です。"],
  earlier: ["Position after {n} moves; the game has {m}.", "{n}手目の局面です（全{m}手）。"],
  wins: ["{side} wins: {why}.", "{side}の勝ち（{why}）"], draw: ["Draw: {why}.", "引き分け（{why}）"],
  over: ["The record ends here.", "棋譜はここまでです。"],
  TORYO: ["resignation", "投了"], TSUMI: ["no legal move", "詰み"], TIME_UP: ["time", "時間切れ"],
  KACHI: ["declaration", "入玉宣言"], SENNICHITE: ["repetition", "千日手"], JISHOGI: ["impasse", "持将棋"],
  ILLEGAL_MOVE: ["illegal move", "反則"], ILLEGAL_ACTION: ["perpetual check", "連続王手の千日手"],
  MAX_MOVES: ["many moves", "最大手数"], CHUDAN: ["as recorded", "棋譜による"], HIKIWAKE: ["as recorded", "棋譜による"],
  handicap: ["{name}: the model was not trained on handicap games, so its values mean little here.",
    "{name}：モデルは駒落ちの対局を学習していないため、勝率や候補手はあまり当てになりません。"],
  noValue: ["{name} has no value: it plays by its policy, and shows no value, graph or search.",
    "{name}には価値の出力がありません。方策だけで指し、勝率・グラフ・読み筋は表示しません。"],
  lost: ["Your last move cost about {n} points of winning chance. You can take it back.",
    "あなたの直前の手で、勝率が約{n}ポイント下がりました。待ったができます。"],
  winOf: ["{side} wins", "{side}の勝率"],
  hinted: ["Hint: {move}", "ヒント：{move}"],
  page: ["Analyse the game", "対局を解析"], making: ["Analysing {n} / {m} …", "解析中 {n} / {m}…"],
  openPage: ["Open the page of the game", "対局の解析を開く"],
  practise: ["Practise my mistakes", "悪手を復習"], next: ["Next exercise", "次の問題"],
  exercise: ["Exercise: here you lost {n} points. Find a better move.", "問題：ここで勝率を{n}ポイント損しました。より良い手を探してください。"],
  judging: ["The search looks at your move …", "指し手を調べています…"],
  solved: ["Right! The best move was {move}.", "正解です。最善手は{move}でした。"],
  missed: ["That costs {n} points. The best move is {move}.", "{n}ポイント損です。最善手は{move}です。"],
  unjudged: ["The search could not judge your move. Take it back and try again.",
    "指し手を判定できませんでした。待ったをして、もう一度指してください。"],
  checking: ["Checking your moves …", "悪手を確かめています…"],
  noHint: ["The search found no move.", "候補手が見つかりませんでした。"],
  noMistakes: ["A longer search confirms no more mistakes of yours in this game.", "この対局には、長い探索で確かめられる悪手がもうありません。"],
  engineFailed: ["The engine has failed; the game is kept.", "エンジンが止まりました。対局は保存されています。"],
  offline: ["The server does not answer. Start it again: this game is saved.",
    "サーバーが応答しません。もう一度起動してください。対局は保存されています。"],
  searching: ["The search starts …", "探索を開始しています…"], nodes: ["{n} positions", "{n}局面"],
  ownPlane: ["side to move", "手番側"], opponentPlane: ["opponent", "相手側"], historyPlane: ["last moves", "直前の手"],
  planesNote: ["{n} of {m} input planes are not empty. Choose one to see it on the board.",
    "入力平面{m}枚のうち、空でないものは{n}枚です。選ぶと盤上に表示します。"],
  filtersNote: ["The strongest of the first layer's filters. Choose one to see it on the board; with the box ticked, a click on the board asks about that square.",
    "第1層のフィルタのうち、反応が強いものです。選ぶと盤上に表示します。チェックを入れると、盤上でクリックしたマスについて調べます。"],
  pick: ["of a square: {name}", "マスを指定：{name}"], anywhere: ["click one", "盤をクリック"],
  keys: ["Keys: ← → through the game. On the board: arrows move the cursor, Enter chooses, letters P L N S G B R choose a piece in hand.",
    "←→キーで棋譜を移動。盤を選択中は矢印キーでカーソル移動、Enterで決定、P L N S G B Rで持ち駒を選択。"],
  noGames: ["No game is saved yet.", "保存された対局はまだありません。"], moves: ["{n} moves", "{n}手"], unfinished: ["unfinished", "途中"],
  chooseFile: ["Choose a file.", "ファイルを選んでください。"], tooLarge: ["The file is larger than 200 kB.", "ファイルが200 kBを超えています。"],
  sure: ["Resign this game?", "投了しますか？"], startMove: ["start", "開始局面"],
};

// A frame of another site may have no storage.
function remembered(key, value) {
  try {
    if (value !== undefined) localStorage.setItem(key, value);
    return localStorage.getItem(key);
  } catch { return null; }
}

let language = remembered("language") ||
  ((navigator.language || "en").toLowerCase().startsWith("ja") ? "ja" : "en");

function word(key, values = {}) {
  const words = WORDS[key];
  if (!words) return key;
  return words[language === "ja" ? 1 : 0].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

// The server's sentences are English. These are their Japanese; $1 is the part in brackets.
const SENTENCES = [
  [/^The move (.+) is not legal here\.$/, "$1 はここでは指せない手です。"],
  [/^The game is over\.$/, "対局は終わっています。"],
  [/^The game is paused\.$/, "対局は一時停止中です。"],
  [/^It is the engine's turn\.$/, "エンジンの手番です。"],
  [/^There is no move to take back\.$/, "待ったのできる指し手がありません。"],
  [/^The position has changed meanwhile\.$/, "局面が先に変わりました。もう一度指してください。"],
  [/^The conditions of a declaration are not met\.$/, "入玉宣言の条件を満たしていません。"],
  [/^There is no such game(.*)\.$/, "その対局はありません。ファイルが壊れている可能性もあります。"],
  [/^There is no such (player|handicap|position|page)\.$/, "指定されたものは見つかりません。ページを再読み込みしてください。"],
  [/^A (player is|game needs|time is) (.+)\.$|^The (number|start) of (.+)\.$/, "入力に足りないところか誤りがあります。対局者と時間を確かめてください。"],
  [/^A time must be from 0 to (\d+) seconds\.$/, "時間は0～$1秒で入力してください。"],
  [/^(.+) must be a number from 0 to (\d+)\.$/, "$1 は0～$2の整数にしてください。"],
  [/^The game cannot be saved: (.+)\.$/, "対局を保存できません：$1"],
  [/^The page of the game is not ready\.$/, "解析がまだ終わっていません。"],
  [/^This model cannot search(.+)$/, "このモデルは、価値か方策の出力がないため探索できません。"],
  [/^A record of more than (\d+) bytes is too large\.$/, "$1バイトより大きい棋譜は開けません。"],
  [/^The record is damaged\.$/, "棋譜ファイルが壊れています。"],
  [/^record (.+?), line (\d+): (.+)$/, "棋譜 $1 の$2行目を読めません。その行を直すか、別の棋譜を選んでください。"],
  [/^(?:record )?(.+?)(?::|,| has| is| cannot) .*(?:another|a) record\.$/, "$1 を棋譜として読めません。別のファイルを選んでください。"],
  [/^move (\d+), (.+), cannot be played\. .+$/, "$1手目 $2 は指せません。"],
  [/^(.+)Name a record file, or give a position (.+)$/, "局面を読めません。SFENか「startpos moves 7g7f 3c3d」の形で入力してください。"],
  [/^(\d+) engines are thinking already\. (.+)$/, "エンジンが同時に$1つ考えています。どれかの対局を一時停止するか終えてください。"],
  [/^engine (.+?) cannot be started: (.+)$/, "エンジン $1 を起動できません。インストールされているか確かめてください（$2）"],
  [/^engine (.+?) did not answer '(.+?)' within ([\d.e+]+) s(.*)$/, "エンジン $1 が「$2」に$3秒以内に応答しません$4"],
  [/^engine (.+?) ended at '(.+?)' with status (\S+?)(\.| \(.*)$/, "エンジン $1 が「$2」で終了しました（終了コード $3）$4"],
  [/^engine (.+?)(?::| has no option) (.+)$/, "エンジン $1 のオプションが正しくありません：$2"],
  [/^model (?:file )?(\S+) (.+)$/, "モデル $1 を使えません。別のモデルを選んでください。"],
  [/^The server is ending\.$/, "サーバーが終了しようとしています。"],
  [/^This host is unknown\.$|^This page may not ask\.$|^Open the address (.+)$/, "pydlshogiが表示したアドレスを開いてください。"],
  [/^There is no such page\.$/, "そのページはありません。"],
  [/^This is larger than 1 MB\.$/, "データが1 MBを超えています。"],
  [/^The request (.+)\.$/, "要求の形が正しくありません。"],
];

function translated(sentence) {
  const found = language === "ja" && SENTENCES.find(([english]) => english.test(sentence));
  return found ? sentence.replace(...found) : sentence;
}
