"""What is offered: slots, their shapes and prices, and the sources that prices are read from.

`offering_catalogue` joins offerings with prices, shapes and forecasts; `sources` declares what is
read from a cloud and how often, and `price_refresh` reads it.
"""
