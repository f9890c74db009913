package programs

import (
	"context"
	"crypto/sha1" //nolint:gosec // It is what Reloader writes.
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Reload is a roll as Stakater's Reloader 1.4 makes it.
type Reload struct {
	// Namespace and Workload say what is rolled: "deployment/web", "statefulset/web" or "daemonset/web". Its first container is called main.
	Namespace, Workload string
	// Kind and Name are those of the source, "SECRET" or "CONFIGMAP", and Data is what it has.
	Kind, Name string
	Data       map[string]string
	// Strategy is the value of --reload-strategy.
	Strategy string
}

// Send makes the roll.
func (r Reload) Send(ctx context.Context, client kubernetes.Interface) error {
	kind, name, _ := strings.Cut(r.Workload, "/")
	body, err := r.patch()
	if err != nil {
		return err
	}
	err = client.AppsV1().RESTClient().Patch(types.StrategicMergePatchType).Namespace(r.Namespace).Resource(kind+"s").Name(name).
		Param("fieldManager", "Reloader").Body(body).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("rolling %s as Reloader does: %w", r.Workload, err)
	}
	return nil
}

// patch returns a strategic merge patch without a resourceVersion.
func (r Reload) patch() ([]byte, error) {
	type object map[string]any
	if r.Strategy == "env-vars" {
		name := "STAKATER_" + strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper(r.Name)) + "_" + r.Kind
		return json.Marshal(object{"spec": object{"template": object{"spec": object{"containers": []object{
			{"name": "main", "env": []object{{"name": name, "value": r.hash()}}},
		}}}}})
	}
	marker, err := json.Marshal(struct {
		Type          string   `json:"type"`
		Name          string   `json:"name"`
		Namespace     string   `json:"namespace"`
		Hash          string   `json:"hash"`
		ContainerRefs []string `json:"containerRefs"`
		ObservedAt    int64    `json:"observedAt"`
	}{r.Kind, r.Name, r.Namespace, r.hash(), []string{"main"}, time.Now().Unix()})
	if err != nil {
		return nil, err
	}
	return json.Marshal(object{"spec": object{"template": object{"metadata": object{"annotations": object{
		"reloader.stakater.com/last-reloaded-from": string(marker),
	}}}}})
}

// hash returns the SHA-1 of the data.
func (r Reload) hash() string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(r.Data)) {
		pairs = append(pairs, key+"="+r.Data[key])
	}
	sum := sha1.Sum([]byte(strings.Join(pairs, ";"))) //nolint:gosec // It is what Reloader writes.
	return hex.EncodeToString(sum[:])
}
