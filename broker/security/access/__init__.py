"""Access rules: what they are about (`resources`), and how they decide (`authorizer`)."""
