"""What a sink promises about records after a failure."""

from __future__ import annotations

from enum import Enum


class DeliveryGuarantee(Enum):
    """PyFlink: `DeliveryGuarantee`."""

    EXACTLY_ONCE = "exactly-once"
    """Each record is visible once."""

    AT_LEAST_ONCE = "at-least-once"
    """No record is lost; after a failure some may be there twice."""

    NONE = "none"
    """Records may be lost or there twice."""
