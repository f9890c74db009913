package keys

import (
	"context"
	"errors"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// namespace fakes the Secrets of a namespace: their data, and the resourceVersion that an update must have.
type namespace struct {
	mu       sync.Mutex
	secrets  map[string]map[string]string
	versions map[string]int
	// broken is the name of a Secret that can be neither created nor read, and immutable of one that cannot be updated.
	broken, immutable string
	// created has the type of each Secret that was created.
	created map[string]corev1.SecretType
	// meanwhile is called before a Secret is written, as if by another run.
	meanwhile func(name string)
}

var errBroken = errors.New("etcd is away")

var secretsResource = schema.GroupResource{Resource: "secrets"}

func (n *namespace) interrupt(name string) {
	if meanwhile := n.meanwhile; meanwhile != nil {
		n.meanwhile = nil
		meanwhile(name)
	}
}

// set writes a Secret, as an administrator can.
func (n *namespace) set(name string, data map[string]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.store(name, data)
}

func (n *namespace) store(name string, data map[string]string) {
	if n.versions == nil {
		n.versions, n.created = map[string]int{}, map[string]corev1.SecretType{}
	}
	n.secrets[name] = data
	n.versions[name]++
}

func (n *namespace) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	n.interrupt(secret.Name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if secret.Name == n.broken {
		return nil, errBroken
	}
	if _, ok := n.secrets[secret.Name]; ok {
		return nil, apierrors.NewAlreadyExists(secretsResource, secret.Name)
	}
	n.store(secret.Name, secret.StringData)
	n.created[secret.Name] = secret.Type
	return secret, nil
}

func (n *namespace) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name == n.broken {
		return nil, errBroken
	}
	data, ok := n.secrets[name]
	if !ok {
		return nil, apierrors.NewNotFound(secretsResource, name)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(n.versions[name])}, Data: map[string][]byte{},
		Immutable: new(name == n.immutable),
	}
	for file, content := range data {
		secret.Data[file] = []byte(content)
	}
	return secret, nil
}

func (n *namespace) Update(_ context.Context, secret *corev1.Secret, _ metav1.UpdateOptions) (*corev1.Secret, error) {
	n.interrupt(secret.Name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.secrets[secret.Name]; !ok {
		return nil, apierrors.NewNotFound(secretsResource, secret.Name)
	}
	if secret.ResourceVersion != strconv.Itoa(n.versions[secret.Name]) {
		return nil, apierrors.NewConflict(secretsResource, secret.Name, errors.New("the object has been modified"))
	}
	data := map[string]string{}
	for file, content := range secret.Data {
		data[file] = string(content)
	}
	n.store(secret.Name, data)
	return secret, nil
}
