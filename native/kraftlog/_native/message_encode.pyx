"""Columns to typed messages: lends Arrow's buffers to native/c/message/encode.h, and releases the GIL around it."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from kraftlog._native.c_memory cimport kr_pool_use
from kraftlog._native.c_message cimport (
    kr_encode_message,
    kr_field_source,
    kr_growing_free,
    kr_message_encoder,
    kr_push_repeated,
    kr_uuid_text_init,
)
from kraftlog._native.memory cimport Input, shared_pool
from kraftlog._native.message cimport Grown, Program

kr_uuid_text_init()
kr_pool_use(shared_pool())


cdef class Source:
    """The buffers of an Arrow column that messages are made of."""

    cdef list held
    cdef kr_field_source source

    def __init__(self, list_level=None, item_level=None, tags=None):
        """Levels are (offset, valid, ends, (data, bytes a value)) or None; tags are (offset, data)."""
        self.held = []
        if tags is not None:
            offset, data = tags
            self.source.tags = <const int64_t *>self._hold(data) + <int64_t>offset
        if list_level is not None:
            offset, valid, ends, _ = list_level
            self.source.list_valid = self._hold(valid)
            self.source.list_valid_at = offset
            self.source.list_ends = <const int32_t *>self._hold(ends) + <int64_t>offset
        if item_level is not None:
            offset, valid, ends, (data, width) = item_level
            self.source.valid = self._hold(valid)
            self.source.valid_at = offset
            if ends is not None:
                self.source.ends = <const int32_t *>self._hold(ends) + <int64_t>offset
                self.source.data = self._hold(data)
            elif width:
                self.source.data = self._hold(data) + <int64_t>(offset * width)
            else:
                self.source.data = self._hold(data)
                self.source.data_at = offset

    cdef const uint8_t *_hold(self, buffer):
        if buffer is None:
            return NULL
        cdef Input held = Input(buffer)
        self.held.append(held)
        return held.data


def encode(Program program, list sources, bint uuid_text, const int64_t[::1] rows, bytes prefix):
    """Messages of these rows, each behind the prefix, as (ends, data); or a failure as (row, field, status, expected,
    actual)."""
    cdef kr_message_encoder e
    cdef int64_t i, n = rows.shape[0]
    cdef const uint8_t *head = prefix
    cdef int64_t head_size = len(prefix)
    cdef kr_field_source *all_sources = <kr_field_source *>calloc(max(len(sources), 1), sizeof(kr_field_source))
    cdef int ok = 1
    ends = np.zeros(n + 1, np.int32)
    cdef int32_t[::1] ends_view = ends
    if all_sources == NULL:
        raise MemoryError("no memory for the columns of a message")
    memset(&e, 0, sizeof(e))
    try:
        for i in range(len(sources)):
            all_sources[i] = (<Source>sources[i]).source
        e.program = program.program
        e.sources = all_sources
        e.uuid_text = uuid_text
        with nogil:
            for i in range(n):
                if head_size and not kr_push_repeated(&e.out, head, head_size, 1):
                    e.no_memory = 1
                ok = kr_encode_message(&e, rows[i])
                if not ok:
                    break
                ends_view[i + 1] = <int32_t>e.out.size
        if e.no_memory:
            raise MemoryError("no memory for messages, or more than 2 GiB of them")
        if not ok:
            return i, e.error_field, e.error.status, e.error.expected, e.error.actual
        return ends, Grown.take(&e.out)
    finally:
        free(all_sources)
        kr_growing_free(&e.out)
