"""Tests of this folder run commands."""

from command_line import kraftlog_command

__all__ = ["kraftlog_command"]
