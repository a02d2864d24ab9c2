"""A typed client of the Partner Inspection Reports and Test-Line Measurements API.

`Partner` signs each request, retries it where that is safe, and follows the pages of a list. `AsyncPartner` is the same for asyncio.
The models are generated from the API's OpenAPI document.
"""

from . import models
from .async_client import AsyncPartner
from .client import Partner
from .errors import PartnerError, PayloadMismatchError
from .models import ListBranchesParametersQuery as BranchFilter
from .models import ListInspectionsParametersQuery as InspectionFilter
from .models import MeasurementRequest

__all__ = [
    "AsyncPartner",
    "BranchFilter",
    "InspectionFilter",
    "MeasurementRequest",
    "Partner",
    "PartnerError",
    "PayloadMismatchError",
    "models",
]
