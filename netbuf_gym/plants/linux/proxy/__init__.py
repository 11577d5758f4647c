"""Real programs around a live host: proxies (Shadowsocks, a plain relay), a target that serves, clients that fetch.

`relay`, `target` and `load` are scripts that need nothing but Python's own library, so that they start within hundredths of a
second; `processes` starts them in network namespaces, and ends them.
"""
