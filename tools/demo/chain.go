package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/secretstore"
)

// storeRights are the manifests of the permissions beyond rbac.
var storeRights = []string{"deploy/components/secret-stores/watcher.yaml", "deploy/components/secret-stores/actuator.yaml"}

// chain connects a secret store, and a certificate authority, to the Secrets of the namespace.
type chain struct {
	store *secretstore.Store
	// listen is the address at which the watcher receives the store's audit.
	listen string
	custom dynamic.Interface
	syncs  *syncs
	// last is what was written to the store last.
	last written
	// asked is when cert-manager was asked to renew the certificate.
	asked time.Time
}

// setChain sets the stage for [chainScenario].
func setChain(ctx context.Context, s *stage, out *report) error {
	if err := s.build(ctx, out); err != nil {
		return err
	}
	custom, err := dynamic.NewForConfig(s.plane.Config())
	if err != nil {
		return err
	}
	s.chain = &chain{custom: custom}
	if err := s.startOperators(ctx, out); err != nil {
		return err
	}
	if err := s.startStore(ctx, out); err != nil {
		return err
	}
	if err := s.applyChain(ctx); err != nil {
		return err
	}
	out.did("%s synced, one of them once and the others hourly, and a certificate issued", plural(len(storePaths), "ExternalSecret"))
	readers := newReaders()
	if err := s.open(ctx, len(readers), func(ctx context.Context) error { return s.createAll(ctx, readers) }); err != nil {
		return err
	}
	out.did("namespace %s: %s, all pods ready", namespace, plural(len(readers), "Deployment"))
	if err := s.plane.ApplyKinds(ctx, testbed.RBACKinds(), storeRights...); err != nil {
		return err
	}
	options, err := s.chainOptions()
	if err != nil {
		return err
	}
	further := []string{"certificate/gateway"}
	for name, path := range storePaths {
		further = append(further, "externalsecret/"+name, written{path: path}.source().String())
	}
	if err := s.run(ctx, out, options, further...); err != nil {
		return err
	}
	return s.feed(ctx, out)
}

func (s *stage) startOperators(ctx context.Context, out *report) error {
	if _, err := s.plane.StartExternalSecrets(ctx, 1); err != nil {
		return err
	}
	out.did("External Secrets Operator is running")
	if _, err := s.plane.StartCertManager(ctx); err != nil {
		return err
	}
	out.did("cert-manager is running")
	var stop func()
	var err error
	if s.chain.syncs, stop, err = observeSyncs(s.chain.custom); err != nil {
		return err
	}
	s.onStop(stop)
	return nil
}

// applyChain applies the manifests, and waits for the Secrets that the operators create.
func (s *stage) applyChain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if err := s.plane.ApplyYAML(ctx, strings.NewReader(chainManifests(s.chain.store.Address(), s.chain.store.Token()))); err != nil {
		return err
	}
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		secrets, err := s.client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range secrets.Items {
			// cert-manager keeps this one only while it issues.
			if secrets.Items[i].Labels["cert-manager.io/next-private-key"] == "true" {
				return false, nil
			}
		}
		issued, err := s.isIssued(ctx)
		return issued && len(s.chain.syncs.known()) == len(storePaths), err
	})
	if err != nil {
		return fmt.Errorf("waiting for the Secrets: %d of %d ExternalSecrets are synced: %w", len(s.chain.syncs.known()), len(storePaths), err)
	}
	return nil
}
