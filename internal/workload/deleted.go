package workload

import "strings"

// deletedContent stands in a record for the fingerprint of a source that was deleted.
const deletedContent = "deleted"

// DeletedAfter returns the entry in the record of a source that was deleted after the change. It differs from the content of every change.
func DeletedAfter(change RolledFor) RolledFor {
	key, _, _ := strings.Cut(change.Fingerprint, ":")
	return RolledFor{Fingerprint: key + ":" + deletedContent, Version: change.Version, UID: change.UID}
}

// IsDeleted reports whether the workload was rolled because the source was deleted.
func (r RolledFor) IsDeleted() bool {
	_, content, _ := strings.Cut(r.Fingerprint, ":")
	return content == deletedContent
}
