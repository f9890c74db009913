package testbed

import (
	"crypto/rand"
	"fmt"
	"os"

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
	// The file is readable only by its owner, because it has a token.
	next := path + "." + rand.Text()
	err := clientcmd.WriteToFile(*config, next)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return nil
}
