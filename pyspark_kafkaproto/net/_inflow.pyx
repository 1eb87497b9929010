# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The rest of a large answer, received without steps in Python.

The decoder asks for the next piece where the last one ends: either that is received then, or a
thread that holds no interpreter has gone ahead of it.

Law: not a byte beyond the answer is received. Whatever else than bytes comes (the end, an error, a
signal, silence) is for Python to say: `reach` answers with what it was asked with, and the caller
takes the slow way. The thread uses the socket and the memory of the answer until `stop`.
This room's rules hold: it moves bytes, and knows nothing of Kafka.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EAGAIN, EINTR, ETIMEDOUT, errno
from libc.stdint cimport uint8_t
from posix.signal cimport sigset_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec, timeval
from posix.unistd cimport getpid

import os

cimport cython

from pyspark_kafkaproto.records._block cimport Source

cdef extern from "<sys/socket.h>" nogil:
    enum:
        MSG_WAITALL
        SHUT_RDWR
        SOL_SOCKET
        SO_RCVTIMEO
    Py_ssize_t recv(int fd, void *target, size_t size, int flags)
    int shutdown(int fd, int how)
    int setsockopt(int fd, int level, int name, const void *value, unsigned int size)

cdef extern from "<signal.h>" nogil:
    enum:
        SIG_SETMASK
    int sigfillset(sigset_t *signals)
    int pthread_sigmask(int how, const sigset_t *signals, sigset_t *before)

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    int pthread_mutex_init(pthread_mutex_t *lock, const void *attributes)
    int pthread_mutex_destroy(pthread_mutex_t *lock)
    int pthread_mutex_lock(pthread_mutex_t *lock)
    int pthread_mutex_unlock(pthread_mutex_t *lock)
    int pthread_cond_destroy(pthread_cond_t *changed)
    int pthread_cond_signal(pthread_cond_t *changed)
    int pthread_create(
        pthread_t *thread, const void *attributes, void *(*run)(void *) noexcept nogil, void *given
    )
    int pthread_join(pthread_t thread, void **result)

cdef extern from *:
    """
    /* Waits that the wall clock's being set does not prolong; macOS has other words for them. */
    #ifdef __APPLE__
    static int init_changed(pthread_cond_t *changed) { return pthread_cond_init(changed, NULL); }
    static int wait_changed(
        pthread_cond_t *changed, pthread_mutex_t *lock, const struct timespec *until
    ) {
        struct timespec left, now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        left.tv_sec = until->tv_sec - now.tv_sec;
        left.tv_nsec = until->tv_nsec - now.tv_nsec;
        if (left.tv_nsec < 0) { left.tv_nsec += 1000000000; left.tv_sec -= 1; }
        if (left.tv_sec < 0) return ETIMEDOUT;
        return pthread_cond_timedwait_relative_np(changed, lock, &left);
    }
    #else
    static int init_changed(pthread_cond_t *changed) {
        pthread_condattr_t attributes;
        int failed = pthread_condattr_init(&attributes);
        if (!failed) failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        if (!failed) failed = pthread_cond_init(changed, &attributes);
        return failed;
    }
    static int wait_changed(
        pthread_cond_t *changed, pthread_mutex_t *lock, const struct timespec *until
    ) { return pthread_cond_timedwait(changed, lock, until); }
    #endif
    """
    int init_changed(pthread_cond_t *changed) nogil
    int wait_changed(pthread_cond_t *changed, pthread_mutex_t *lock, const timespec *until) nogil

cdef enum:
    NANOSECONDS = 1000000000
    SLICE_NS = 20000000  # of a wait, which ends early for what only Python can do: signals, time

cdef double LONG_S = 0.02  # a wait; shorter ones are added up without telling the kernel


cdef struct Flow:
    int fd
    uint8_t *memory
    size_t size
    size_t arrived
    size_t piece
    int error  # errno of what ended it
    # What follows is for a thread that goes ahead; the lock guards `arrived` and `error` then.
    pthread_mutex_t lock
    pthread_cond_t changed
    size_t awaited  # how far the reader waits for it
    bint is_flowing
    bint is_to_stop


cdef inline bint is_passing(int error) noexcept nogil:
    """Whether it says no more than that nothing came yet."""
    return error == EINTR or error == EAGAIN


