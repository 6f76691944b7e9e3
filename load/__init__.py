"""Many callers at once on the local gateway, and then a look at whether the database agrees: `make load`.

Two gateways serve one database, as two Lambda instances would, first with an agent that acts on the world, then with a
read-only one. Callers ask for everything at random, copies and races included, and remember what they were answered.
When they are done, the database is read whole and compared with that. Nothing here is deployed.

    settings   how many, how long, how fast
    calls      what a caller asks next
    callers    the threads that ask
    agents     what they talk to
    services   the database and the gateways
    stored     what the database holds in the end
    checks     what must be true of both
    report     how fast it was
"""
