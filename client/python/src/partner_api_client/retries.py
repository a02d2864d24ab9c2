"""Which requests are sent again, and after which pause."""

import json
import random

import httpx

ATTEMPTS = 4
LONGEST_WAIT = 120
"""In seconds. If `Retry-After` asks for more, the response is returned instead."""


def is_repeatable(method: str, body: bytes) -> bool:
    """Whether a request may be sent again although the first one may have been processed.

    This holds for a GET, and for a measurement with an `external_id`, by which the service recognizes it.
    """
    if method == "GET":
        return True
    try:
        return bool(json.loads(body).get("external_id"))
    except (ValueError, AttributeError):
        return False


def pause_after(outcome: httpx.Response | httpx.TransportError, attempt: int, repeatable: bool) -> float | None:
    """The seconds to wait before the next attempt, or `None` if this outcome is final. `attempt` counts from 1."""
    if attempt >= ATTEMPTS:
        return None
    # Partly random, so that devices do not all retry at the same moment.
    wait = random.uniform(0.5, 1) * 2 ** (attempt - 1)
    if isinstance(outcome, httpx.TransportError):
        return wait if repeatable else None
    # 408 and 429: nothing was processed.
    retriable = outcome.status_code in (408, 429) or (repeatable and outcome.status_code in (500, 502, 503, 504))
    retry_after = outcome.headers.get("Retry-After", "")
    if retry_after.isdecimal():
        wait = float(retry_after)
    return wait if retriable and wait <= LONGEST_WAIT else None
