"""What a new node starts with.

    template    a Jinja2 template in a sandbox, read at start, rendered per machine
    tokens      bootstrap tokens that end by themselves, kept as Secrets
    responder   BootstrapRequest -> BootstrapBlobResponse

The data is opaque to everybody but the machine. Nothing of it is ever logged.
"""
