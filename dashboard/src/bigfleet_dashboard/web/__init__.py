"""What browsers and programs are given: the page, a JSON API, live events.

responses  JSON with an ETag, compressed where that helps; errors as {"error"}
auth       who may send requests and under which host name; headers that every answer carries
events     news for open pages, with a bounded queue each
views      documents of the API, made of the state
api        what is asked for by which address
app        all of it as one ASGI application
"""
