"""The context of OpenSSL for servers of the web, such as token issuers: it trusts the machine's authorities."""

from __future__ import annotations

import ssl


def context_for_the_web() -> ssl.SSLContext:
    """Return a new context, alike in every Python."""
    context = ssl.create_default_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # on from Python 3.13: refuses private CAs that Java accepts
    return context
