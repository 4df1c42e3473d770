"""State kept on behalf of clients: groups of both protocols, with their committed offsets; transactions later."""
