// Package project copies keys of Secrets into fields of custom resources that cannot reference a Secret, and keeps the fields up to date.
//
// It is a program of its own: the actuator must never read a Secret, and the watcher, which may read every one, must write nothing. A mutating
// webhook would see writes of the resource, and not those of the Secret. It is one replica without an election, because to apply twice changes
// nothing.
//
// A resource requests values in the annotation keyturn.dev/project. A file lists what resources may have: the kinds, their fields, and the Secrets,
// by name. Otherwise whoever may annotate a resource could have any Secret copied that the program may read. A Secret is read with get when a
// resource that names it is processed, and never listed or watched. The projector learns of a change from its event on CHANGES, and otherwise at the
// start and at each resync.
//
// All fields of a resource are applied server-side in one request, with the field manager keyturn-projector and never by force: a merge patch would
// not tell who owns a field, and two that write one field are a mistake that somebody must mend. If the value of one field is not available, none is
// applied, because server-side apply removes a field that the request leaves out, which a kind that validates across fields, such as "user or token",
// may refuse.
//
// No value is kept, logged or published. The index has a keyed digest of the fields, whose key lives as long as the process. The API server's
// answer to a request may quote the value. So nothing of it is repeated except the reason, the code and the names of our own fields.
package project
