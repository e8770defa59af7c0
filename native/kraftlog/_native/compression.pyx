"""Compressed batches to plain bytes and back, without the GIL where a library's functions are found.

libzstd, liblz4 and libdeflate are those inside of installed packages; ``load`` takes the extension modules that hold
them. What they are not there for is done by the Python function that each object is given. Snappy is in native/c.
"""

from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset
from posix.dlfcn cimport RTLD_LAZY, dlopen, dlsym

from kraftlog._native.c_codecs cimport (
    KR_LZ4_VERSION,
    kr_context_give,
    kr_context_pool,
    kr_context_take,
    KR_LZ4_HEADER,
    kr_gzip_decompress,
    kr_gzip_follows,
    kr_gzip_guess,
    kr_libdeflate,
    kr_liblz4,
    kr_libzstd,
    kr_lz4_decompress,
    kr_lz4_header_checksum,
    kr_lz4_header_size,
    kr_lz4_most,
    kr_lz4_plain_header,
    kr_lz4_prefer,
    kr_lz4_preferences,
    kr_snappy_bound,
    kr_snappy_compress,
    kr_snappy_decompress,
    kr_snappy_most,
    kr_zstd_decompress,
    kr_zstd_frames,
)
from kraftlog._native.c_crc cimport kr_crc_init
from kraftlog._native.c_decoder cimport (
    KR_DECOMPRESSION_FAILED,
    KR_DECOMPRESSION_LIMIT,
    KR_LOG_OVERHEAD,
    KR_NEEDS_ROOM,
    KR_OK,
    KR_PADDING,
    KR_RECORD_BATCH_OVERHEAD,
    KR_UNREADABLE,
)
from kraftlog._native.c_encoder cimport kr_seal_batch
from kraftlog._native.c_memory cimport kr_busy_leave
from kraftlog._native.memory cimport Input, enter


cdef extern from "base/endian.h" nogil:
    int kr_load_int32(const uint8_t *p)


kr_crc_init()

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

cdef enum:
    NONE, GZIP, SNAPPY, LZ4, ZSTD
    LENGTH_AT = 8  # byte of a batch
    SMALLEST_ROOM = 64 << 10  # of a stream that holds more than it says

cdef kr_libzstd libzstd
cdef kr_liblz4 liblz4
cdef kr_libdeflate libdeflate
cdef kr_context_pool decompressors[5]
cdef kr_context_pool compressors[5]

# in the order of the fields of kr_libzstd, kr_liblz4 and kr_libdeflate
FUNCTIONS = {
    "zstd": (
        b"ZSTD_createDCtx", b"ZSTD_freeDCtx", b"ZSTD_decompressDCtx", b"ZSTD_createCCtx", b"ZSTD_freeCCtx",
        b"ZSTD_compressCCtx", b"ZSTD_compressBound", b"ZSTD_isError", b"ZSTD_getErrorName",
    ),
    "lz4": (
        b"LZ4F_createDecompressionContext", b"LZ4F_freeDecompressionContext", b"LZ4F_resetDecompressionContext",
        b"LZ4F_decompress", b"LZ4F_compressFrame", b"LZ4F_compressFrameBound", b"LZ4F_isError", b"LZ4F_getErrorName",
    ),
    "gzip": (
        b"libdeflate_alloc_decompressor", b"libdeflate_free_decompressor", b"libdeflate_gzip_decompress_ex",
        b"libdeflate_alloc_compressor", b"libdeflate_free_compressor", b"libdeflate_gzip_compress",
        b"libdeflate_gzip_compress_bound",
    ),
}


def load(str compression, bytes path):
    """Takes the functions of a library from an extension module, all or none; whether they are there."""
    cdef void *library = dlopen(path, RTLD_LAZY) if path else NULL
    cdef void **functions
    cdef int i
    if compression == "zstd":
        functions = <void **>&libzstd
    else:
        functions = <void **>&liblz4 if compression == "lz4" else <void **>&libdeflate
    if library == NULL:
        return False
    for i, name in enumerate(FUNCTIONS[compression]):
        functions[i] = dlsym(library, name)
        if functions[i] == NULL:
            memset(functions, 0, (i + 1) * sizeof(void *))
            return False
    return True


cdef bint is_loaded(int compression) noexcept nogil:
    if compression == ZSTD:
        return libzstd.decompress != NULL
    if compression == LZ4:
        return liblz4.decompress != NULL
    return compression == SNAPPY or libdeflate.decompress != NULL


