/* Threads that hold no GIL and move pages of files: page_work.py in a compiled build, on Linux.
 *
 *     submit ──▶ wanted ──▶ a thread ──▶ done ──▶ take
 *                                          └─ an eventfd is readable
 *
 * Each change between the loop and a thread of the interpreter's has both wait for the GIL, and for
 * the other one's turn on a core. These know jobs by number and descriptors of their own alone. */

#define PY_SSIZE_T_CLEAN
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <Python.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum {
    STACK_BYTES = 128 << 10,
    /* A call ends so often: the kernel may not be preempted in one (PREEMPT_NONE), and whoever was
     * woken on the same core waits for its end. */
    READ_BYTES = 64 << 10,
};

typedef struct Job {
    struct Job *next;
    long long number;
    off_t position, length;
    int descriptor; /* the job's own */
    bool is_read;   /* else its pages go */
    int error;      /* an errno, 0: none */
} Job;

typedef struct {
    Job *first, **last; /* last: where the next one is put; NULL as long as nothing was */
} Jobs;

static void put(Jobs *jobs, Job *job)
{
    job->next = NULL;
    if (jobs->first == NULL)
        jobs->last = &jobs->first;
    *jobs->last = job;
    jobs->last = &job->next;
}

static Job *pop(Jobs *jobs)
{
    Job *job = jobs->first;
    if (job != NULL)
        jobs->first = job->next;
    return job;
}

/* What the threads share; the last of them, or the object, frees it. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t is_wanted;
    Jobs wanted, done;
    int holders, threads, idle; /* holders: the object and the threads */
    int waiting;                /* jobs that are wanted: an idle thread may be woken for one already */
    bool is_closed;
    int event, nowhere; /* descriptors: an eventfd, /dev/null */
} State;

static void drop_all(Jobs *jobs)
{
    for (Job *job; (job = pop(jobs)) != NULL; free(job))
        if (job->descriptor >= 0)
            close(job->descriptor);
}

/* With the mutex, which is given back. */
static void leave(State *state)
{
    bool is_last = --state->holders == 0;
    pthread_mutex_unlock(&state->mutex);
    if (!is_last)
        return;
    drop_all(&state->wanted);
    drop_all(&state->done);
    close(state->event);
    close(state->nowhere);
    pthread_cond_destroy(&state->is_wanted);
    pthread_mutex_destroy(&state->mutex);
    free(state);
}

static int carry_out(const State *state, const Job *job)
{
    if (!job->is_read)
        return posix_fadvise(job->descriptor, job->position, job->length, POSIX_FADV_DONTNEED);
    off_t position = job->position, end = job->position + job->length;
    while (position < end) {
        size_t count = end - position < READ_BYTES ? (size_t)(end - position) : READ_BYTES;
        ssize_t sent = sendfile(state->nowhere, job->descriptor, &position, count);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0) /* a fault, or the file's end */
            return sent < 0 ? errno : 0;
    }
    return 0;
}

static void *serve(void *shared)
{
    State *state = shared;
    uint64_t one = 1;
    pthread_mutex_lock(&state->mutex);
    while (!state->is_closed) {
        Job *job = pop(&state->wanted);
        if (job == NULL) {
            state->idle++;
            pthread_cond_wait(&state->is_wanted, &state->mutex);
            state->idle--;
            continue;
        }
        state->waiting--;
        pthread_mutex_unlock(&state->mutex);
        job->error = carry_out(state, job);
        close(job->descriptor);
        job->descriptor = -1;
        pthread_mutex_lock(&state->mutex);
        put(&state->done, job);
        /* An eventfd takes it unless 2^64 - 2 have not been read. */
        (void)!write(state->event, &one, sizeof one);
    }
    leave(state);
    return NULL;
}

/* With the mutex; returns an errno. */
static int begin_thread(State *state)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all); /* signals are the interpreter's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, serve, state);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!error) {
        state->threads++;
        state->holders++;
    }
    return error;
}

typedef struct {
    PyObject_HEAD
    State *state; /* NULL once it is closed */
    int most_threads;
} PageThreads;

