"""Columns of binary and text of any layout of Arrow, and lists: native/c/arrow/text_column.h checks, measures and
copies them.

Where something in a column is nowhere, a fault is returned, as ``(code, row, found, limit)``; ``FAULTS`` has the texts.
"""

from cython cimport freelist

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport calloc, free

from kraftlog._native.c_lent cimport kr_lent_binary
from kraftlog._native.c_text_column cimport (
    KR_NOT_LOOKED_AT,
    KR_TEXT_BUFFER_SHORT,
    KR_TEXT_ENDS32,
    KR_TEXT_ENDS64,
    KR_TEXT_ENDS_FALL,
    KR_TEXT_FIXED,
    KR_TEXT_NEGATIVE,
    KR_TEXT_NO_BUFFER,
    KR_TEXT_NO_INDEX,
    KR_TEXT_NULLS,
    KR_TEXT_OK,
    KR_TEXT_OUTSIDE,
    KR_TEXT_VIEWS,
    kr_lent_buffer,
    kr_lent_list_end,
    kr_lent_list_has_room,
    kr_lent_list_is_null,
    kr_lent_list_measure,
    kr_text_at,
    kr_text_error,
    kr_text_gather,
    kr_text_has_room,
    kr_text_layout,
    kr_text_measure,
)
from kraftlog._native.memory cimport Arena, Input


cdef extern from "text/utf8.h" nogil:
    int kr_utf8_sequence(const uint8_t *p, const uint8_t *end)


LAYOUTS = {
    "nulls": KR_TEXT_NULLS, "ends32": KR_TEXT_ENDS32, "ends64": KR_TEXT_ENDS64, "views": KR_TEXT_VIEWS,
    "fixed": KR_TEXT_FIXED,
}
FAULTS = {
    KR_TEXT_BUFFER_SHORT: "a buffer has {limit} bytes, the rows take {found}",
    KR_TEXT_ENDS_FALL: "it begins at {limit} and ends before that, at {found}",
    KR_TEXT_OUTSIDE: "it ends at {found}, behind its data of {limit}",
    KR_TEXT_NEGATIVE: "its place or its length is {found}",
    KR_TEXT_NO_BUFFER: "its view is into buffer {found} of {limit}",
    KR_TEXT_NO_INDEX: "its index is {found}, the dictionary has {limit} values",
}


cdef kr_lent_buffer hold(list held, buffer) except *:
    """What a buffer lends, which may be None. ``held`` keeps it alive."""
    cdef kr_lent_buffer lent
    cdef Input source
    lent.start = NULL
    lent.size = 0
    if buffer is not None:
        source = Input(buffer)
        held.append(source)
        lent.start = source.data
        lent.size = source.size
    return lent


cdef int look(void *owner, int64_t buffer) noexcept nogil:
    with gil:
        return look_at(<TextColumn>owner, buffer)


cdef int look_at(TextColumn column, int64_t buffer) noexcept:
    try:
        column.data[buffer] = hold(column.held, column.lenders[buffer])
    except BaseException as error:  # raised again when the rows were measured
        column.error = error
        return 0
    return 1


cdef tuple faulty(const kr_text_error *error):
    return <int>error.fault, error.row, error.found, error.limit


