package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a kubeconfig for a bearer token. It writes atomically, because parallel tests may write the file of the same
// account while programs read it.
func writeKubeconfig(path, server, caFile, user, token string) error {
	config := api.NewConfig()
	config.Clusters["testbed"] = &api.Cluster{Server: server, CertificateAuthority: caFile}
	config.AuthInfos[user] = &api.AuthInfo{Token: token}
	config.Contexts["testbed"] = &api.Context{Cluster: "testbed", AuthInfo: user}
	config.CurrentContext = "testbed"
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	// The file is readable only by its owner, because it has a token.
	f, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-*")
	if err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return nil
}
