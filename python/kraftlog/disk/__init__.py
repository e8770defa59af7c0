"""Every access to a file system: paths, entries, files, locks, and threads that run ahead of their reader.

``Disk`` is the object behind all of it (``disk()``; tests swap it with ``use_disk``). It lists folders and opens files,
local (``Path``) and remote (``RemotePath``) alike, and changes local ones (``writing``; ``durable`` has the steps that
belong together). Modules outside of this package open, list and change no log files
by themselves. This package knows nothing of Kafka's formats but the lock file.
"""