@freelist(8)
cdef class TextColumn:
    """Values, of which ``offset`` are skipped, or the dictionary of ``indexes``.

    ``layout`` is one of ``LAYOUTS``; ``places`` are ends or views, ``data`` is a sequence of buffers, ``width`` that of
    values of a fixed size. Of the buffers of views only those are looked at that rows refer to which are measured.
    ``indexes`` are ``(rows, offset, validity, buffer, bytes, is_signed)``. ``fault`` says what buffer is shorter than the
    rows take; nothing else can be asked then.
    """

    def __cinit__(self, int layout, int64_t rows, int64_t offset, validity, places, data not None, int64_t width=0,
                  tuple indexes=None):
        cdef Py_ssize_t i
        cdef kr_text_error error
        cdef Py_ssize_t count = len(data)
        self.held = []
        self.data = &self.single
        if count > 1:
            self.more = <kr_lent_buffer *>calloc(count, sizeof(kr_lent_buffer))
            if self.more == NULL:
                raise MemoryError(f"no memory for {count} buffers")
            self.data = self.more
        if layout == KR_TEXT_VIEWS:
            self.lenders = data
            self.state.values.look = look
            self.state.values.owner = <void *>self
            for i in range(count):
                self.data[i].size = KR_NOT_LOOKED_AT
        else:
            for i in range(count):
                self.data[i] = hold(self.held, data[i])
        self.state.values.layout = <kr_text_layout>layout
        self.state.values.rows = rows
        self.state.values.offset = offset
        self.state.values.width = width
        self.state.values.validity = hold(self.held, validity)
        self.state.values.places = hold(self.held, places)
        self.state.values.data = self.data
        self.state.values.data_count = count
        self.state.rows = rows
        if indexes is not None:
            self.state.rows, self.state.offset, index_validity, buffer, width_, is_signed = indexes
            if width_ not in (1, 2, 4, 8):
                raise ValueError(f"an index takes {width_} bytes, not 1, 2, 4 or 8")
            self.state.index_width = width_
            self.state.index_is_signed = is_signed
            self.state.index_validity = hold(self.held, index_validity)
            self.state.indexes = hold(self.held, buffer)
        self.is_lent = not self.state.index_width and (layout == KR_TEXT_NULLS or (
            layout == KR_TEXT_ENDS32 and <uintptr_t>self.state.values.places.start % sizeof(int32_t) == 0))
        self.fault = None if kr_text_has_room(&self.state, &error) else faulty(&error)

    def __dealloc__(self):
        free(self.more)

    def measure(self, int64_t first, int64_t count, int64_t most):
        """How many rows hold at most so many bytes, how many these are, and a fault or None. No row: the first takes more
        than 32 bits count."""
        cdef int64_t taken, size
        cdef kr_text_error error
        self._check(first, count)
        taken = self._measured(first, count, most, &size, &error)
        if taken < 0:
            return 0, 0, faulty(&error)
        if size <= INT32_MAX:
            self.sound_first, self.sound_count, self.sound_bytes = first, taken, size
        return taken, size, None

    cdef int _check(self, int64_t first, int64_t count) except -1:
        if self.fault is not None:
            raise ValueError("a buffer is shorter than the rows take")
        if first < 0 or count < 0 or first > self.state.rows or count > self.state.rows - first:
            raise IndexError(f"rows {first} to {first + count} are not within {self.state.rows}")
        return 0

    cdef int64_t _measured(self, int64_t first, int64_t count, int64_t most, int64_t *size, kr_text_error *error) except -2:
        cdef int64_t taken
        with nogil:
            taken = kr_text_measure(&self.state, first, count, most, INT32_MAX, size, error)
        if self.error is not None:
            raise self.error
        return taken

    cdef object fill(self, kr_lent_binary *c, int64_t first, int64_t count):
        """Lends rows, or copies them; returns what keeps them alive."""
        cdef int64_t taken, size, ends_size
        cdef kr_text_error error
        cdef Arena copied
        self._check(first, count)
        c.ends = NULL
        if self.state.values.layout == KR_TEXT_NULLS and not self.state.index_width:
            return None
        if first == self.sound_first and count <= self.sound_count:
            size = self.sound_bytes
        else:
            taken = self._measured(first, count, INT32_MAX, &size, &error)
            if taken != count:
                raise ValueError(f"rows {first} to {first + count} do not fit a column")
        c.validity_at = 0
        if self.is_lent:
            c.ends = <const int32_t *>self.state.values.places.start + self.state.values.offset + first
            c.validity = self.state.values.validity.start
            c.validity_at = self.state.values.offset + first
            c.data = self.data.start
            c.data_size = self.data.size
            return self
        ends_size = (count + 1) * <int64_t>sizeof(int32_t)
        copied = Arena(ends_size + count // 8 + 1 + size)
        with nogil:
            taken = kr_text_gather(&self.state, first, count, <int32_t *>copied.data, copied.data + ends_size,
                                   copied.data + ends_size + count // 8 + 1)
        c.ends = <const int32_t *>copied.data
        c.validity = copied.data + ends_size if taken else NULL
        c.data = copied.data + ends_size + count // 8 + 1
        c.data_size = size
        return copied


cdef class ListColumn:
    """Lists, of which ``offset`` are skipped, of ``items`` items: ends of ``width`` bytes. ``fault`` as that of a ``TextColumn``."""

    def __cinit__(self, int64_t rows, int64_t offset, validity, ends, int width, int64_t items):
        cdef kr_text_error error
        if width not in (4, 8):
            raise ValueError(f"an end takes {width} bytes, not 4 or 8")
        self.held = []
        self.state.rows = rows
        self.state.offset = offset
        self.state.width = width
        self.state.items = items
        self.state.validity = hold(self.held, validity)
        self.state.ends = hold(self.held, ends)
        self.fault = None if kr_lent_list_has_room(&self.state, &error) else faulty(&error)

    cdef int _check(self, int64_t first, int64_t count) except -1:
        if self.fault is not None:
            raise ValueError("a buffer is shorter than the rows take")
        if first < 0 or count < 0 or first > self.state.rows or count > self.state.rows - first:
            raise IndexError(f"rows {first} to {first + count} are not within {self.state.rows}")
        return 0

    def measure(self, int64_t first, int64_t count, int64_t most):
        """As that of a ``TextColumn``, of items."""
        cdef int64_t taken, items
        cdef kr_text_error error
        self._check(first, count)
        with nogil:
            taken = kr_lent_list_measure(&self.state, first, count, most, INT32_MAX, &items, &error)
        if taken < 0:
            return 0, 0, faulty(&error)
        return taken, items, None

    def first_item(self, int64_t row):
        """Where the items of a row begin; of the row behind the last one, where all end."""
        self._check(row, 0)
        return kr_lent_list_end(&self.state, row) if self.state.rows else 0

    def row_of(self, int64_t first, int64_t count, int64_t item):
        """The row, of those from ``first`` on, that holds an item."""
        cdef int64_t row
        self._check(first, count)
        for row in range(first, first + count):
            if item < kr_lent_list_end(&self.state, row + 1):
                return row
        return first + count

    def ends(self, int64_t first, int64_t count):
        """int32 ends of rows that were measured, the first 0. A list that is null has no items, so its own are refused."""
        cdef Arena made
        cdef int32_t *target
        cdef int64_t row, begin
        self._check(first, count)
        made = Arena((count + 1) * <int64_t>sizeof(int32_t))
        target = <int32_t *>made.data
        begin = kr_lent_list_end(&self.state, first)
        with nogil:
            for row in range(count + 1):
                target[row] = <int32_t>(kr_lent_list_end(&self.state, first + row) - begin)
        return made

    def headers_fault(self, int64_t first, int64_t count, TextColumn structs not None, TextColumn keys not None,
                      bint check_utf8):
        """The first row, of those measured, with a header that is null or has no key: ``(row, False)``. With ``check_utf8``
        also one with a key that is not UTF-8: ``(row, True)``. None when there is none. ``structs`` has the validity of the
        items, as values of no bytes."""
        cdef int64_t row, item, length
        cdef int64_t bad = -1
        cdef bint is_text = False
        cdef kr_text_error error
        cdef const uint8_t *p = NULL
        cdef const uint8_t *end
        cdef int step
        self._check(first, count)
        if structs.state.rows < self.state.items or keys.state.rows < self.state.items:
            raise ValueError("there are fewer headers than lists have")
        structs._check(0, 0)
        keys._check(0, 0)
        with nogil:
            for row in range(first, first + count):
                if kr_lent_list_is_null(&self.state, row):
                    continue
                for item in range(kr_lent_list_end(&self.state, row), kr_lent_list_end(&self.state, row + 1)):
                    length = kr_text_at(&keys.state, item, &p, &error)
                    if length < 0 or kr_text_at(&structs.state, item, &p, &error) < 0:
                        bad = row
                        break
                    if not check_utf8 or length == 0:
                        continue
                    kr_text_at(&keys.state, item, &p, &error)
                    end = p + length
                    while p < end:
                        step = kr_utf8_sequence(p, end)
                        if step <= 0:
                            break
                        p += step
                    if p < end:
                        bad = row
                        is_text = True
                        break
                if bad >= 0:
                    break
        return None if bad < 0 else (bad, is_text)
