package secretstore

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/vault/api"
)

// fileDevice is the name of the device of AuditToFile.
const fileDevice = "file"

// AuditToFile enables an audit device "file", which writes its lines to [Store.AuditFile].
func (s *Store) AuditToFile(ctx context.Context) error {
	options := &api.EnableAuditOptions{Type: "file", Options: map[string]string{"file_path": s.AuditFile(fileDevice)}}
	if err := s.client.Sys().EnableAuditWithOptionsWithContext(ctx, fileDevice, options); err != nil {
		return fmt.Errorf("enable the file audit device: %w", err)
	}
	return nil
}

// AuditFile returns the path of the file that the audit device of that name writes to.
func (s *Store) AuditFile(name string) string { return filepath.Join(s.dir, "audit-"+name+".log") }

// AuditTraceparent adds the header traceparent of requests to the audit log, unhashed. By default, the log has no headers.
func (s *Store) AuditTraceparent(ctx context.Context) error {
	const path = "sys/config/auditing/request-headers/traceparent"
	if _, err := s.client.Logical().WriteWithContext(ctx, path, map[string]any{"hmac": false}); err != nil {
		return fmt.Errorf("audit the header traceparent: %w", err)
	}
	return nil
}
