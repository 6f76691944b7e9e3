"""What an operator does: make, list and revoke callers' API keys, delete all that a caller has, redrive dead letters.

On the database of this machine, or on that of a deployed stack. Nothing here is deployed.
"""
