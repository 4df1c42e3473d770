"""State kept on behalf of clients: producer ids now, groups and transactions later."""
