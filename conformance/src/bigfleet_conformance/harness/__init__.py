"""The harness: how a behaviour talks to a provider, and what it may expect.

`calls` are the six calls and their answers, `probe` is one behaviour's view of one instance,
`walker` drives one machine, `watch` samples states, `oracles` say what should happen, `evidence`
remembers what did. Which behaviour runs where and when is the runner's business.
"""
