package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
)

// The number of objects at scale 1.
const (
	allNamespaces   = 10
	allDeployments  = 1000
	allBystanders   = 20_000
	bystanderSize   = 10_000
	sharedSecret    = "shared"
	writersAtOnce   = 32
	annotationOptIn = "keyturn.dev/roll-on"
	// annotationRecord is the annotation that Keyturn writes on a Deployment that has opted in.
	annotationRecord = "keyturn.dev/rolled"
)

// cluster is the content of the control plane. Deployment i is in namespace i modulo 10 and reads its own Secret; those of the
// first namespace also share one.
type cluster struct {
	client      kubernetes.Interface
	deployments int
	perSpace    int
	// bystanders is the number of Secrets that no workload reads, and bystanderSize their size in bytes.
	bystanders, bystanderSize int
	// secretSize is how many bytes each Secret has beside its password.
	secretSize int
}

func newCluster(scale float64) *cluster {
	return clusterOf(scale, allDeployments, allBystanders, bystanderSize)
}

// clusterOf returns a cluster of the given scale. The numbers are those at scale 1.
func clusterOf(scale, deployments, bystanders float64, bystanderSize int) *cluster {
	perSpace := max(1, int(math.Round(scale*deployments/allNamespaces)))
	return &cluster{
		perSpace: perSpace, deployments: perSpace * allNamespaces,
		bystanders: max(1, int(math.Round(scale*bystanders))), bystanderSize: bystanderSize,
	}
}

func namespaceOf(i int) string { return "bench-" + strconv.Itoa(i%allNamespaces) }

// number returns the number of Deployment i, for the names of its objects.
func number(i int) string { return fmt.Sprintf("%05d", i) }

func deploymentName(i int) string { return "app-" + number(i) }

// secretName returns the name of a Secret of a contender.
func secretName(contender, what string) string { return contender + "-" + what }

// fill creates the namespaces, the Secrets of both contenders and the Deployments.
func (c *cluster) fill(ctx context.Context) error {
	for i := range allNamespaces {
		space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)}}
		if _, err := c.client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making namespace %s: %w", space.Name, err)
		}
	}
	for _, contender := range []string{contenderFloor, contenderKeyturn} {
		if err := c.createSecret(ctx, namespaceOf(0), contender, sharedSecret); err != nil {
			return err
		}
		err := inParallel(ctx, c.deployments, func(ctx context.Context, i int) error {
			return c.createSecret(ctx, namespaceOf(i), contender, number(i))
		})
		if err != nil {
			return err
		}
	}
	return inParallel(ctx, c.deployments, func(ctx context.Context, i int) error {
		deployment := programs.NewDeployment(namespaceOf(i), deploymentName(i), 0, map[string]string{annotationOptIn: "auto"})
		// Each roll leaves a ReplicaSet. With ten for each Deployment, the control plane would get slower from round to
		// round.
		deployment.Spec.RevisionHistoryLimit = new(int32(1))
		programs.ReadSecret(&deployment.Spec.Template, secretName(contenderKeyturn, number(i)))
		if i%allNamespaces == 0 {
			programs.ReadSecret(&deployment.Spec.Template, secretName(contenderKeyturn, sharedSecret))
		}
		if _, err := c.client.AppsV1().Deployments(deployment.Namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making deployment %s: %w", deployment.Name, err)
		}
		return nil
	})
}

func (c *cluster) secret(namespace, contender, what string) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: secretName(contender, what), Labels: map[string]string{contenderLabel: contender},
		},
		StringData: map[string]string{"password": rand.Text(), "user": "app"},
	}
	if c.secretSize > 0 {
		secret.StringData["certificate"] = strings.Repeat("x", c.secretSize)
	}
	return secret
}

func (c *cluster) createSecret(ctx context.Context, namespace, contender, what string) error {
	secret := c.secret(namespace, contender, what)
	if _, err := c.client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making secret %s: %w", secret.Name, err)
	}
	return nil
}

// change changes the password in a Secret of a contender.
func (c *cluster) change(ctx context.Context, namespace, contender, what string) error {
	secret := c.secret(namespace, contender, what)
	if _, err := c.client.CoreV1().Secrets(namespace).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("changing secret %s: %w", secret.Name, err)
	}
	return nil
}

// addBystanders creates many large Secrets that no workload reads.
func (c *cluster) addBystanders(ctx context.Context) error {
	return inParallel(ctx, c.bystanders, func(ctx context.Context, i int) error {
		value := make([]byte, c.bystanderSize)
		if _, err := rand.Read(value); err != nil {
			return fmt.Errorf("making a value: %w", err)
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(i), Name: "bystander-" + number(i)},
			Data:       map[string][]byte{"value": value},
		}
		if _, err := c.client.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making secret %s: %w", secret.Name, err)
		}
		return nil
	})
}
