"""The words that people use for columns: labels and units."""

from collections.abc import Mapping

from discreet.exceptions import InvalidInput

OUTCOME, TREATMENT = "outcome", "treatment"
"""How labels and units name the outcome and the treatment; covariates have their own names."""
# As long as fits into a title.
_LONGEST = 80


def words_for(what: str, given: object, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Labels or units as they were declared: a short text by ``outcome``, ``treatment`` and names of covariates."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{what} must be a dictionary such as {{'outcome': 'days in hospital'}}: name each column.")
    known = (OUTCOME, TREATMENT, *names)
    for name, text in given.items():
        if name not in known:
            raise InvalidInput(f"{what} has the unknown name {name!r}: use {', '.join(known)}.")
        if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST or not text.isprintable():
            raise InvalidInput(
                f"{what} of {name!r} must be printable text of at most {_LONGEST} characters: write it so."
            )
    return tuple((name, given[name].strip()) for name in known if name in given)
