// Package secretstore runs a real secret store for tests: Vault, or the OpenBao that BAO_BIN names.
package secretstore
