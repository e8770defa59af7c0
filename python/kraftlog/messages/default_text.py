"""The default of a field, in the notation of definitions."""

from __future__ import annotations

import struct

from kraftlog.messages import definition as kinds

ZERO_UUID = "A" * 22  # Kafka's notation
WIRE_WIDTHS = {
    **dict.fromkeys((kinds.BOOL, kinds.INT8), 1),
    **dict.fromkeys((kinds.INT16, kinds.UINT16), 2),
    **dict.fromkeys((kinds.INT32, kinds.UINT32), 4),
    **dict.fromkeys((kinds.INT64, kinds.FLOAT64), 8),
    kinds.UUID: 16,
}
INTEGERS = {
    kinds.INT8: (-(1 << 7), (1 << 7) - 1),
    kinds.INT16: (-(1 << 15), (1 << 15) - 1),
    kinds.UINT16: (0, (1 << 16) - 1),
    kinds.INT32: (-(1 << 31), (1 << 31) - 1),
    kinds.UINT32: (0, (1 << 32) - 1),
    kinds.INT64: (-(1 << 63), (1 << 63) - 1),
}
EMPTY = ""
_BOOLS = {"": False, "false": False, "true": True}


def parse_default(kind: str, is_array: bool, text: str) -> bool | int | float | str | None:
    """Return the default of a field as its definition writes it.

    Parameters
    ----------
    kind : str
    is_array : bool
    text : str
        ``null``, or empty for the zero of the kind.

    Raises
    ------
    ValueError
        For a text that is not valid for the kind.
    """
    if text == "null":
        return None
    if is_array or kind in (kinds.BYTES, kinds.STRUCT):
        if text:
            raise ValueError(f"the default of an array, bytes or a struct is null or empty, not {text!r}")
        return EMPTY
    if kind == kinds.BOOL:
        if text not in _BOOLS:
            raise ValueError(f"the default of a bool is true or false, not {text!r}")
        return _BOOLS[text]
    if kind in INTEGERS:
        return _integer(kind, text or "0")
    if kind == kinds.FLOAT64:
        return float(text or "0")
    return text or (ZERO_UUID if kind == kinds.UUID else EMPTY)


def _integer(kind: str, text: str) -> int:
    number = int(text, 16 if text.lower().lstrip("-").startswith("0x") else 10)
    low, high = INTEGERS[kind]
    if not low <= number <= high:
        raise ValueError(f"the default of an {kind} is from {low} to {high}, not {text}")
    return number


def default_bits(number: float) -> int:
    """Return an integer, or the bits of a double as one."""
    return int.from_bytes(struct.pack(">d", number), "big", signed=True) if isinstance(number, float) else number


def default_wire(kind: str, default: float | str | None) -> bytes:
    """Return the wire value of the default of a field of fixed width."""
    if kind == kinds.UUID:  # the only one that is supported
        return bytes(WIRE_WIDTHS[kind])
    assert isinstance(default, int | float)
    return (default_bits(default) % (1 << 64)).to_bytes(8, "big")[-WIRE_WIDTHS[kind] :]
