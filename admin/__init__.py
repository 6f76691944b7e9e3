"""What an operator does about callers: make, list and revoke their API keys, and delete all that they have.

On the database of this machine, or on that of a deployed stack. Nothing here is deployed.
"""
