"""One campaign over many lab hosts: shards, a session on each host, one session at the end.

Dask says who is there and carries orders and answers, over TLS; who measures what is decided here.
"""
