"""English function words: what a query says without meaning it.

Used on the query side only: the keyword leg drops them (unless nothing is left), the rescoring
leaves their pieces out. Lower case; a contraction is listed in the parts a tokenizer leaves of it.
"""

from __future__ import annotations

_WORDS = (
    # Articles, determiners, quantifiers without a number.
    "a an the this that these those some any each such "
    # Pronouns.
    "i me my mine myself we us our ours you your yours he him his she her hers it its "
    "they them their theirs "
    # Question words.
    "what which who whom whose when where why how "
    # Auxiliaries and modals.
    "am is are was were be been being do does did doing have has had having "
    "will would shall should can could may might must "
    # Prepositions and particles.
    "of in on at by for from to into with about as "
    # Conjunctions and adverbs without a topic of their own.
    "and or but if then than so not no nor there here also just too very "
    # What is left of don't, it's, I'm, we're, I've, I'll, he'd.
    "don s t m re ve ll d"
)

FUNCTION_WORDS: frozenset[str] = frozenset(_WORDS.split())