cdef void *go_ahead(void *given) noexcept nogil:
    """The thread: receive until the answer is there, an error, or `is_to_stop`."""
    cdef Flow *flow = <Flow *> given
    cdef Py_ssize_t count
    cdef int error
    pthread_mutex_lock(&flow.lock)
    while flow.arrived < flow.size and not flow.is_to_stop:
        pthread_mutex_unlock(&flow.lock)
        count = recv(
            flow.fd,
            flow.memory + flow.arrived,
            min(flow.size - flow.arrived, flow.piece),
            0,
        )
        error = errno
        pthread_mutex_lock(&flow.lock)
        if count > 0:
            flow.arrived += count
        elif count == 0:
            break
        elif not is_passing(error):
            flow.error = error
            break
        if flow.arrived >= flow.awaited:
            pthread_cond_signal(&flow.changed)
    flow.is_flowing = False
    pthread_cond_signal(&flow.changed)
    pthread_mutex_unlock(&flow.lock)
    return NULL


cdef void wait_slice(Flow *flow, size_t awaited) noexcept nogil:
    """Wait until so much is there, no more will come, or a slice is over; under the lock."""
    cdef timespec until
    clock_gettime(CLOCK_MONOTONIC, &until)
    until.tv_nsec += SLICE_NS
    if until.tv_nsec >= NANOSECONDS:
        until.tv_nsec -= NANOSECONDS
        until.tv_sec += 1
    flow.awaited = awaited
    while flow.arrived < awaited and flow.is_flowing:
        if wait_changed(&flow.changed, &flow.lock, &until):
            return


cdef double monotonic_s() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + <double> now.tv_nsec / NANOSECONDS


