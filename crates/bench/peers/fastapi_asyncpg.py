"""The benchmark's peer with FastAPI and asyncpg, as one would write it by hand: `script/bench --peers` checks and measures it.

It serves five operations of the service with the service's statements, which the benchmark passes in the file PEER_CONFIG.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import os
import re
import time
from base64 import urlsafe_b64encode
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated
from urllib.parse import quote, unquote_to_bytes
from uuid import UUID

import asyncpg
import orjson
import uvicorn
from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import AwareDatetime, BaseModel, Field, StringConstraints, ValidationError

WORKERS = 2
CONNECTIONS = 16 // WORKERS
ROOT = "/api/v1/partner"
NIL = UUID(int=0)
EARLIEST = datetime(1, 1, 1, tzinfo=timezone.utc)
# Python's last year. The others begin at the year 10000.
LATEST = datetime.max.replace(tzinfo=timezone.utc)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

with open(os.environ["PEER_CONFIG"], encoding="utf-8") as file:
    config = json.load(file)
statements = config["statements"]
cursor_key = bytes.fromhex(config["cursor_key"])


class Key:
    def __init__(self, key_id, values):
        self.id = key_id
        self.secret = values["secret"].encode()
        self.partner = UUID(values["partner"])
        self.organizations = [UUID(organization) for organization in values["organizations"]]


keys = {key_id: Key(key_id, values) for key_id, values in config["keys"].items()}


class Connection(asyncpg.Connection):
    def get_reset_query(self):
        # Without a round trip after each use. No session has any state.
        return ""


@asynccontextmanager
async def lifespan(app):
    async with asyncpg.create_pool(
        host=config["host"],
        user=config["user"],
        database=config["database"],
        min_size=CONNECTIONS,
        max_size=CONNECTIONS,
        server_settings=config["session"],
        connection_class=Connection,
        max_inactive_connection_lifetime=0,
    ) as app.state.pool:
        recording = asyncio.create_task(record_later(app.state.pool))
        yield
        recording.cancel()


app = FastAPI(lifespan=lifespan, openapi_url=None)


class Failure(Exception):
    def __init__(self, status, code):
        self.status = status
        self.code = code


def respond(body, status=200):
    return Response(orjson.dumps(body), status, media_type="application/json")


@app.exception_handler(Failure)
async def failed(_request, failure):
    return respond({"error": {"code": failure.code}}, failure.status)


@app.exception_handler(RequestValidationError)
@app.exception_handler(ValidationError)
async def rejected(_request, _error):
    return respond({"error": {"code": "invalid_request"}}, 400)


def encoded(text):
    if re.search(rb"%(?![0-9A-Fa-f]{2})", text):
        raise Failure(400, "invalid_request")
    return quote(unquote_to_bytes(text.replace(b"+", b" ")), safe="-._~")


def canonical_query(raw):
    pairs = (piece.partition(b"=") for piece in raw.split(b"&") if piece)
    return "&".join("=".join(pair) for pair in sorted((encoded(name), encoded(value)) for name, _, value in pairs))


MISSING = (401, "missing_signature_headers")
TIMESTAMP = re.compile(r"[0-9]+")
NONCE = re.compile(r"[!-~]{16,128}")


def verified(request, body):
    """Checks timestamp, nonce and signature. Returns the key and the stored form of the nonce."""
    headers = request.headers
    key_id, timestamp, nonce, signature = (
        headers.get("x-partner-" + name) for name in ("key-id", "timestamp", "nonce", "signature")
    )
    if not (key_id and timestamp and nonce and signature):
        raise Failure(*MISSING)
    if not TIMESTAMP.fullmatch(timestamp) or not NONCE.fullmatch(nonce):
        raise Failure(*MISSING)
    key = keys.get(key_id)
    if key is None:
        raise Failure(401, "invalid_key")
    if abs(int(time.time()) - int(timestamp)) > 300:
        raise Failure(401, "expired_timestamp")
    scope = request.scope
    canonical = "\n".join(
        (
            scope["method"],
            scope["raw_path"].decode("latin-1"),
            canonical_query(scope["query_string"]),
            timestamp,
            nonce,
            hashlib.sha256(body).hexdigest(),
        )
    )
    expected = "sha256=" + hmac.digest(key.secret, canonical.encode("latin-1"), "sha256").hex()
    if not hmac.compare_digest(expected.encode(), signature.encode("latin-1")):
        raise Failure(401, "invalid_signature")
    return key, UUID(bytes=hashlib.sha256(f"{key_id}\0{nonce}".encode()).digest()[:16])


async def record(pool, key_ids, digests):
    """Records nonces; returns the number of new ones."""
    return await pool.fetchval(statements["admit"], key_ids, digests, *config["nonces"])


async def admitted(request: Request) -> Key:
    key, digest = verified(request, await request.body())
    if await record(request.app.state.pool, [key.id], [digest]) != 1:
        raise Failure(401, "replay_detected")
    return key


memory = set()
waiting = []
arrived = asyncio.Event()


async def admitted_in_memory(request: Request) -> Key:
    """The service keeps the nonces of `health` in memory, and records them after the response."""
    key, digest = verified(request, await request.body())
    if digest in memory:
        raise Failure(401, "replay_detected")
    memory.add(digest)
    waiting.append((key.id, digest))
    arrived.set()
    return key


async def record_later(pool):
    while True:
        await arrived.wait()
        arrived.clear()
        while waiting:
            batch = waiting[:1000]
            del waiting[:1000]
            try:
                await record(pool, [key_id for key_id, _ in batch], [digest for _, digest in batch])
            except Exception:
                logging.exception("failed to record nonces")


def moment(at):
    """Formats a time as the API does: without, with three, or with six decimals of the second."""
    precision = "auto" if at.microsecond % 1000 else "milliseconds" if at.microsecond else "seconds"
    return at.isoformat(timespec=precision)[:-6] + "Z"


def new_id():
    random = int.from_bytes(os.urandom(10), "big")
    value = (time.time_ns() // 1_000_000) << 80 | 0x7 << 76 | (random >> 68 & 0xFFF) << 64 | 0x2 << 62 | random & (1 << 62) - 1
    return UUID(int=value)


NO_FILTERS = hashlib.sha256().digest()


def cursor(partner, created, last):
    position = ((created - EPOCH) // timedelta(microseconds=1)).to_bytes(8, "big", signed=True) + last.bytes
    tag = hmac.digest(cursor_key, b"partner-api cursor v1" + partner.bytes + NO_FILTERS + position, "sha256")
    return urlsafe_b64encode(position + tag).rstrip(b"=").decode()


# The privacy modes.

PLATE = re.compile(r"(0[1-9]|[1-7][0-9]|8[01])([A-Z]{1,3})([0-9]{2,5})")
NUMBER = re.compile(
    r"\b[1-9][0-9]{2}[ .-]?[0-9]{3}[ .-]?[0-9]{3}[ .-]?[0-9]{2}\b|"
    r"(?:(?:\+|00)?90[ ().-]*|0[ ().-]*)?\(?[2-5][0-9]{2}\)?[ .-]*[0-9]{3}[ .-]*[0-9]{2}[ .-]*[0-9]{2}\b"
)


def plate(mode, stored):
    if mode == "NONE":
        return "***"
    parts = PLATE.fullmatch(stored)
    if mode == "MASKED":
        return f"{parts[1]}***{parts[3][-2:]}" if parts else "***"
    return f"{parts[1]} {parts[2]} {parts[3]}" if parts else stored


def vin(mode, stored):
    if mode == "FULL":
        return stored
    return f"{stored[:3]}***{stored[-4:]}" if mode == "MASKED" and len(stored) >= 14 else "***"


def text(mode, stored):
    return stored if mode == "FULL" else NUMBER.sub("[removed]", stored)


# The operations.


@app.get(ROOT + "/health")
async def health(key: Annotated[Key, Depends(admitted_in_memory)]) -> Response:
    now = moment(datetime.now(timezone.utc))
    return respond({"status": "ok", "partner": key.partner, "environment": "test", "server_time": now})


@app.get(ROOT + "/organizations")
async def organizations(key: Annotated[Key, Depends(admitted)], request: Request) -> Response:
    rows = await request.app.state.pool.fetch(statements["organizations"], key.organizations, key.organizations, [])
    data = [
        {"id": str(id_), "slug": slug, "name": name, "branch_count": branches, "pii_mode": mode}
        for id_, slug, name, mode, branches in rows
    ]
    return respond({"data": data})


def vehicle(row, first, mode):
    """Returns the vehicle in ten columns of a row from `first`."""
    return {
        "plate_masked": plate(mode, row[first]),
        "vin_masked": vin(mode, row[first + 1]),
        "brand": row[first + 2],
        "model": row[first + 3],
        "year": row[first + 4],
        "type": row[first + 5],
        "fuel_type": row[first + 6],
        "transmission": row[first + 7],
        "color": row[first + 8],
        "mileage_km": row[first + 9],
    }


def item(row):
    mode = row[20]
    return {
        "id": str(row[0]),
        "report_number": row[1],
        "organization_id": str(row[2]),
        "branch_id": str(row[3]),
        "status": row[4].lower(),
        "package_name": text(mode, row[5]),
        "overall_score": row[6],
        "final_price_try": str(row[7]),
        "vehicle": vehicle(row, 10, mode),
        "published_at": moment(row[8]),
        "created_at": moment(row[9]),
        "updated_at": moment(row[21]),
    }


class Page(BaseModel):
    model_config = {"extra": "forbid"}
    limit: int = Field(25, ge=1, le=100)


@app.get(ROOT + "/inspections")
async def inspections(key: Annotated[Key, Depends(admitted)], query: Annotated[Page, Query()], request: Request) -> Response:
    limit = query.limit
    rows = await request.app.state.pool.fetch(statements["list"], key.organizations, LATEST, NIL, EARLIEST, limit + 1)
    rows.sort(key=lambda row: (row[9], row[0]), reverse=True)
    page = {"has_more": len(rows) > limit}
    del rows[limit:]
    if page["has_more"]:
        page["next_cursor"] = cursor(key.partner, rows[-1][9], rows[-1][0])
    return respond({"data": [item(row) for row in rows], "page": page})


@app.get(ROOT + "/inspections/{report}")
async def inspection(key: Annotated[Key, Depends(admitted)], report: str, request: Request) -> Response:
    try:
        report = UUID(report)
    except ValueError:
        raise Failure(404, "not_found") from None
    row = await request.app.state.pool.fetchrow(statements["detail"], report, key.organizations, [])
    if row is None:
        raise Failure(404, "not_found")
    mode = row[3]
    link = f"{config['public_url']}{ROOT}/inspections/{report}"
    return respond(
        {
            "id": str(row[0]),
            "report_number": row[1],
            "organization": {"id": str(row[4]), "slug": row[5], "name": row[6]},
            "branch": {"id": str(row[7]), "name": row[8], "city": row[9]},
            "status": row[2].lower(),
            "package": {"name": text(mode, row[10]), "base_price_try": str(row[11])},
            "pricing": {
                "base_price_try": str(row[12]),
                "discount_percent": str(row[13]),
                "discount_name": text(mode, row[14]),
                "final_price_try": str(row[15]),
                "payment_type": row[16],
                "currency": row[17],
            },
            "vehicle": vehicle(row, 18, mode),
            "snapshot": {"vin_masked": vin(mode, row[28]), "mileage_km": row[29]},
            "summary": text(mode, row[30]),
            "recommendation": text(mode, row[31]),
            "overall_score": row[32],
            "updated_at": moment(row[33]),
            "links": {"forms": link + "/forms", "photos": link + "/photos", "pdf": link + "/pdf"},
        }
    )


def printable(longest, shortest=0):
    return Annotated[str, StringConstraints(min_length=shortest, max_length=longest, pattern=r"^[^\x00-\x1F\x7F]*$")]


class Package(BaseModel):
    branch_code: printable(64, 1)
    plate: Annotated[str, StringConstraints(min_length=1, max_length=32)]
    external_id: printable(120, 1) | None = None
    device_serial: printable(120) | None = None
    measured_at: AwareDatetime | None = None
    measurements: Annotated[
        dict[Annotated[str, StringConstraints(pattern="^[A-Z][A-Z0-9_]{0,63}$")], Decimal], Field(min_length=1, max_length=50)
    ]


def folded(sent):
    return re.sub("[iıİ]", "I", sent).replace("I\u0307", "I").upper()


@app.post(ROOT + "/test-line/measurements")
async def measurement(key: Annotated[Key, Depends(admitted)], request: Request) -> Response:
    raw = await request.body()
    package = Package.model_validate_json(raw)
    normal = folded(re.sub(r"[\s.-]", "", package.plate))
    is_future = package.measured_at and package.measured_at - datetime.now(timezone.utc) > timedelta(seconds=300)
    if is_future or not PLATE.fullmatch(normal):
        raise Failure(400, "invalid_request")
    points = sorted(package.measurements.items())
    measurement_id = new_id()
    row = await request.app.state.pool.fetchrow(
        statements["pending"],
        [measurement_id],
        [key.partner],
        [key.id],
        [folded(package.branch_code)],
        [normal],
        [package.external_id],
        [package.device_serial],
        [package.measured_at],
        [raw],
        [hashlib.sha256(raw).digest()],
        ["{" + ",".join(code for code, _ in points) + "}"],
        ["{" + ",".join(str(value) for _, value in points) + "}"],
    )
    if row["branches"] == 0:
        raise Failure(404, "not_found")
    if row["branches"] > 1:
        raise Failure(400, "invalid_request")
    if not row["recorded"]:
        raise Failure(501, "only_new_pending_measurements")
    data = {
        "measurement_id": measurement_id,
        "status": "pending",
        "plate": normal,
        "inspection_id": None,
        "applied_points": [],
        "idempotent_replay": False,
    }
    return respond({"data": data}, 201)


if __name__ == "__main__":
    uvicorn.run(
        "fastapi_asyncpg:app",
        host="127.0.0.1",
        port=int(os.environ["PEER_PORT"]),
        workers=WORKERS,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
