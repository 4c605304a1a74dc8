"""Telling a text that says there will be no review from a review.

A command that could do nothing often ends well all the same, with "Cannot access the file" or the
error of a service as all its output. That is no vote. But whoever begins with an apology, or could
not read one file of ten, has written a review, and what it advises counts. So a text is a refusal
when it says in one of its sentences that nothing could be done, and advises nothing in any other.
"""

import re
from collections.abc import Iterator

_MOST_CHARACTERS = 600
"""A longer text in somebody's own words is a review, whatever it says of its troubles."""

_MOST_LOOKED_AT = 400
"""Characters at the beginning of a sentence that tell what it is."""

_SENTENCE_END = re.compile(r"[.!?;](?=\s|$)|\n")
_WORD_START = re.compile(r"\w")
_BEFORE = re.compile(
    r"(?:(?:i['’]?m|i am|we['’]re) (?:very |so |really )?sorry\b|sorry\b|unfortunately\b|"
    r"apologies\b|my apologies\b|however\b|but\b|so\b|and\b|also\b|"
    r"(?:it (?:seems|appears|looks like)|i['’]?m afraid|i am afraid)(?: that)?\b)[\s,:\-–—]{0,20}",
    re.I,
)
"""Words that a sentence may begin with before it comes to its point."""

_POLITE = re.compile(
    r"(?:sorry|apologies|my apologies|i['’]?m sorry|i am sorry|i apologi[sz]e)\s+"
    r"(?:for|about|that|it|this|to|if)\b",
    re.I,
)
"""An apology for something else than that there is no review."""

_SORRY = re.compile(r"(?:i['’]?m sorry|i am sorry|sorry)\b", re.I)

_ADVERBS = r"(?:\s+(?:currently|even|actually|simply|just|really|also|still|yet|fully))?"
_SUBJECT = r"(?:(?:i|we)(?:\s+|(?=['’])))?"
_UNABLE = (
    rf"(?:cannot|can['’]?t|can not|could not|couldn['’]?t|(?:was|am|were)(?: not|n['’]t) (?:able|"
    rf"allowed|permitted) to|"
    rf"(?:am|are|was|were|['’]m|['’]re)?\s*(?:not able|unable) to|"
    rf"(?:have |has |had |['’]ve )?(?:failed|was not able|were not able) to|won['’]t|will not|"
    rf"(?:must|have to) decline to){_ADVERBS}"
)
_DOING = (
    r"(?:access|read|open|load|fetch|view|retrieve|reach|download|obtain|get|clone|check out|"
    r"connect|log ?in|authenticate|review|complete|finish|help|assist|comply|proceed|continue|"
    r"process|perform|carry out|analy[sz]e|inspect|examine|assess|evaluate|participate|"
    r"provide|give|produce|offer|fulfil+|execute|run|start|answer|respond|do (?:that|this|it|so))"
)
_SEEING = (
    r"(?:see|find|locate|verify|check)\s+(?:any of )?"
    r"(?:the|that|this|these|those|your|its|any|a)\s+"
    r"(?:\S+\s+){0,2}?(?:files?|diffs?|code|brief|repositor(?:y|ies)|repo|patch(?:es)?|"
    r"documents?|contents?|attachments?|work ?tree|path|folder|director(?:y|ies)|sources?|"
    r"links?|url|page|request|text|checkout)\b"
)
_INABILITY = re.compile(
    rf"{_SUBJECT}(?:{_UNABLE}\s+(?:{_DOING}\b|{_SEEING})|"
    r"(?:the|your|this)\s+(?:\S+\s+){0,2}?(?:file|diff|brief|repository|repo|work ?tree|document|"
    r"patch|attachment|folder|path|link|review)\s+(?:could not|cannot|can['’]?t) be\b|"
    r"(?:was|were|am|are) (?:blocked|prevented|stopped) from\b|"
    r"need (?:your )?(?:permission|approval|access) to\b|"
    r"(?:there is |there was )?nothing (?:for me |for us )?to review\b|"
    r"(?:['’]m |am )?having trouble (?:access|open|read|reach|connect|load|fetch)\w*\b|"
    r"no review\b(?=\s*[:,])|review (?:was )?(?:skipped|aborted|cancelled)\b|"
    r"the tool call was (?:denied|rejected|blocked)\b|"
    r"nothing could be (?:read|opened|reviewed|done|checked|seen)\b|"
    r"(?:i )?lack (?:the )?(?:access|permissions?|tools?)\b|"
    r"(?:a |the |no )?review (?:is |was )?(?:not possible|impossible|possible)\b|"
    r"(?:do not|don['’]?t|did not|didn['’]?t) have "
    r"(?:\S+\s+){0,2}?(?:access|permissions?|tools?)\b|"
    r"(?:have|had) no (?:\S+\s+)?(?:access|permissions?|tools?|way to)\b|"
    r"no access(?=$|[,:]| (?:to|here|at)\b)|access (?:was |is )?denied\b|"
    r"(?:i |we )?(?:must decline|have to decline|decline to|refuse to)\b|as an ai\b|"
    r"(?:i|we)(?:\s+(?:am|are|was|were)|['’]m|['’]re) (?:not able|unable) to\b)",
    re.I,
)
_ABOUT_FLAWS = re.compile(
    r"\b(?:a|any|anything|nothing|no|further|more|other)\b.{0,40}?"
    r"\b(?:wrong|flaws?|faults?|problems?|issues?|defects?|bugs?|objections?|improve\w*|"
    r"suggest\w*|recommend\w*|add|concerns?|weakness\w*|mistakes?|errors?|reasons?|risks?)\b",
    re.I,
)
"""Whoever is unable to find anything wrong has looked."""