# What it refers to refers to nothing else. To the collector it must not show that: of garbage in a
# cycle it would clear the socket and the view of the memory first, and the thread has both.
@cython.no_gc
cdef class Inflow(Source):
    """Receives the rest of one answer.

    Args:
        sock: blocks, with the time-out that the kernel keeps; it must stay open until `stop`.
        payload: memory for all of the answer.
        arrived: how many bytes of it are there.
        pos: of the block in the answer: what the decoder counts from.
        piece_bytes: how much to receive at a time. Less than two pieces are left to Python, so that
            the end of the answer is noticed there.
        patience_s: for how long may be waited in all; the socket's time-out is not above that.
        ahead: whether a thread receives, without being asked.
    """

    cdef Flow flow
    cdef Py_buffer buffer
    cdef object sock
    cdef size_t pos
    cdef pthread_t thread
    cdef int owner  # the process that has the thread; 0 without one
    cdef int lock_of  # the process that made the lock; 0 without one
    cdef double waited
    cdef double waited_in_python
    cdef double patience

    def __cinit__(
        self,
        sock,
        payload,
        size_t arrived,
        size_t pos,
        size_t piece_bytes,
        double patience_s,
        bint ahead,
    ):
        PyObject_GetBuffer(payload, &self.buffer, PyBUF_WRITABLE)
        self.sock = sock
        self.pos = pos
        self.patience = patience_s
        self.flow.fd = sock.fileno()
        self.flow.memory = <uint8_t *> self.buffer.buf
        self.flow.size = self.buffer.len
        self.flow.arrived = arrived
        self.flow.piece = piece_bytes
        if not pos <= arrived <= self.flow.size:
            raise ValueError(f"{arrived} bytes of {self.flow.size}, and a block at {pos}")
        if ahead:
            self.start()

    def __dealloc__(self):
        self.end()
        if self.lock_of and self.lock_of == getpid():
            pthread_cond_destroy(&self.flow.changed)
            pthread_mutex_destroy(&self.flow.lock)
        PyBuffer_Release(&self.buffer)

    cdef void start(self) noexcept:
        """Have a thread go ahead; where the system has none to give, nothing does."""
        cdef sigset_t every, before
        if pthread_mutex_init(&self.flow.lock, NULL) or init_changed(&self.flow.changed):
            return
        self.lock_of = getpid()
        self.flow.is_flowing = True
        sigfillset(&every)
        # Python's own threads are to get the process's signals: they know what to do.
        pthread_sigmask(SIG_SETMASK, &every, &before)
        if pthread_create(&self.thread, NULL, go_ahead, &self.flow) == 0:
            self.owner = self.lock_of
        else:
            self.flow.is_flowing = False
        pthread_sigmask(SIG_SETMASK, &before, NULL)

    cdef void end(self) noexcept:
        """Nothing uses the socket and the memory from here on."""
        if self.owner == 0 or self.owner != getpid():  # a child process has no such thread
            return
        with nogil:
            pthread_mutex_lock(&self.flow.lock)
            self.flow.is_to_stop = True
            if self.flow.is_flowing:
                shutdown(self.flow.fd, SHUT_RDWR)  # ends its `recv`
            pthread_mutex_unlock(&self.flow.lock)
            pthread_join(self.thread, NULL)
        self.owner = 0  # the lock stays: another thread of Python's may be waiting here

    @property
    def is_ahead(self):
        """Whether a thread receives, and nobody else may."""
        return self.owner != 0

    @property
    def arrived(self):
        """How many bytes of the answer are there."""
        cdef size_t arrived
        if self.owner == 0:
            return self.flow.arrived
        pthread_mutex_lock(&self.flow.lock)
        arrived = self.flow.arrived
        pthread_mutex_unlock(&self.flow.lock)
        return arrived

    @property
    def reached(self):
        """How many bytes are there from the block's begin on."""
        return self.arrived - self.pos

    @property
    def waited_s(self):
        """How long the answer was waited for, so far."""
        return self.waited

    @property
    def waited_natively_s(self):
        """As long of it as Python knows nothing of."""
        return self.waited - self.waited_in_python

    def note_waited(self, double seconds):
        """Python has waited for so long."""
        self.waited += seconds
        self.waited_in_python += seconds

    def note(self, size_t count):
        """So many bytes more were received in Python; never with a thread ahead."""
        self.flow.arrived += count

    def check(self):
        """Raise what receiving has met; OSError. Never with a thread ahead: `wait` does then."""
        if self.flow.error:
            raise OSError(self.flow.error, os.strerror(self.flow.error))

    def wait(self, size_t stop, double timeout_s):
        """Wait until the thread has received up to `stop`; how many bytes are there.

        Fewer if the peer closed the connection.

        Raises:
            OSError: receiving failed, or has not come so far in time.
        """
        cdef double until = monotonic_s() + timeout_s
        cdef size_t arrived
        cdef bint is_flowing
        cdef int error
        while True:
            with nogil:
                pthread_mutex_lock(&self.flow.lock)
                wait_slice(&self.flow, stop)
                arrived = self.flow.arrived
                is_flowing = self.flow.is_flowing
                error = self.flow.error
                pthread_mutex_unlock(&self.flow.lock)
            if arrived < stop and error:
                raise OSError(error, os.strerror(error))
            if arrived >= stop or not is_flowing:
                return arrived
            PyErr_CheckSignals()
            if monotonic_s() >= until:
                raise OSError(ETIMEDOUT, os.strerror(ETIMEDOUT))

    def stop(self):
        """Receive no more; a thread that is not at the answer's end takes the connection with it.

        A decoder may ask again all the same, when the socket's number is another's.
        """
        self.patience = 0.0
        self.end()

    cdef size_t reach(self, size_t have) noexcept:
        """Another piece of the block behind the `have` bytes; how many are there then."""
        cdef double began = monotonic_s()
        cdef double took
        cdef size_t arrived
        if self.waited >= self.patience:
            return have
        with nogil:
            if self.owner == 0:
                arrived = self.receive_piece(have + self.pos)
            else:
                arrived = self.await_piece(have + self.pos)
        took = monotonic_s() - began
        self.waited += took
        if self.owner == 0 and took >= LONG_S and self.waited < self.patience:
            self.shorten_timeout()  # not of a socket that was let go of meanwhile
        return arrived - self.pos

    cdef void shorten_timeout(self) noexcept:
        """Let the kernel end the next receive when the patience is over."""
        cdef double left = max(LONG_S, self.patience - self.waited)
        cdef timeval timeout
        timeout.tv_sec = <long> left
        timeout.tv_usec = <long> ((left - <long> left) * 1000000)
        setsockopt(self.flow.fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout))

    cdef size_t receive_piece(self, size_t have) noexcept nogil:
        """What is there with another piece; `have` where Python has to look into what came."""
        cdef Flow *flow = &self.flow
        cdef Py_ssize_t count
        if flow.error or flow.size - flow.arrived < 2 * flow.piece:
            return have
        count = recv(flow.fd, flow.memory + flow.arrived, flow.piece, MSG_WAITALL)
        if count > 0:
            flow.arrived += count
        elif count < 0 and not is_passing(errno):
            flow.error = errno
        return flow.arrived if count == <Py_ssize_t> flow.piece else have

    cdef size_t await_piece(self, size_t have) noexcept nogil:
        """What is there, once it is half a piece more; `have` when the answer is at its end."""
        cdef Flow *flow = &self.flow
        cdef size_t arrived
        pthread_mutex_lock(&flow.lock)
        wait_slice(flow, min(have + flow.piece // 2, flow.size))
        arrived = flow.arrived
        pthread_mutex_unlock(&flow.lock)
        return have if arrived == flow.size else max(have, arrived)