cdef void *take_decompressor(int compression) noexcept nogil:
    cdef void *context = kr_context_take(&decompressors[compression], 0)
    if context != NULL:
        return context
    if compression == ZSTD:
        return libzstd.create_context()
    if compression == GZIP:
        return libdeflate.create_context()
    return NULL if liblz4.is_error(liblz4.create_context(&context, KR_LZ4_VERSION)) else context


cdef void give_decompressor(int compression, void *context, bint is_sound) noexcept nogil:
    # what a damaged frame leaves in a context of liblz4 outlives its reset
    if is_sound and kr_context_give(&decompressors[compression], 0, context):
        return
    if compression == ZSTD:
        libzstd.free_context(context)
    elif compression == GZIP:
        libdeflate.free_context(context)
    else:
        liblz4.free_context(context)


cdef void *take_compressor(int compression, int level) noexcept nogil:
    cdef int kind = level if compression == GZIP else 0
    cdef void *context = kr_context_take(&compressors[compression], kind)
    if context != NULL:
        return context
    return libzstd.create_compressor() if compression == ZSTD else libdeflate.create_compressor(level)


cdef void give_compressor(int compression, int level, void *context) noexcept nogil:
    if kr_context_give(&compressors[compression], level if compression == GZIP else 0, context):
        return
    if compression == ZSTD:
        libzstd.free_compressor(context)
    else:
        libdeflate.free_compressor(context)


cdef bint is_lz4_header_sound(const uint8_t *data, int64_t size) noexcept nogil:
    cdef int64_t header_size = kr_lz4_header_size(data, size)
    return kr_lz4_header_checksum(data, header_size) == data[header_size - 1]


def gzip_follows(const uint8_t[::1] data not None):
    """Whether a member follows one that has ended, as Java's reader sees it."""
    return data.shape[0] > 0 and kr_gzip_follows(&data[0], data.shape[0]) != 0


class DecompressionError(ValueError):
    """Compressed bytes that cannot be decompressed."""


class DecompressionLimitError(DecompressionError):
    """More bytes after decompression than allowed."""


