"""The codes and sentences of native/c/base/status.h, for Python."""

from kraftlog._native.c_decoder cimport KR_STATUS_COUNT, kr_status_codes, kr_status_texts

CODES = []
TEXTS = {}

cdef int number
for number in range(<int>KR_STATUS_COUNT):
    CODES.append(kr_status_codes[number].decode())
    TEXTS[CODES[number]] = kr_status_texts[number].decode()
