package secretstore

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

func (s *Store) configFile() string { return filepath.Join(s.dir, "server.json") }

// writeConfig writes the server's configuration. It is like "server -dev", but with the data on disk.
func (s *Store) writeConfig() error {
	type object = map[string]any
	config := object{
		"storage": object{"file": object{"path": filepath.Join(s.dir, "data")}},
		"listener": object{"tcp": object{
			"address": process.Address(s.port), "cluster_address": process.Address(s.cluster), "tls_disable": true,
		}},
		"api_addr": s.Address(),
	}
	if OpenBao() {
		// Since 2.3, audit devices cannot be enabled through the API unless the operator permits that.
		config["unsafe_allow_api_audit_creation"] = true
	} else {
		// OpenBao no longer has this setting. Few users have permission to lock memory.
		config["disable_mlock"] = true
	}
	if s.opts.AuditURL != "" {
		// Of several devices, one must accept each line. Without skip_test, the server would not unseal while nothing
		// listens.
		options := map[string]string{"uri": s.opts.AuditURL, "skip_test": "true"}
		if s.opts.AuditToken != "" {
			headers, err := json.Marshal(map[string][]string{"Authorization": {"Bearer " + s.opts.AuditToken}})
			if err != nil {
				return fmt.Errorf("configure the http audit device: %w", err)
			}
			options["headers"] = string(headers)
		}
		config["audit"] = []object{
			{"type": "file", "path": "declared-file", "options": object{"file_path": s.AuditFile("declared-file")}},
			{"type": "http", "path": "declared-http", "options": options},
		}
	}
	content, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("configure the server: %w", err)
	}
	if err := os.WriteFile(s.configFile(), content, 0o600); err != nil {
		return fmt.Errorf("configure the server: %w", err)
	}
	return nil
}
