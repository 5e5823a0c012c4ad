/* Two calls for sockets that never block: socket_calls.py in a compiled build.
 *
 * The interpreter's own parse keywords, look at timeouts and give the GIL away, which costs more
 * than a small message does. These keep the GIL for up to SMALL_BYTES, some 10 us. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <sys/socket.h>

enum { SMALL_BYTES = 64 << 10 };

static int descriptor_of(PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "a descriptor and a buffer are needed");
        return -1;
    }
    return PyObject_AsFileDescriptor(arguments[0]);
}

static PyObject *result_of(Py_buffer *view, Py_ssize_t count)
{
    PyBuffer_Release(view); /* keeps errno */
    return count < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromSsize_t(count);
}

static PyObject *receive(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    Py_buffer view;
    int descriptor = descriptor_of(arguments, count);
    if (descriptor < 0 || PyObject_GetBuffer(arguments[1], &view, PyBUF_WRITABLE) < 0)
        return NULL;
    Py_ssize_t first = view.len < SMALL_BYTES ? view.len : SMALL_BYTES;
    Py_ssize_t done = recv(descriptor, view.buf, (size_t)first, MSG_DONTWAIT);
    if (done == SMALL_BYTES && view.len > done) {
        Py_ssize_t more;
        Py_BEGIN_ALLOW_THREADS
        more = recv(descriptor, (char *)view.buf + done, (size_t)(view.len - done), MSG_DONTWAIT);
        Py_END_ALLOW_THREADS
        if (more > 0) /* an end or a fault is told again, or as an end, by the next call */
            done += more;
    }
    return result_of(&view, done);
}

static PyObject *send_now(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    Py_buffer view;
    int descriptor = descriptor_of(arguments, count);
    if (descriptor < 0 || PyObject_GetBuffer(arguments[1], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    Py_ssize_t done;
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    if (view.len <= SMALL_BYTES) {
        done = send(descriptor, view.buf, (size_t)view.len, flags);
    } else {
        Py_BEGIN_ALLOW_THREADS
        done = send(descriptor, view.buf, (size_t)view.len, flags);
        Py_END_ALLOW_THREADS
    }
    return result_of(&view, done);
}

static PyMethodDef methods[] = {
    {"receive", (PyCFunction)(void (*)(void))receive, METH_FASTCALL, NULL},
    {"send", (PyCFunction)(void (*)(void))send_now, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "wirebroker.net.sockets._calls", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__calls(void) { return PyModuleDef_Init(&definition); }
