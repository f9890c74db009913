package workload

import "testing"

func TestARecordTellsADeletionFromContent(t *testing.T) {
	content := RolledFor{Fingerprint: "k0a1b2c3d:00ff", Version: "100", UID: "uid", Scope: "*"}
	deleted := DeletedAfter(content)
	if content.IsDeleted() || !deleted.IsDeleted() {
		t.Errorf("%s is deleted: %t, and %s: %t", content, content.IsDeleted(), deleted, deleted.IsDeleted())
	}
	if !deleted.Differs(content) {
		t.Errorf("%s does not differ from %s", deleted, content)
	}
	read, err := parseRolledFor(deleted.String())
	if err != nil || read != deleted {
		t.Errorf("it is read back as %s: %v", read, err)
	}
}
