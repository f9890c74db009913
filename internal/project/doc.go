// Package project copies keys of Secrets into fields of custom resources that have no reference to a Secret, and keeps them equal.
//
// A resource says what it wants in the annotation keyturn.dev/project. A file says what it may have: the kinds, their fields, and the Secrets, by
// name. A Secret is read with get when a resource that names it is due, and never listed or watched: a change is known from its event on
// CHANGES, and otherwise at the start and at each resync.
//
// All fields of a resource are applied in one request, server-side, by the field manager keyturn-projector, and never by force. If one of them
// cannot be had, none is applied: a field that an applier leaves out is removed.
//
// No value is kept, logged or published. The index has a keyed digest of the fields, under a key that lives as long as the process. What the
// API server says to a request may quote the value, and so nothing of it is repeated but the reason, the code and the names of our own fields.
package project