_MACHINE = re.compile(
    r"(?:(?!(?:the|this|that|an?|each|every)\s)(?:[\w.-]{1,40}\s+){0,2}?"
    r"(?:error|exception|failure)\s*:|(?:there was |got |received )?an error\b|error \w+ing\b|"
    r"(?:reached |hit )?(?:the )?max(?:imum)? (?:number of )?(?:turns|tokens|steps|iterations)\b|"
    r"(?:\w+\.)*\w*(?:error|exception|failure):|(?:the )?requests? (?:was |has been )?"
    r"(?:failed|rejected|denied)\b|curl:|could not resolve host\b|"
    r"(?:\w+\s+)?(?:api|execution|internal|server|network|connection|authentication|request|"
    r"provider|model|service|system|http|runtime|fatal)\s+(?:error|failure)\b|"
    r"(?:http(?:/[\d.]+)?\s+|status\s+|error\s+|code\s+)?[45]\d\d\s+(?:[a-z]+\s+){0,3}?"
    r"(?:required|requests?|unauthorized|forbidden|found|error|gateway|unavailable|time-?out|"
    r"overloaded|limit\w*|exceeded)\b|"
    r"traceback \(most recent call last\)|fatal:|panic:|segmentation fault|killed\b|"
    r"(?:you(?:['’]ve| have) )?(?:hit|reached|exceeded) (?:your|the) (?:\w+\s+)?(?:limit|quota)\b|"
    r"(?:\S+\s+){0,3}?(?:rate|usage|session|spending|token|request|context|weekly|hourly|daily|"
    r"output) ?limits?\s+(?:was |is |has been )?(?:exceeded|reached|hit)\b|"
    r"(?:\S+\s+){0,3}?quota\s+(?:was |is |has been )?(?:exceeded|reached|used up)\b|"
    r"too many requests\b|credit balance\b|insufficient (?:credits?|quota|balance|funds)\b|"
    r"payment required\b|invalid (?:api key|x-api-key|authentication|credentials|token)\b|"
    r"(?:not logged in|please (?:run /)?log ?in|unauthorized\b(?=\W*$|\s*:)|"
    r"forbidden\b(?=\W*$|\s*:)|"
    r"permission denied\b(?=\W*$|\s*[:.(])|operation not permitted|"
    r"no such file or directory|command not found|"
    r"(?:request |connection |operation |command )?timed out|connection (?:refused|reset|error|"
    r"closed|failed)|(?:the )?(?:service|model|server|api) (?:is )?"
    r"(?:currently |temporarily )?(?:unavailable|overloaded)(?=\W*$)|"
    r"overloaded\b|prompt is too long|context length exceeded)\b|"
    r"(?:\S{1,200}:\s+){1,3}(?:no such file or directory|permission denied|"
    r"command not found|not found|cannot open|is a directory)\b)",
    re.I,
)
"""How the failure of a program or a service begins, as opposed to a sentence about one."""