cdef class Decompressor:
    """Decompresses one batch after the other into memory of its own, at most ``limit`` bytes of each.

    ``fallback(data, compression, limit)`` returns the plain bytes or raises ``DecompressionError``. It takes the place
    of a library that was not found, and with ``by_libraries`` false, of all.
    """

    def __init__(self, int64_t limit, fallback, *, bint by_libraries=True):
        self.limit = limit
        self.fallback = fallback
        self.by_libraries = by_libraries

    def __dealloc__(self):
        free(self.plain.out)

    def decompress(self, const uint8_t[::1] data not None, int compression, int magic):
        """How many plain bytes the data makes."""
        cdef const uint8_t *start = &data[0] if data.shape[0] else NULL
        cdef int64_t size = data.shape[0]
        cdef int status
        enter(&self.busy, self)
        try:
            with nogil:
                status = self.run(start, size, compression, magic)
            if status == KR_DECOMPRESSION_LIMIT:
                raise DecompressionLimitError(f"more than {self.limit} bytes")
            if status == KR_DECOMPRESSION_FAILED:
                raise DecompressionError(self.detail)
            if status != KR_OK:
                raise self.error
            return self.plain.size
        finally:
            kr_busy_leave(&self.busy)

    def plain_bytes(self):
        """What was decompressed last, as a copy."""
        enter(&self.busy, self)
        try:
            return PyBytes_FromStringAndSize(<const char *>self.plain.out, self.plain.size)
        finally:
            kr_busy_leave(&self.busy)

    cdef int run(self, const uint8_t *data, int64_t size, int compression, int magic) noexcept nogil:
        """KR_OK with ``plain``; KR_DECOMPRESSION_FAILED with ``detail``; KR_DECOMPRESSION_LIMIT; KR_UNREADABLE with
        ``error``, when what is wrong is not the data."""
        cdef int64_t most = 0
        cdef int status
        if compression == ZSTD:
            size = kr_zstd_frames(data, size, &most)
        elif compression == LZ4:
            most = kr_lz4_most(data, size)
        elif compression == SNAPPY:
            most = kr_snappy_most(data, size)
        self.plain.detail = "the data is cut short, or none"
        self.plain.size = 0
        if most < 0 or size < 0:
            status = KR_DECOMPRESSION_FAILED
        elif compression == LZ4 and magic > 0 and not is_lz4_header_sound(data, size):
            self.plain.detail = "the checksum of the header does not match"
            status = KR_DECOMPRESSION_FAILED
        elif compression == SNAPPY:
            status = self._unsnappy(data, size, most)
        elif self.by_libraries and is_loaded(compression):
            status = self._by_library(data, size, compression, most)
        else:
            with gil:
                return self._by_fallback(data, size, compression)
        if status == KR_DECOMPRESSION_FAILED:
            with gil:
                self.detail = f"{NAMES[compression]}: {self.plain.detail.decode()}"
        elif status == KR_UNREADABLE:
            with gil:
                self.error = MemoryError("no memory to decompress a batch")
        return status

    cdef int _reserve(self, int64_t room) noexcept nogil:
        """Room for so many plain bytes, with what is there already."""
        cdef uint8_t *out = self.plain.out
        self.plain.room = room
        if room + KR_PADDING <= self.capacity:
            return KR_OK
        if self.plain.size == 0:
            free(out)
            self.plain.out = out = NULL
            self.capacity = 0
        out = <uint8_t *>realloc(out, room + KR_PADDING)
        if out == NULL:
            return KR_UNREADABLE
        self.plain.out = out
        self.capacity = room + KR_PADDING
        return KR_OK

    cdef int _unsnappy(self, const uint8_t *data, int64_t size, int64_t most) noexcept nogil:
        if most > self.limit:
            return KR_DECOMPRESSION_LIMIT
        if self._reserve(most) != KR_OK:
            return KR_UNREADABLE
        self.plain.size = kr_snappy_decompress(data, size, self.plain.out, most)
        self.plain.detail = "a block is damaged"
        return KR_OK if self.plain.size >= 0 else KR_DECOMPRESSION_FAILED

    cdef int _by_library(self, const uint8_t *data, int64_t size, int compression, int64_t most) noexcept nogil:
        cdef void *context = take_decompressor(compression)
        cdef int status = KR_UNREADABLE
        if context == NULL:
            return status
        if compression == GZIP:
            status = self._gunzip(context, data, size)
        elif self._reserve(min(most, self.limit)) == KR_OK:
            if compression == ZSTD:
                status = kr_zstd_decompress(&libzstd, context, data, size, &self.plain)
            else:
                status = kr_lz4_decompress(&liblz4, context, data, size, &self.plain)
        give_decompressor(compression, context, status == KR_OK)
        return status

    cdef int _gunzip(self, void *context, const uint8_t *data, int64_t size) noexcept nogil:
        cdef int64_t at = 0
        cdef int status = self._reserve(min(kr_gzip_guess(data, size), self.limit))
        while status == KR_OK:
            status = kr_gzip_decompress(&libdeflate, context, data, size, &at, &self.plain)
            if status != KR_NEEDS_ROOM:
                return status
            if self.plain.room == self.limit:
                return KR_DECOMPRESSION_LIMIT
            status = self._reserve(min(max(4 * self.plain.room, SMALLEST_ROOM), self.limit))
        return status

    cdef int _by_fallback(self, const uint8_t *data, int64_t size, int compression) noexcept:
        cdef Input plain
        cdef uint8_t header[KR_LZ4_HEADER]
        try:
            frame = PyMemoryView_FromMemory(<char *>data, size, PyBUF_READ) if size else b""
            if compression == LZ4:
                kr_lz4_plain_header(data, header)
                frame = header[:KR_LZ4_HEADER] + bytes(frame[kr_lz4_header_size(data, size):])
            plain = Input(self.fallback(frame, compression, self.limit))
            if self._reserve(plain.size) != KR_OK:
                raise MemoryError("no memory to decompress a batch")
            memcpy(self.plain.out, plain.data, plain.size)
            self.plain.size = plain.size
            return KR_OK
        except DecompressionLimitError:
            return KR_DECOMPRESSION_LIMIT
        except DecompressionError as error:
            self.detail = str(error)
            return KR_DECOMPRESSION_FAILED
        except BaseException as error:  # raised again when the walk has ended
            self.error = error
            return KR_UNREADABLE


cdef int64_t compress_bound(void *context, int compression, int64_t size, const kr_lz4_preferences *preferences) noexcept nogil:
    if compression == ZSTD:
        return libzstd.compress_bound(size)
    if compression == LZ4:
        return liblz4.compress_bound(size, preferences)
    return kr_snappy_bound(size) if compression == SNAPPY else libdeflate.compress_bound(context, size)


