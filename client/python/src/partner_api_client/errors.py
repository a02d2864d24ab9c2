"""The exceptions for requests that the service rejected, and for measurements that it did not record."""

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


class PayloadMismatchError(PartnerError):
    """A measurement that was not recorded, because its `external_id` was already used for another measurement.

    The service responds with 200 and the recorded measurement, which is `recorded`. Usually two devices use the same numbers. To have
    this measurement recorded, submit it with a new `external_id`.
    """

    def __init__(self, response: httpx.Response, recorded: models.Measurement) -> None:
        super().__init__(response)
        self.recorded = recorded

    def __str__(self) -> str:
        return (
            "the measurement was not recorded, because its external_id was already used for another measurement "
            f"({self.recorded.measurement_id}); submit it with a new external_id"
        )
