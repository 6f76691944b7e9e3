"""The deployment on this machine: the functions behind a gateway of their own and an embedded DynamoDB.

Nothing here is deployed, and nothing that is deployed knows about this package.
"""
