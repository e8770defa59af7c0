"""Memory that crosses the edge between Python and C: borrowed input, and arenas that Arrow buffers are cut from."""

from cpython.buffer cimport (
    PyBUF_SIMPLE,
    PyBUF_WRITE,
    PyBuffer_FillInfo,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.memoryview cimport PyMemoryView_FromMemory
from errno import EIO

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy
from posix.stdlib cimport posix_memalign


cdef extern from "large_memory.h" nogil:
    void kr_advise_large(void *begin, size_t size)


WINDOW_BYTES = 1 << 20  # of a local file: it stays in the second-level cache
LONG_BATCH = 4 << 10  # bytes that cost as much as another read


cdef class Input:
    """What is read: a contiguous buffer of any object, or, where a caller can do with it, a file of which a window is
    in memory.

    A file is an object with ``size``, ``read(start, end)`` and ``read_into(memoryview, start)``. One with ``fileno`` is
    read without the GIL. ``window_bytes`` says how much is read at once, and ``long_batch`` from how many bytes of a
    batch on a reader of headers passes over it by a read of its own. The object is held as long as this one lives.
    """

    def __cinit__(self, source not None, bint may_be_file=False):
        if not may_be_file or not hasattr(source, "read_into"):
            PyObject_GetBuffer(source, &self.view, PyBUF_SIMPLE)
            self.data = <const uint8_t *>self.view.buf
            self.size = self.view.len
            return
        self.file = source
        self.size = source.size
        self.window.file = source.fileno() if hasattr(source, "fileno") else -1
        self.window.grow = grow_window
        self.window.fill = fill_window
        self.window.owner = <void *>self

    def __dealloc__(self):
        PyBuffer_Release(&self.view)  # does nothing when there is nothing to release

    cdef kr_input make(self, int64_t stop) except *:
        """The input for the walkers in native/c; what lies behind ``stop`` is read only when it is needed."""
        cdef kr_input made = kr_input_make(self.data, self.size)
        if self.file is None:
            return made
        made.until = 0
        made.spare = KR_WINDOW_SPARE
        made.move = kr_window_move
        made.owner = &self.window
        made.window_bytes = getattr(self.file, "window_bytes", WINDOW_BYTES)
        made.long_batch = getattr(self.file, "long_batch", LONG_BATCH)
        made.ahead = made.window_bytes
        made.stop = min(stop, self.size)
        return made

    cdef object failure(self):
        """Why the file cannot be read: what its own ``read`` raises for the same bytes."""
        if self.error is not None:
            return self.error
        try:
            self.file.read(self.window.failed_at, self.window.failed_end)
        except OSError as error:
            return error
        what = f"bytes {self.window.failed_at} to {self.window.failed_end} were truncated and written again meanwhile"
        return OSError(EIO, what, str(self.file.path))


cdef uint8_t *grow_window(kr_window *w, int64_t capacity, const uint8_t *kept, int64_t size) noexcept nogil:
    with gil:
        return take_staging(w, capacity, kept, size)


cdef uint8_t *take_staging(kr_window *w, int64_t capacity, const uint8_t *kept, int64_t size) noexcept:
    cdef Input owner = <Input>w.owner
    cdef Arena fresh
    try:
        fresh = Arena(capacity + KR_WINDOW_SPARE)
    except MemoryError as error:
        owner.error = error
        return NULL
    if size:
        memcpy(fresh.data, kept, size)
    owner.staging = fresh
    w.block = fresh.data
    w.capacity = capacity
    return w.block


cdef int fill_window(kr_window *w, uint8_t *target, int64_t start, int64_t size) noexcept nogil:
    with gil:
        return read_object(w, target, start, size)


cdef int read_object(kr_window *w, uint8_t *target, int64_t start, int64_t size) noexcept:
    cdef Input owner = <Input>w.owner
    try:
        owner.file.read_into(PyMemoryView_FromMemory(<char *>target, size, PyBUF_WRITE), start)
    except BaseException as error:  # raised again when the walk has ended
        owner.error = error
        return -1
    return 0


# Blocks given back by arenas that nobody looks at any more. A fresh block costs a page fault for every 4 KiB that is
# written, which is as much as decoding into it; a stream that drops its batches runs in the same few blocks.
cdef enum:
    ALIGNMENT = 64
    LARGE = 2 << 20  # bytes from which a block starts where a large page does
    MAX_FREE_BLOCKS = 16
    MOST_KEPT = 128 << 20  # bytes of all blocks together
    ADVISED = 32 << 20  # bytes from which a new block asks for large pages

cdef uint8_t *free_blocks[MAX_FREE_BLOCKS]
cdef int64_t free_capacities[MAX_FREE_BLOCKS]
cdef int free_count = 0
cdef int64_t kept = 0


cdef uint8_t *take_block(int64_t *capacity) noexcept:
    """A kept block of at least *capacity bytes and at most twice that, else a new one; NULL when memory is short."""
    global free_count, kept
    cdef int i
    cdef uint8_t *block
    cdef void *fresh = NULL
    for i in range(free_count):
        if capacity[0] <= free_capacities[i] <= 2 * capacity[0]:
            block = free_blocks[i]
            capacity[0] = free_capacities[i]
            free_count -= 1
            kept -= capacity[0]
            free_blocks[i] = free_blocks[free_count]
            free_capacities[i] = free_capacities[free_count]
            return block
    if posix_memalign(&fresh, LARGE if capacity[0] >= LARGE else ALIGNMENT, capacity[0]) != 0:
        return NULL
    if capacity[0] >= ADVISED:
        kr_advise_large(fresh, capacity[0])
    return <uint8_t *>fresh


cdef void give_block(uint8_t *block, int64_t capacity) noexcept:
    global free_count, kept
    if kept + capacity <= MOST_KEPT and free_count < MAX_FREE_BLOCKS:
        free_blocks[free_count] = block
        free_capacities[free_count] = capacity
        free_count += 1
        kept += capacity
    else:
        free(block)


cdef class Arena:
    """A writable block of memory; slices of ``memoryview(arena)`` keep it alive, and the last one gives it back."""

    def __cinit__(self, int64_t size):
        self.capacity = max(size, 1)
        self.size = size
        self.data = take_block(&self.capacity)
        if self.data == NULL:
            raise MemoryError(f"no memory for {size} bytes")

    def __dealloc__(self):
        if self.data != NULL:
            give_block(self.data, self.capacity)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 0, flags)
