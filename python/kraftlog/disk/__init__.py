"""Every touch of a file system: paths, files, folders, locks, and threads that run ahead."""
