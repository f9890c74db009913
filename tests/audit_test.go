package tests

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// auditEnd is the offset of the end of the audit log.
func auditEnd(t testing.TB) int64 {
	t.Helper()
	end, err := plane.AuditEnd()
	testkit.Must(t, err)
	return end
}

// auditSince returns what was written to the audit log since an offset.
func auditSince(t testing.TB, offset int64) []testbed.AuditEntry {
	t.Helper()
	entries, _, err := plane.AuditSince(offset)
	testkit.Must(t, err)
	return entries
}
