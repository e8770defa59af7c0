"""Audits: what the files of a cluster prove about its replicas, transactions, offsets and configuration.

``Evidence`` is what an audit has: the files, the pass over them and the time. A module of checks defines the
``FindingCode`` of each of its findings, and functions from evidence to findings; ``audit.CHECKS`` lists the functions.
A check is silent where its precondition does not hold: a false finding is worse than a missed one.
"""
