package main

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit/manifests"
)

const (
	// mount is the path of the store's secrets engine.
	mount = manifests.Engine
	// secretKey is the only key of each secret in the store and of each Secret synced from it.
	secretKey = "password"
)

// storePaths are the secrets that the ExternalSecrets read, by name.
var storePaths = map[string]string{"db": "shop/db", "mail": "shop/mail", "license": "shop/license"}

// newReaders returns the Deployments: two that read the same Secret, and one for each of the others.
func newReaders() []*appsv1.Deployment {
	var deployments []*appsv1.Deployment
	for _, reader := range []struct {
		name     string
		replicas int32
		secret   string
	}{
		{"web", 3, "db"}, {"jobs", 2, "db"}, {"mailer", 2, "mail"}, {"legacy", 1, "license"}, {"gateway", 2, "gateway-tls"},
	} {
		deployment := programs.NewDeployment(namespace, reader.name, reader.replicas, optIn())
		programs.ReadSecret(&deployment.Spec.Template, reader.secret)
		deployments = append(deployments, deployment)
	}
	return deployments
}

func (s *stage) createAll(ctx context.Context, deployments []*appsv1.Deployment) error {
	for _, deployment := range deployments {
		if _, err := s.client.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// chainManifests returns the objects of External Secrets and cert-manager, for a store at an address with a token.
func chainManifests(address, token string) string {
	objects := []string{
		manifests.SecretStore{Namespace: namespace, Name: "main", Address: address, Token: token}.YAML(),
		manifests.SelfSigned(namespace, "self"),
		manifests.Certificate{Namespace: namespace, Name: "gateway", Secret: "gateway-tls", Issuer: "self"}.YAML(),
	}
	for _, name := range slices.Sorted(maps.Keys(storePaths)) {
		object := manifests.ExternalSecret{Namespace: namespace, Name: name, Store: "main", Path: storePaths[name], Property: secretKey}
		if name == "license" {
			object.Refresh = "refreshPolicy: CreatedOnce"
		}
		objects = append(objects, object.YAML())
	}
	return manifests.Join(objects...)
}
