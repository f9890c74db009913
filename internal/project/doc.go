// Package project copies keys of Secrets into fields of custom resources that cannot reference a Secret, and keeps the fields up to date.
//
// It is a separate program: the actuator must never read a Secret, and the watcher, which may read every one, must write nothing. A mutating webhook
// would see writes of the resource, but not those of the Secret. It has one replica and no election, because applying twice changes nothing.
//
// A resource requests values in the annotation keyturn.dev/project. A file lists the values that resources may have: the kinds, their fields, and the
// Secrets, by name. Otherwise, anyone who may annotate a resource could have any Secret copied that the program may read. A Secret is read with get
// when a resource that names it is processed, and never listed or watched. The projector learns of a change from its event on CHANGES, and otherwise
// at the start and at each resync.
//
// All fields of a resource are applied server-side in one request, with the field manager keyturn-projector and never by force: a merge patch would
// not show who owns a field, and two writers of one field are a mistake that somebody must fix. If the value of one field is not available, none is
// applied, because server-side apply removes a field that the request omits, which a kind that validates across fields, such as "user or token", may
// refuse.
//
// No value is kept, logged or published. The index has a keyed digest of the fields, whose key lives as long as the process. The API server's
// response to a request may quote the value, so only the reason, the code and the names of our own fields are taken from it.
package project