static PyObject *failed(int error)
{
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *page_threads_new(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    int most_threads;
    if (names != NULL || !PyArg_ParseTuple(arguments, "i", &most_threads))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "no names are taken");
    State *state = calloc(1, sizeof *state);
    PageThreads *self = state == NULL ? NULL : (PageThreads *)type->tp_alloc(type, 0);
    if (self == NULL) {
        free(state);
        return PyErr_NoMemory();
    }
    state->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    state->nowhere = state->event < 0 ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (state->nowhere < 0) {
        int error = errno;
        if (state->event >= 0)
            close(state->event);
        free(state);
        Py_DECREF(self);
        return failed(error);
    }
    pthread_mutex_init(&state->mutex, NULL);
    pthread_cond_init(&state->is_wanted, NULL);
    state->holders = 1;
    self->state = state;
    self->most_threads = most_threads;
    return (PyObject *)self;
}

static PyObject *page_threads_close(PageThreads *self, PyObject *nothing)
{
    (void)nothing;
    State *state = self->state;
    self->state = NULL;
    if (state != NULL) {
        pthread_mutex_lock(&state->mutex);
        state->is_closed = true;
        pthread_cond_broadcast(&state->is_wanted);
        leave(state);
    }
    Py_RETURN_NONE;
}

static void page_threads_dealloc(PageThreads *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(page_threads_close(self, NULL));
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static State *state_of(PageThreads *self)
{
    if (self->state == NULL)
        PyErr_SetString(PyExc_ValueError, "these threads have ended");
    return self->state;
}

static PyObject *page_threads_fileno(PageThreads *self, PyObject *nothing)
{
    (void)nothing;
    State *state = state_of(self);
    return state == NULL ? NULL : PyLong_FromLong(state->event);
}

static PyObject *page_threads_submit(PageThreads *self, PyObject *arguments)
{
    State *state = state_of(self);
    long long number, position, length;
    int descriptor, is_read;
    if (state == NULL || !PyArg_ParseTuple(arguments, "LpiLL", &number, &is_read, &descriptor, &position, &length))
        return NULL;
    Job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return PyErr_NoMemory();
    *job = (Job){.number = number, .position = position, .length = length, .is_read = is_read};
    /* The same open file, whose state of reading ahead goes on; nobody else closes it. */
    job->descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    int error = job->descriptor < 0 ? errno : 0;
    pthread_mutex_lock(&state->mutex);
    if (!error && state->waiting >= state->idle && state->threads < self->most_threads) {
        error = begin_thread(state);
        if (state->threads)
            error = 0;
    }
    if (!error) {
        put(&state->wanted, job);
        state->waiting++;
        pthread_cond_signal(&state->is_wanted);
    }
    pthread_mutex_unlock(&state->mutex);
    if (!error)
        Py_RETURN_NONE;
    if (job->descriptor >= 0)
        close(job->descriptor);
    free(job);
    return failed(error);
}

static PyObject *page_threads_take(PageThreads *self, PyObject *nothing)
{
    (void)nothing;
    State *state = state_of(self);
    PyObject *taken = state == NULL ? NULL : PyList_New(0);
    if (taken == NULL)
        return NULL;
    uint64_t count;
    pthread_mutex_lock(&state->mutex);
    (void)!read(state->event, &count, sizeof count);
    Jobs done = state->done;
    state->done.first = NULL;
    pthread_mutex_unlock(&state->mutex);
    for (Job *job; (job = pop(&done)) != NULL; free(job)) {
        PyObject *pair = taken == NULL ? NULL : Py_BuildValue("(Li)", job->number, job->error);
        if (taken != NULL && (pair == NULL || PyList_Append(taken, pair) < 0))
            Py_CLEAR(taken);
        Py_XDECREF(pair);
    }
    return taken;
}

static PyMethodDef page_threads_methods[] = {
    {"fileno", (PyCFunction)page_threads_fileno, METH_NOARGS, NULL},
    {"submit", (PyCFunction)page_threads_submit, METH_VARARGS, NULL},
    {"take", (PyCFunction)page_threads_take, METH_NOARGS, NULL},
    {"close", (PyCFunction)page_threads_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot page_threads_slots[] = {
    {Py_tp_new, page_threads_new},
    {Py_tp_dealloc, page_threads_dealloc},
    {Py_tp_methods, page_threads_methods},
    {0, NULL},
};

static PyType_Spec page_threads_spec = {
    .name = "wirebroker.net.pages._page_threads.PageThreads",
    .basicsize = sizeof(PageThreads),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = page_threads_slots,
};

static int add_type(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&page_threads_spec);
    int status = type == NULL ? -1 : PyModule_AddObjectRef(module, "PageThreads", type);
    Py_XDECREF(type);
    return status;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_type}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "wirebroker.net.pages._page_threads", .m_slots = slots,
};

PyMODINIT_FUNC PyInit__page_threads(void) { return PyModuleDef_Init(&definition); }
