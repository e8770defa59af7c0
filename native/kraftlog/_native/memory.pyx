"""Memory that crosses the edge between Python and C: borrowed input, and arenas that Arrow buffers are cut from."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free
from posix.stdlib cimport posix_memalign


cdef extern from "large_memory.h" nogil:
    void kr_advise_large(void *begin, size_t size)


cdef class Input:
    """A contiguous buffer of any object, held as long as this object lives."""

    def __cinit__(self, source not None):
        PyObject_GetBuffer(source, &self.view, PyBUF_SIMPLE)
        self.data = <const uint8_t *>self.view.buf
        self.size = self.view.len

    def __dealloc__(self):
        PyBuffer_Release(&self.view)  # does nothing when there is nothing to release


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
