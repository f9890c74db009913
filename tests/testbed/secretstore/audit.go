package secretstore

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/vault/api"
)

// AuditSocket enables an audit device that writes its lines to an address, with the network "tcp" or "unix". Something must
// already listen there. While nothing does, and no other device accepts a line, the store refuses every request.
func (s *Store) AuditSocket(ctx context.Context, name, network, address string) error {
	return s.enableAudit(ctx, name, "socket", map[string]string{"socket_type": network, "address": address})
}

// AuditToFile enables an audit device "file", which writes its lines to [Store.AuditFile].
func (s *Store) AuditToFile(ctx context.Context) error {
	const name = "file"
	return s.enableAudit(ctx, name, "file", map[string]string{"file_path": s.AuditFile(name)})
}

// AuditFile returns the path of the file that the audit device of that name writes to.
func (s *Store) AuditFile(name string) string { return filepath.Join(s.dir, "audit-"+name+".log") }

func (s *Store) enableAudit(ctx context.Context, name, kind string, options map[string]string) error {
	err := s.client.Sys().EnableAuditWithOptionsWithContext(ctx, name, &api.EnableAuditOptions{Type: kind, Options: options})
	if err != nil {
		return fmt.Errorf("enable the %s audit device %s: %w", kind, name, err)
	}
	return nil
}

// DisableAudit disables an audit device that was enabled through the API.
func (s *Store) DisableAudit(ctx context.Context, name string) error {
	if err := s.client.Sys().DisableAuditWithContext(ctx, name); err != nil {
		return fmt.Errorf("disable the audit device %s: %w", name, err)
	}
	return nil
}

// AuditTraceparent adds the header traceparent of requests to the audit log, unhashed. By default, the log has no headers.
func (s *Store) AuditTraceparent(ctx context.Context) error {
	const path = "sys/config/auditing/request-headers/traceparent"
	if _, err := s.client.Logical().WriteWithContext(ctx, path, map[string]any{"hmac": false}); err != nil {
		return fmt.Errorf("audit the header traceparent: %w", err)
	}
	return nil
}
