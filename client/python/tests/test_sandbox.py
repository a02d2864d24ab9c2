"""Tests of the installed package against the signing vectors and a running sandbox (`SANDBOX` names its sandbox.json)."""

import asyncio
import base64
import json
import os
import pathlib
import re
import time
import unittest
from decimal import Decimal
from typing import Any

import httpx
from partner_api_client import (
    AsyncPartner,
    BranchFilter,
    InspectionFilter,
    MeasurementRequest,
    Partner,
    PartnerError,
    PayloadMismatchError,
)
from partner_api_client.signing import canonical_query, canonical_string, sign

SPEC = pathlib.Path(os.environ["SPEC"])
VECTORS = json.loads((SPEC / "signing-vectors.json").read_text(encoding="utf-8"))
SANDBOX = json.loads(pathlib.Path(os.environ["SANDBOX"]).read_text(encoding="utf-8"))
ALPHA = SANDBOX["partners"][0]
KEY = (SANDBOX["base_url"], ALPHA["key_id"], ALPHA["secret"])
PUBLISHED = SANDBOX["examples"]["inspections"]["published"]


def octets(vector: dict[str, Any], field: str) -> bytes:
    encoded = vector.get(f"{field}_base64")
    return str(vector[field]).encode() if encoded is None else base64.b64decode(encoded)


def measurement(**members: Any) -> MeasurementRequest:
    open_report = SANDBOX["examples"]["open_report"]
    return MeasurementRequest(
        branch_code=open_report["branch_code"],
        plate="06 TST 4712",
        external_id=f"{open_report['branch_code']}-python-{time.time_ns()}",
        measurements=members or {"BRAKE_FRONT_LEFT": Decimal("2.850")},
    )


class Vectors(unittest.TestCase):
    def test_every_query_has_the_canonical_form_of_the_vectors(self) -> None:
        for vector in VECTORS["query_vectors"]:
            self.assertEqual(canonical_query(octets(vector, "raw")), vector["canonical_query"], vector["name"])

    def test_a_query_without_a_canonical_form_is_rejected(self) -> None:
        for vector in VECTORS["rejected_queries"]:
            with self.assertRaisesRegex(ValueError, f"at byte {vector['offset']} "):
                canonical_query(octets(vector, "raw"))

    def test_every_request_has_the_signature_of_the_vectors(self) -> None:
        for vector in VECTORS["request_vectors"]:
            canonical = canonical_string(
                vector["method"], vector["target"].encode(), vector["timestamp"], vector["nonce"], octets(vector, "body")
            )
            self.assertEqual(canonical, vector["canonical_string"], vector["name"])
            self.assertEqual(sign(vector["secret"], canonical), vector["signature"], vector["name"])

    def test_the_path_of_a_gateway_is_not_signed(self) -> None:
        canonical = canonical_string("GET", b"/gateway/api/v1/partner/health", "1780000000", "0123456789abcdef", b"")
        self.assertEqual(canonical.split("\n")[1], "/api/v1/partner/health")


