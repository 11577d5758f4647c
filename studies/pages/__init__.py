"""Tables and figures of the documentation's pages, made from the code and from stored results."""
