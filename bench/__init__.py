"""What this server costs, beside the official SDK: `python -m bench`, or `make bench`.

Every number is measured on functions that are laid out as they are deployed, in interpreters of their own; nothing
here is deployed, and nothing that is deployed knows about this package.
"""
