"""What can go wrong, and how it is answered.

DashboardError(Exception)
├── ConfigError          what it was told makes no sense; the process does not start
├── SourceError          a source did not answer, or not usefully
└── RequestError         a request that cannot be answered; has a status
    ├── NotFoundError        404
    ├── BadRequestError      400
    ├── ForbiddenError       401 or 403
    ├── MisdirectedError     421
    └── UnavailableError     503
"""

from __future__ import annotations


class DashboardError(Exception):
    """Something of the dashboard's own."""


class ConfigError(DashboardError):
    """What it was told makes no sense."""


class SourceError(DashboardError):
    """A source did not answer, or not usefully."""


class RequestError(DashboardError):
    """A request that cannot be answered."""

    status = 500


class NotFoundError(RequestError):
    """There is no such thing."""

    status = 404


class BadRequestError(RequestError):
    """The request makes no sense."""

    status = 400


class ForbiddenError(RequestError):
    """The user may not see this."""

    status = 403


class UnauthenticatedError(ForbiddenError):
    """The request names no user."""

    status = 401


class MisdirectedError(RequestError):
    """The request names a host that this dashboard does not answer for."""

    status = 421


class UnavailableError(RequestError):
    """What would answer is not there at the moment."""

    status = 503