class Sandbox(unittest.TestCase):
    def setUp(self) -> None:
        self.partner = self.enterContext(Partner(*KEY))

    def test_a_signed_request_gets_a_response(self) -> None:
        health = self.partner.get_health()
        self.assertEqual((health.status, health.environment), ("ok", "test"))

    def test_a_request_is_retried_after_429_and_503_with_a_new_nonce_and_the_same_body(self) -> None:
        ordered = ["code=429, error=rate_limited", "code=503, error=service_unavailable"]
        attempts: list[tuple[str, bytes]] = []

        def order(request: httpx.Request) -> None:
            attempts.append((request.headers["X-Partner-Nonce"], request.content))
            if ordered:
                request.headers["Prefer"] = ordered.pop(0)

        with Partner(*KEY, http=httpx.Client(event_hooks={"request": [order]})) as partner:
            self.assertFalse(partner.submit_measurement(measurement()).data.idempotent_replay)
        nonces, bodies = zip(*attempts)
        self.assertEqual((len(set(nonces)), len(bodies), len(set(bodies))), (3, 3, 1))

    def test_pages_contain_every_report_once(self) -> None:
        ids = [report.id for report in self.partner.inspections()]
        self.assertEqual(len(set(ids)), len(ids))
        self.assertGreater(len(ids), 100)
        self.assertEqual(ids, [report.id for report in self.partner.inspections(InspectionFilter(limit=61))])

    def test_filters_are_sent(self) -> None:
        cancelled = list(self.partner.inspections(InspectionFilter(status="cancelled")))
        self.assertEqual({report.status for report in cancelled}, {"cancelled"})
        newest = self.partner.list_inspections(InspectionFilter(limit=1)).data[0]
        since = newest.updated_at
        self.assertIn(newest.id, [report.id for report in self.partner.inspections(InspectionFilter(updated_from=since))])

    def test_a_measurement_that_is_submitted_twice_is_recorded_once(self) -> None:
        package = measurement()
        first, second = (self.partner.submit_measurement(package).data for _ in range(2))
        self.assertEqual((first.idempotent_replay, second.idempotent_replay), (False, True))
        self.assertEqual(first.measurement_id, second.measurement_id)
        self.assertIsNone(second.payload_mismatch)

    def test_a_measurement_with_the_external_id_of_another_one_is_raised_with_the_recorded_measurement(self) -> None:
        package = measurement(BRAKE_FRONT_LEFT=Decimal("2.85"))
        first = self.partner.submit_measurement(package).data
        other = package.model_copy(update={"measurements": {"BRAKE_FRONT_LEFT": Decimal("2.86")}})
        with self.assertRaisesRegex(PayloadMismatchError, "submit it with a new external_id") as raised:
            self.partner.submit_measurement(other)
        self.assertIsInstance(raised.exception, PartnerError)
        self.assertEqual((raised.exception.status, raised.exception.error), (200, None))
        self.assertEqual(raised.exception.recorded.measurement_id, first.measurement_id)

    def test_a_value_is_sent_with_all_its_decimals(self) -> None:
        sent: list[bytes] = []
        with Partner(*KEY, http=httpx.Client(event_hooks={"request": [lambda request: sent.append(request.content)]})) as partner:
            partner.submit_measurement(measurement(SLIP_FRONT=Decimal("-1.40"), BRAKE_FRONT_LEFT=Decimal("2.12345678901234567")))
        self.assertIn(b'"measurements": {"SLIP_FRONT": -1.40, "BRAKE_FRONT_LEFT": 2.12345678901234567}', sent[0])

    def test_every_part_of_a_report_is_read(self) -> None:
        report = self.partner.get_inspection(PUBLISHED)
        self.assertEqual(str(report.id), PUBLISHED)
        points = [point for form in self.partner.get_inspection_forms(report.id).forms for point in form.points]
        self.assertTrue(any(isinstance(point.numeric_value, Decimal) for point in points))
        self.assertTrue(self.partner.get_inspection_photos(report.id).photos)
        self.assertTrue(self.partner.get_inspection_pdf(report.id).startswith(b"%PDF"))

    def test_branches_are_listed_for_each_organization(self) -> None:
        organizations = self.partner.list_organizations().data
        self.assertEqual({str(it.id) for it in organizations}, set(ALPHA["organizations"]))
        branches = self.partner.list_branches(organizations[0].id, BranchFilter(active=True)).data
        self.assertTrue(branches and all(branch.is_active for branch in branches))

    def test_a_rejection_is_raised_with_its_code_and_request_id(self) -> None:
        with self.assertRaises(PartnerError) as raised:
            self.partner.get_inspection("no such/report")
        error = raised.exception.error
        assert error is not None
        self.assertEqual((raised.exception.status, error.code), (404, "not_found"))
        self.assertIn(error.request_id, str(raised.exception))

    def test_the_asynchronous_client_reads_the_same_reports(self) -> None:
        async def ids() -> list[object]:
            async with AsyncPartner(*KEY) as partner:
                return [report.id async for report in partner.inspections()]

        self.assertEqual(asyncio.run(ids()), [report.id for report in self.partner.inspections()])

    def test_every_operation_has_a_method(self) -> None:
        operations = re.findall(r"(?m)^ +operationId: (\w+)$", (SPEC / "partner-api.yaml").read_text(encoding="utf-8"))
        self.assertEqual([name for name in operations if not callable(getattr(Partner, name, None))], [])
        self.assertTrue(operations)


if __name__ == "__main__":
    unittest.main()
