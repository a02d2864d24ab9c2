"""The exception for a request that the service rejected."""

import httpx

from . import models


class PartnerError(Exception):
    """A response other than 200 or 201, after all retries.

    `status` is the HTTP status. `error` is the error that the service returned, with its `code`, `message`, `request_id`, and the
    invalid `field`. It is `None` if the body did not come from the service, for instance if a proxy responded.
    """

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.error: models.ErrorDetail | None = None
        try:
            self.error = models.Error.model_validate_json(response.content).error
        except ValueError:
            super().__init__(f"{self.status} {response.reason_phrase}")
        else:
            super().__init__(f"{self.status} {self.error.code}: {self.error.message} (request {self.error.request_id})")
