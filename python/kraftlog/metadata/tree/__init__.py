"""A metadata image as the directories and files of ``kafka-metadata-shell``, and as JSON."""
