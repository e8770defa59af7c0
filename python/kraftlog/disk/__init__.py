"""Access to file systems: paths, entries, files, locks, and threads that read ahead.

All of it goes through ``Disk`` (``disk()``; tests replace it with ``use_disk``). It lists folders and opens files,
local (``Path``) and remote (``RemotePath``) alike, and changes local ones (``writing``; ``durable`` has the steps that
belong together). Modules outside of this package do not open, list or change log files themselves. Of Kafka's formats
this package only knows the lock file.
"""
