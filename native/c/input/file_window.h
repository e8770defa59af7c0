/* A window over a file, in a block of memory that is used again and again. The file is never mapped: bytes of a mapping
 * that are truncated away while they are read would end the process with SIGBUS.
 *
 *   file   ......|batch|batch|ba tch|batch|....
 *   block        [batch|batch|ba]                 the part of a batch that is cut off moves to the front
 *   block                     [batch|batch|....   and the bytes behind it are read
 *
 * Of a window that is held (record/follow.h) much stays. Further bytes are read behind it, and it moves to the front
 * when at least as much in front of it is no longer needed: no more bytes are copied than read.
 */
#ifndef KRAFTLOG_INPUT_FILE_WINDOW_H
#define KRAFTLOG_INPUT_FILE_WINDOW_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "input/input.h"

enum {
    KR_WINDOW_SPARE = 64,          /* readable bytes behind a window */
    KR_WINDOW_CHECK = 256 << 10,   /* bytes between two checks that the file was not written again, of single headers */
    KR_WINDOW_READAHEAD = 2 << 20, /* bytes that the system is asked for where only headers are read */
    KR_WINDOW_FAILED = -1,
    KR_WINDOW_REWRITTEN = -2
};

typedef struct kr_window {
    int file; /* a descriptor; -1: bytes come from `fill` */
    uint8_t *block;
    int64_t capacity; /* of the block, without the spare bytes */
    int64_t checked, advised;
    int64_t failed_at, failed_end; /* what could not be read */
    /* A block of at least so many bytes that begins with [kept, kept + size); 0: no memory. */
    uint8_t *(*grow)(struct kr_window *w, int64_t capacity, const uint8_t *kept, int64_t size);
    /* Puts bytes of what is not a local file into a block. Returns how many: fewer if others cannot be read. */
    int64_t (*fill)(struct kr_window *w, uint8_t *target, int64_t start, int64_t size);
    void *owner; /* of the block, for `grow` and `fill` */
} kr_window;

/* Reads up to `size` bytes, of which `least` are needed. Returns how many; less than `least` on failure. */
static inline int64_t kr_window_read(kr_window *w, uint8_t *target, int64_t start, int64_t size, int64_t least) {
    int64_t done = 0;
    if (w->file < 0) return w->fill(w, target, start, size);
    while (done < size) {
        ssize_t got = pread(w->file, target + done, (size_t)(size - done), (off_t)(start + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += got;
        if (done >= least && done < size) break; /* the file ends there by now */
    }
    return done;
}

/* Whether the last header that was read still stands in the file. One that does not was truncated away, and the file
 * has grown again: what was read before and what follows do not belong together. */
static inline int kr_window_is_same_file(kr_window *w, const kr_input *in) {
    uint8_t found[KR_SEEN_BYTES];
    if (w->file < 0 || in->seen_at < 0) return 1;
    return kr_window_read(w, found, in->seen_at, KR_SEEN_BYTES, KR_SEEN_BYTES) == KR_SEEN_BYTES &&
           memcmp(found, in->seen, KR_SEEN_BYTES) == 0;
}

static inline int kr_window_fail(kr_window *w, kr_input *in, int64_t start, int64_t end, int why) {
    w->failed_at = start;
    w->failed_end = end;
    in->from = in->until = 0;
    return why;
}

/* Of headers that are far from each other the system reads only what is asked for: announce what follows. */
static inline void kr_window_advise(kr_window *w, int64_t start) {
#if defined(POSIX_FADV_WILLNEED)
    if (w->file < 0 || start < w->advised) return;
    (void)posix_fadvise(w->file, (off_t)start, KR_WINDOW_READAHEAD, POSIX_FADV_WILLNEED);
    w->advised = start + KR_WINDOW_READAHEAD;
#else
    (void)w;
    (void)start;
#endif
}

/* The `move` of an input whose owner is a kr_window. */
static int kr_window_move(kr_input *in, int64_t a, int64_t b) {
    kr_window *w = (kr_window *)in->owner;
    int64_t stop = in->stop < in->size ? in->stop : in->size, end = b, kept = 0, front = 0;
    if (stop - a > in->ahead) stop = a + in->ahead;
    if (end < stop) end = stop;
    const uint8_t *old = in->start + a;
    if (a >= in->from && a < in->until) {
        kept = (in->until < end ? in->until : end) - a;
        front = in->is_held ? old - w->block : 0;
    }
    if (kept <= front) front = 0;
    if (front + end - a > w->capacity) {
        int64_t capacity = in->is_held ? 2 * (end - a) : end - a;
        if (!w->grow(w, capacity, old, kept)) return kr_window_fail(w, in, a, b, KR_WINDOW_FAILED);
        front = 0;
    } else if (kept && !front) {
        memmove(w->block, old, (size_t)kept);
    }
    uint8_t *target = w->block + front;
    if (!in->ahead) kr_window_advise(w, a);
    int64_t got = kr_window_read(w, target + kept, a + kept, end - a - kept, b - a - kept);
    if (got < b - a - kept) return kr_window_fail(w, in, a, b, KR_WINDOW_FAILED);
    in->start = (const uint8_t *)((uintptr_t)target - (uintptr_t)a);
    in->from = a;
    in->until = a + kept + got;
    if (in->ahead || end - w->checked >= KR_WINDOW_CHECK) {
        if (!kr_window_is_same_file(w, in)) return kr_window_fail(w, in, a, b, KR_WINDOW_REWRITTEN);
        w->checked = end;
    }
    return 0;
}

#endif