_TO_THE_CALLER = re.compile(
    r"(?:please|kindly|could you|can you|would you|you (?:can|could|may|might|should|need|must|"
    r"will|have)|let me know|try\b|retry|re-?run|grant|paste|attach|share|upload|send|"
    r"provide|give me|if you|once you|contact|see https?:|visit|visit https?:|"
    r"check (?:the|that the|your) (?:path|permissions?|file|sandbox|network|connection|api key))\b",
    re.I,
)
"""What is asked of whoever asked, such as to try again."""

_ADVISING = re.compile(
    r"\b(?:should|must|ought to|needs? to|has to|have to be|recommend\w*|suggest\w*|propos\w+|"
    r"consider|instead of|rather than|better to|would be better|prefer|had better|is missing|"
    r"are missing|is wrong|is unsafe|is never|are never)\b",
    re.I,
)
_IMPERATIVE = re.compile(
    r"(?:(?:first|then|next|also|finally|\d+)[,.)]?\s+)?(?:add|use|enable|disable|keep|drop|"
    r"remove|delete|make|replace|move|put|set|write|store|split|merge|rename|avoid|do not|don['’]t|"
    r"never|always|take|test|lock|switch|hold|limit|bound|cap|count|log|document|define|declare|"
    r"specify|require|reject|refuse|validate|verify|check|ensure|separate|introduce|return|raise|"
    r"handle|guard|cache|index|encrypt|hash|sign|escape|pin|back up|rotate|measure|reuse|reduce|"
    r"increase|change|turn|give each|start with|begin with|mark|treat|stop|allow|forbid|default|"
    r"expose|hide|isolate|simplify|state|name|say|tell|show|read the|run the)\b",
    re.I,
)


def is_refusal(text: str) -> bool:
    """Whether prose says that there will be no review, rather than being one."""
    if len(text) <= _MOST_CHARACTERS and any(map(_apologises, _sentences(text))):
        return not any(map(_advises, _sentences(text)))
    return tells_of_failure(text)


def tells_of_failure(text: str) -> bool:
    """Whether a text says that nothing could be done, and nothing else; an apology by itself
    does not."""
    sentences = list(_sentences(text))
    if not any(_is_unable(sentence) or _fails(sentence) for sentence in sentences):
        return False
    if len(text) > _MOST_CHARACTERS and not _fails(sentences[0]):
        return False
    return not any(map(_advises, sentences))


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a text, each from its first word on: lines end them, too."""
    for part in _SENTENCE_END.split(text):
        word = _WORD_START.search(part)
        if word is not None:
            yield part[word.start() :].rstrip()


def _apologises(sentence: str) -> bool:
    """Whether somebody is sorry that there is no review, not for something else."""
    if _SORRY.match(sentence) is None or _POLITE.match(sentence) is not None:
        return False
    return _ABOUT_FLAWS.search(sentence[:_MOST_LOOKED_AT]) is None


def _is_unable(sentence: str) -> bool:
    """Whether somebody says of himself that he could not, or would not."""
    rest = _from_its_point(sentence[:_MOST_LOOKED_AT])
    return _INABILITY.match(rest) is not None and _ABOUT_FLAWS.search(rest) is None


def _from_its_point(sentence: str) -> str:
    """A sentence without the words that lead to its point."""
    position = 0
    while (before := _BEFORE.match(sentence, position)) is not None:
        position = before.end()
    return sentence[position:]


def _fails(sentence: str) -> bool:
    """Whether this is how a program or a service says that it failed."""
    return _MACHINE.match(sentence[:_MOST_LOOKED_AT]) is not None


def _advises(sentence: str) -> bool:
    """Whether a sentence says what the design should be like."""
    if _fails(sentence) or _TO_THE_CALLER.match(sentence) is not None:
        return False
    rest = sentence if _POLITE.match(sentence) is not None else _from_its_point(sentence)
    if _INABILITY.match(rest) is not None:
        # "I could not run it, but the lock must be taken first" advises after all.
        _, _, rest = rest.partition(",")
    return _ADVISING.search(rest) is not None or _IMPERATIVE.match(rest) is not None
