"""The pages: parse what came, call one verb, draw the answer."""
