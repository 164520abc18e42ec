"""The words in pictures and pages, in Japanese and English."""

from __future__ import annotations

#: The languages.
LANGUAGES = ("en", "ja")

_WORDS: dict[str, tuple[str, str]] = {
    # key: (English, Japanese)
    "black": ("先手 Black", "先手"),
    "white": ("後手 White", "後手"),
    "lower": ("下手 Black", "下手"),
    "upper": ("上手 White", "上手"),
    "to move": ("{side} to move", "{side}番"),
    "after": ("after move {ply}, {move}", "{ply}手目 {move} まで"),
    "none": ("-", "なし"),
    "own": ("side to move", "手番側"),
    "opponent": ("opponent", "相手側"),
    "pieces": ("on the board", "盤上の駒"),
    "hand": ("in hand", "持ち駒"),
    "hand note": (
        "The plane 歩 3 is 1 everywhere if at least 3 pawns are in hand.",
        "平面「歩 3」は、持ち駒の歩が3枚以上なら全マスが1",
    ),
    "planes": (
        "the 104 input planes, seen from the side to move",
        "104枚の入力平面（手番側から見た局面）",
    ),
    "move number": ("move", "手数"),
    "win of black": ("Black wins (%)", "先手の勝率（%）"),
    "win of lower": ("Black (下手) wins (%)", "下手の勝率（%）"),
    "win of": ("{side} wins", "{side}の勝率"),
    "share of move": ("share of the search for the move played (%)", "実際の指し手の訪問割合（%）"),
    "share": ("share", "割合"),
    "value": ("wins", "勝率"),
    "visits": ("visits", "訪問"),
    "mistakes": ("Mistakes", "疑問手と悪手"),
    "no mistakes": ("none", "なし"),
    "next mistake": ("next mistake", "次の悪手・疑問手"),
    "bad": ("??", "悪手"),
    "doubtful": ("?", "疑問手"),
    "bad move": (
        "Played: {move}, a bad move (??): {before} → {after}",
        "実際の指し手{move}は悪手：勝率{before}→{after}",
    ),
    "doubtful move": (
        "Played: {move}, a doubtful move (?): {before} → {after}",
        "実際の指し手{move}は疑問手：勝率{before}→{after}",
    ),
    "marks": (
        "? (疑問手): a move that loses {doubtful:.0%} or more of winning probability; "
        "?? (悪手): {bad:.0%} or more",
        "疑問手：勝率が{doubtful:.0%}ポイント以上下がった手、悪手：{bad:.0%}ポイント以上下がった手",
    ),
    "handicap": (
        "The models were not trained on handicap games, so the values mean little here.",
        "モデルは駒落ちの棋譜を学習していないので、この対局の勝率はあまり当てになりません。",
    ),
    "between": (" · ", "　"),
    "to the game": ("back to the game", "本譜に戻る"),
    "copy sfen": ("copy SFEN", "SFENをコピー"),
    "copy kif": ("copy KIF", "KIFをコピー"),
    "copied": ("copied", "コピーしました"),
    "probability": ("probability of the move played (%)", "実際の指し手の確率（%）"),
    "best": ("first choice of the model", "モデルの第1候補と一致"),
    "other": ("another move", "それ以外"),
    "moves": ("Moves", "指し手"),
    "rank": ("rank", "順位"),
    "policy": ("policy", "確率"),
    "before": ("before", "指す前"),
    "change": ("change", "変化"),
    "time": ("time", "消費時間"),
    "candidates": ("The model's moves here", "この局面でのモデルの候補手"),
    "line": ("line", "読み筋"),
    "flip": ("turn the board", "盤を反転"),
    "first": ("start", "最初"),
    "back": ("back", "前"),
    "forward": ("next", "次"),
    "last": ("end", "最後"),
    "keys": (
        "Keys: ← → one move, Home and End. Click a move or the graph.",
        "←→キーで1手ずつ、Home・Endキーで最初・最後に移動。指し手やグラフのクリックでも移動できます。",
    ),
    "agreement": (
        "{side}: {count} of {total} moves are the model's first choice ({share:.0%})",
        "{side}：{total}手中{count}手がモデルの第1候補と一致（{share:.0%}）",
    ),
    "draw": ("draw", "引き分け"),
    "%TORYO": ("resignation", "投了"),
    "%TSUMI": ("checkmate", "詰み"),
    "%TIME_UP": ("time", "時間切れ"),
    "%ILLEGAL_MOVE": ("illegal move", "反則"),
    "%+ILLEGAL_ACTION": ("illegal move", "反則"),
    "%-ILLEGAL_ACTION": ("illegal move", "反則"),
    "%KACHI": ("declaration", "入玉宣言"),
    "%SENNICHITE": ("repetition", "千日手"),
    "%JISHOGI": ("impasse", "持将棋"),
    "%MAX_MOVES": ("limit of moves", "最大手数"),
    "%CHUDAN": ("interrupted", "中断"),
    "%MATTA": ("a move was taken back", "待った"),
    "%FUZUMI": ("no mate", "不詰"),
    "%ERROR": ("error", "エラー"),
    "reason": (" ({reason})", "（{reason}）"),
    "wins": ("{side} wins", "{side}の勝ち"),
    "loss": ("mean loss of winning probability {loss:.1%}", "勝率の低下は1手平均{loss:.1%}"),
    "and": ("; ", "、"),
    "model": ("model {name}", "モデル：{name}"),
    "searched": ("{seconds:g} s of search a position", "探索：1局面{seconds:g}秒"),
}


def end_reason(mark: str | None, language: str) -> str:
    """Says how a game ended, given CSA's end mark; empty where the mark gives no reason."""
    words = _WORDS.get(mark or "")
    return words[LANGUAGES.index(language)] if words else ""


def side_words(handicap: object, language: str) -> tuple[str, str]:
    """Names Black and White, who have other names in a game with a handicap."""
    keys = ("lower", "upper") if handicap else ("black", "white")
    return word(keys[0], language), word(keys[1], language)


def word(key: str, language: str, **values: object) -> str:
    """Returns the text with a name, in one of :data:`LANGUAGES`, with the values filled in."""
    return _WORDS[key][LANGUAGES.index(language)].format(**values)
