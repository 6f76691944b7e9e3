"""A walk through an agent's endpoint, deployed or local, as a client that believes nothing: `make smoke`.

Every answer is checked against the tables of `expectations`, which are the protocol's own and not the server's code.
What cannot be checked is said to be skipped, and why. Nothing here is deployed.
"""
