"""An A2A 1.0 agent server for AWS Lambda: everything that is not a route.

Dependencies point inwards: `model`, `errors` and `agent` know nothing of ours, the rules (`task`,
`validation`, `operations`) know those and the ports (`store`), the bindings (`jsonrpc`) know the operations,
and only the outer ring (`dynamodb`, `apigateway`, `card`, `settings`, `bootstrap`) knows AWS.
"""
