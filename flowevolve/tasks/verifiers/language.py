"""Detects the language of a text by its script and, among languages of one script, by their most frequent words.

This is enough to tell whether an answer is in the language that was asked for. Languages of one script, such as Hindi,
Marathi and Nepali, are told apart by function words alone, which a few words may not contain. A text without any sign
of the language counts as not in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LANGUAGES: Mapping[str, str] = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "de": "German", "en": "English", "es": "Spanish",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "gu": "Gujarati", "hi": "Hindi", "it": "Italian",
    "ja": "Japanese", "kn": "Kannada", "ko": "Korean", "mr": "Marathi", "ne": "Nepali", "pa": "Punjabi",
    "pt": "Portuguese", "ru": "Russian", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "ur": "Urdu",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip

_SCRIPTS: Mapping[str, str] = {
    "arabic": r"\u0600-\u06ff", "bengali": r"\u0980-\u09ff", "cyrillic": r"\u0400-\u04ff",
    "devanagari": r"\u0900-\u097f", "gujarati": r"\u0a80-\u0aff", "gurmukhi": r"\u0a00-\u0a7f",
    "han": r"\u4e00-\u9fff", "hangul": r"\uac00-\ud7af", "kana": r"\u3040-\u30ff", "kannada": r"\u0c80-\u0cff",
    "latin": r"A-Za-z\u00c0-\u024f\u1e00-\u1eff", "tamil": r"\u0b80-\u0bff", "telugu": r"\u0c00-\u0c7f",
    "thai": r"\u0e00-\u0e7f",
}  # fmt: skip

_SCRIPT_OF: Mapping[str, str] = {
    "ar": "arabic", "fa": "arabic", "ur": "arabic", "bn": "bengali", "bg": "cyrillic", "ru": "cyrillic",
    "hi": "devanagari", "mr": "devanagari", "ne": "devanagari", "gu": "gujarati", "pa": "gurmukhi", "zh": "han",
    "ko": "hangul", "ja": "kana", "kn": "kannada", "ta": "tamil", "te": "telugu", "th": "thai",
}  # fmt: skip

_COMMON: Mapping[str, frozenset[str]] = {
    code: frozenset(text.split())
    for code, text in {
        "de": "der die das und ist nicht ein eine zu mit auf für von den dem ich sie wir im es auch als",
        "en": "the and is of to in that it for with as on was are this be you have not at by",
        "es": "el la los las y es que de en un una por con para no se del al lo su",
        "fi": "ja on ei se että hän oli mutta niin kun myös ovat tai joka mitä minä sinä kuin voi",
        "fr": "le la les et est que de en un une pour pas dans des du au ce qui sur avec",
        "it": "il la le gli e è che di in un una per non con del della sono si al lo",
        "pt": "o a os as e é que de em um uma para não com do da por se no na",
        "sw": "na ya wa kwa ni katika za la hii kama cha yake lakini hiyo sana pia au watu kuwa",
        "vi": "và là của có không được một cho người trong với các những này khi đã như để",
        "bg": "и на да се за от е не са в че с като по си той това ще има",
        "ru": "и в не на что он как это но с по из за все так его она мы вы",
        "ar": "في من على إلى أن هذا التي الذي مع هو كان لا ما هذه عن",
        "fa": "و در به از که این را با است برای آن یک می‌شود های هم",
        "ur": "اور کے کی میں ہے سے کو کا پر یہ نہیں نے ہیں ایک",
        "hi": "है और के की में से का को पर यह हैं नहीं ने एक भी हो",
        "mr": "आहे आणि या मध्ये ते हे आहेत नाही की तो ती एक होते मी",
        "ne": "छ र को मा छन् यो हो गर्न पनि एक भएको लागि हुन्छ म",
    }.items()
}
_WORD = re.compile(r"[^\W\d_]+(?:\u200c[^\W\d_]+)*|[\u0900-\u097f]+")


def looks_like(text: str, code: str) -> bool:
    """Whether most of the text is in the language of this ISO 639-1 code."""
    script = _SCRIPT_OF.get(code, "latin")
    counts = {name: len(re.findall(f"[{chars}]", text)) for name, chars in _SCRIPTS.items()}
    total = sum(counts.values())
    if not total:
        return False
    share = counts[script] + (counts["han"] if script == "kana" else 0)
    if share < 0.6 * total or (script == "kana" and not counts["kana"]):
        return False
    rivals = [other for other in _COMMON if _SCRIPT_OF.get(other, "latin") == script]
    if len(rivals) < 2:
        return True
    found = [word.lower() for word in _WORD.findall(text)]
    scores = {other: sum(word in _COMMON[other] for word in found) for other in rivals}
    return code in scores and scores[code] > 0 and scores[code] == max(scores.values())