cdef int64_t compress(void *context, int compression, int level, const kr_lz4_preferences *preferences,
                      const uint8_t *data, int64_t size, uint8_t *out, int64_t room) noexcept nogil:
    """Compresses the records of a batch; returns the size, or -1."""
    cdef size_t made
    if compression == ZSTD:
        made = libzstd.compress(context, out, room, data, size, level)
        return -1 if libzstd.is_error(made) else <int64_t>made
    if compression == LZ4:
        made = liblz4.compress(out, room, data, size, preferences)
        return -1 if liblz4.is_error(made) else <int64_t>made
    if compression == SNAPPY:
        return kr_snappy_compress(data, size, out)
    made = libdeflate.compress(context, data, size, out, room)
    return <int64_t>made if made else -1


cdef struct kr_ends:
    int64_t *ends
    int64_t count, at


cdef void move_ends(kr_ends *e, int64_t plain, int64_t compressed) noexcept nogil:
    """Moves the ends at a byte of the plain batches to a byte of the compressed ones."""
    while e.at < e.count and e.ends[e.at] == plain:
        e.ends[e.at] = compressed
        e.at += 1


cdef bytes compress_by(object fallback, const uint8_t *p, const uint8_t *end, int compression, int level, kr_ends *ends):
    cdef list parts = []
    cdef int64_t size, plain = 0, at = 0
    cdef uint8_t[::1] view
    while p < end:
        move_ends(ends, plain, at)
        size = kr_load_int32(p + LENGTH_AT) + KR_LOG_OVERHEAD
        batch = bytearray(p[:KR_RECORD_BATCH_OVERHEAD])
        batch += fallback(p[KR_RECORD_BATCH_OVERHEAD:size], compression, level)
        view = batch
        kr_seal_batch(&view[0], view.shape[0])
        parts.append(batch)
        p += size
        plain += size
        at += len(batch)
    move_ends(ends, plain, at)
    return b"".join(parts)


def compress_batches(const uint8_t[::1] plain not None, int compression, int level, fallback, *, bint by_libraries=True,
                     int64_t[::1] ends=None):
    """The record batches that fill ``plain``, each compressed and sealed again; bytes.

    ``fallback(data, compression, level)`` takes the place of a library, as that of a ``Decompressor``. ``ends`` are
    places between batches of ``plain``, in order; they become the same places of the result.
    """
    cdef kr_ends moved
    moved.count = 0 if ends is None else ends.shape[0]
    moved.ends = &ends[0] if moved.count else NULL
    moved.at = 0
    cdef kr_lz4_preferences preferences = kr_lz4_prefer(level)
    cdef bint needs_context = compression in (GZIP, ZSTD)
    cdef const uint8_t *p = &plain[0] if plain.shape[0] else NULL
    cdef const uint8_t *end = p + plain.shape[0]
    cdef void *context = NULL
    cdef uint8_t *out = NULL
    cdef int64_t room = 0, at = 0, size, made = 0
    if not is_loaded(compression) or not (by_libraries or compression == SNAPPY):
        return compress_by(fallback, p, end, compression, level, &moved)
    with nogil:
        if needs_context:
            context = take_compressor(compression, level)
        while p < end:
            size = kr_load_int32(p + LENGTH_AT) + KR_LOG_OVERHEAD
            room += KR_RECORD_BATCH_OVERHEAD + compress_bound(context, compression, size, &preferences)
            p += size
        p = end - plain.shape[0]
        out = <uint8_t *>malloc(room + 1)
        while p < end and out != NULL and made >= 0 and not (needs_context and context == NULL):
            size = kr_load_int32(p + LENGTH_AT) + KR_LOG_OVERHEAD
            move_ends(&moved, plain.shape[0] - (end - p), at)
            memcpy(out + at, p, KR_RECORD_BATCH_OVERHEAD)
            made = compress(context, compression, level, &preferences, p + KR_RECORD_BATCH_OVERHEAD,
                            size - KR_RECORD_BATCH_OVERHEAD, out + at + KR_RECORD_BATCH_OVERHEAD,
                            room - at - KR_RECORD_BATCH_OVERHEAD)
            if made >= 0:
                kr_seal_batch(out + at, made + KR_RECORD_BATCH_OVERHEAD)
                at += made + KR_RECORD_BATCH_OVERHEAD
            p += size
        move_ends(&moved, plain.shape[0], at)
        if context != NULL:
            give_compressor(compression, level, context)
    try:
        if out == NULL or made < 0 or (needs_context and context == NULL):
            raise MemoryError(f"no memory to compress {plain.shape[0]} bytes")
        return PyBytes_FromStringAndSize(<char *>out, at)
    finally:
        free(out)
