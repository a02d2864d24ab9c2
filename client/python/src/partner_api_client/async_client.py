"""The operations of the API: one method each, named after its `operationId`.

`script/packages` writes `client.py`, with the class `Partner`, from this file by removing `async` and `await`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from decimal import Decimal
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import UUID

import httpx
import simplejson
from pydantic import BaseModel

from . import models
from .errors import PartnerError, PayloadMismatchError
from .retries import is_repeatable, pause_after
from .signing import signed_headers

Model = TypeVar("Model", bound=BaseModel)


class AsyncPartner:
    """A key of the API at one address.

    `base_url` is the operator's address, such as `https://partner-sandbox.inspection.example`. `http` replaces the HTTP client, for
    instance one with a proxy. Use the object as a context manager, or call `aclose`.

    Methods raise `PartnerError` if the service rejects a request, and `httpx.TransportError` if no response arrives.
    """

    def __init__(self, base_url: str, key_id: str, secret: str, *, http: httpx.AsyncClient | None = None) -> None:
        self._base_url = base_url.rstrip("/")
        self._key_id = key_id
        self._secret = secret
        self._http = http or httpx.AsyncClient(timeout=60)

    async def __aenter__(self) -> "AsyncPartner":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Sends a request and returns the last response, whatever its status.

        The other methods call this one. Use it for headers that they do not set, such as `If-None-Match`. Each of up to four attempts is
        signed with a new timestamp and nonce, and sends the same body.
        """
        all_headers = {**(headers or {}), **({"Content-Type": "application/json"} if body else {})}
        repeatable = is_repeatable(method, body)
        attempt = 0
        while True:
            attempt += 1
            request = self._http.build_request(
                method, self._base_url + path, params=query or None, content=body or None, headers=all_headers
            )
            request.headers.update(signed_headers(self._key_id, self._secret, method, request.url.raw_path, body))
            try:
                response = await self._http.send(request)
            except httpx.TransportError as error:
                pause = pause_after(error, attempt, repeatable)
                if pause is None:
                    raise
            else:
                pause = pause_after(response, attempt, repeatable)
                if pause is None:
                    return response
            await asyncio.sleep(pause)

    async def _read(self, model: type[Model], path: str, query: BaseModel | None = None) -> Model:
        parameters = query.model_dump(mode="json", exclude_unset=True, exclude_none=True) if query else None
        return _parsed(model, await self.send("GET", path, query=parameters))

    async def get_health(self) -> models.Health:
        """Checks the connection, the key and the signature."""
        return await self._read(models.Health, "/api/v1/partner/health")

    async def list_organizations(self) -> models.OrganizationList:
        """Lists the organizations that are open to the partner."""
        return await self._read(models.OrganizationList, "/api/v1/partner/organizations")

    async def list_branches(self, org_id: UUID | str, query: models.ListBranchesParametersQuery | None = None) -> models.BranchList:
        """Lists the branches of an organization that are open to the partner."""
        return await self._read(models.BranchList, f"/api/v1/partner/organizations/{_segment(org_id)}/branches", query)

    async def list_inspections(self, query: models.ListInspectionsParametersQuery | None = None) -> models.InspectionList:
        """Lists one page of reports. `inspections` follows the pages."""
        return await self._read(models.InspectionList, "/api/v1/partner/inspections", query)

    async def inspections(
        self, query: models.ListInspectionsParametersQuery | None = None
    ) -> AsyncIterator[models.InspectionListItem]:
        """Yields all reports that pass the filters, page by page."""
        query = query or models.ListInspectionsParametersQuery()
        if "limit" not in query.model_fields_set:
            query = query.model_copy(update={"limit": 100})
        while True:
            page = await self.list_inspections(query)
            for report in page.data:
                yield report
            if not page.page.has_more or page.page.next_cursor is None:
                return
            query = query.model_copy(update={"cursor": page.page.next_cursor})

    async def get_inspection(self, id: UUID | str) -> models.Inspection:
        """Reads a report."""
        return await self._read(models.Inspection, f"/api/v1/partner/inspections/{_segment(id)}")

    async def get_inspection_forms(self, id: UUID | str) -> models.InspectionForms:
        """Reads a report's forms: its points with their values."""
        return await self._read(models.InspectionForms, f"/api/v1/partner/inspections/{_segment(id)}/forms")

    async def get_inspection_photos(self, id: UUID | str) -> models.InspectionPhotos:
        """Reads a report's photos, with links that work for 900 seconds."""
        return await self._read(models.InspectionPhotos, f"/api/v1/partner/inspections/{_segment(id)}/photos")

    async def get_inspection_pdf(self, id: UUID | str) -> bytes:
        """Reads a report's PDF."""
        return _checked(await self.send("GET", f"/api/v1/partner/inspections/{_segment(id)}/pdf")).content

    async def submit_measurement(self, package: models.MeasurementRequest) -> models.MeasurementResponse:
        """Submits a package of measurements.

        With an `external_id` the package is recorded once, however often it is submitted. Raises `PayloadMismatchError` if the
        `external_id` was already used for another package.
        """
        members = package.model_dump(exclude_none=True)
        body = simplejson.dumps(members, use_decimal=True, ensure_ascii=False, default=lambda time: time.isoformat())
        response = await self.send("POST", "/api/v1/partner/test-line/measurements", body=body.encode())
        measurement = _parsed(models.MeasurementResponse, response)
        if measurement.data.payload_mismatch:
            raise PayloadMismatchError(response, measurement.data)
        return measurement


def _segment(value: UUID | str) -> str:
    """A value as one segment of a path."""
    return quote(str(value), safe="")


def _checked(response: httpx.Response) -> httpx.Response:
    if response.status_code not in (200, 201):
        raise PartnerError(response)
    return response


def _parsed(model: type[Model], response: httpx.Response) -> Model:
    # A number keeps its decimals: 2.850 is not read as 2.85.
    return model.model_validate(json.loads(_checked(response).content, parse_float=Decimal))
