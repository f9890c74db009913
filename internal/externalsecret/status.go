package externalsecret

import (
	"cmp"
	"fmt"
	"time"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
)

// Status describes the target of an ExternalSecret and the result of its last sync.
type Status struct {
	Target events.Source // the written Secret or ConfigMap; zero for any other kind, and if nothing is written
	// SyncedVersion is status.syncedResourceVersion. It changes with each sync after a change of the object. Empty before the first sync.
	SyncedVersion string
	RefreshTime   time.Time // when the last sync began, by the operator's clock, in whole seconds
	// Ready and Failed say that the condition Ready is true or false. Neither is set while the condition is unknown or missing.
	Ready, Failed bool
	Reason        string // the reason of the condition Ready
	// GivenUp is why the operator cannot write and will not retry before the target changes. Empty if it retries or has written.
	GivenUp Obstacle
}

// Untried reports whether the operator has not tried to sync the ExternalSecret, perhaps because its store belongs to another controller.
func (s *Status) Untried() bool { return s.SyncedVersion == "" && !s.Ready && !s.Failed }

// LacksTarget reports whether the last sync found no Secret to merge with. The operator counts that as synced.
func (s *Status) LacksTarget() bool {
	return s.Ready && (s.Reason == esv1.ConditionReasonSecretMissing || s.Reason == esv1.ConditionReasonResourceMissing)
}

// DeletedTarget reports whether the last sync found nothing in the store, and therefore deleted the written object.
func (s *Status) DeletedTarget() bool {
	return s.Ready && (s.Reason == esv1.ConditionReasonSecretDeleted || s.Reason == esv1.ConditionReasonResourceDeleted)
}

// Obstacle is the reason why an ExternalSecret must not be synced now, as in outcomes. It is empty if there is none.
type Obstacle string

// The obstacles.
const (
	CreatedOnce Obstacle = "created-once"        // a refreshPolicy with which the operator never syncs again
	NoInterval  Obstacle = "no-refresh-interval" // a refreshInterval of zero, with which the operator never syncs again, either
	Generates   Obstacle = "generator"           // an entry with a new value at every sync, such as a generated password or a lease
	NoTarget    Obstacle = "no-target"           // a creationPolicy with which the operator writes nothing
	Immutable   Obstacle = "immutable-target"    // an existing immutable Secret
	Owned       Obstacle = "owned-target"        // a Secret with another owner
)

// givenUp maps messages of the condition Ready to obstacles. They are fixed texts of the operator, so nothing from a store is kept.
var givenUp = map[string]Obstacle{
	"could not update secret, target is immutable": Immutable,
	"target is owned by another ExternalSecret":    Owned,
	"failed to take ownership of target secret":    Owned,
}

// statusParts are the parts of Status in the object. Nothing else is decoded, as it may have a newer field than the types.
type statusParts struct {
	Spec struct {
		Target esv1.ExternalSecretTarget `json:"target"`
	} `json:"spec"`
	Status esv1.ExternalSecretStatus `json:"status"`
}

// ReadStatus reads the status of an ExternalSecret, and ignores the rest of the object.
func ReadStatus(obj *unstructured.Unstructured) (Status, error) {
	var parts statusParts
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &parts); err != nil {
		return Status{}, fmt.Errorf("decoding the status: %w", err)
	}
	return newStatus(obj.GetNamespace(), obj.GetName(), &parts.Spec.Target, &parts.Status), nil
}

// newStatus omits the message of the condition, which may quote the store's response.
func newStatus(namespace, name string, target *esv1.ExternalSecretTarget, status *esv1.ExternalSecretStatus) Status {
	s := Status{
		Target:        targetOf(namespace, name, target, status.Binding.Name),
		SyncedVersion: status.SyncedResourceVersion, RefreshTime: status.RefreshTime.Time,
	}
	for _, condition := range status.Conditions {
		if condition.Type == esv1.ExternalSecretReady {
			s.Ready, s.Failed = condition.Status == corev1.ConditionTrue, condition.Status == corev1.ConditionFalse
			s.Reason = condition.Reason
			if s.Failed {
				s.GivenUp = givenUp[condition.Message]
			}
		}
	}
	return s
}

// targetOf returns what the ExternalSecret with the given name writes. Bound is the Secret that the operator last wrote.
func targetOf(namespace, name string, target *esv1.ExternalSecretTarget, bound string) events.Source {
	written := events.Source{Kind: events.KindSecret, Namespace: namespace, Name: cmp.Or(target.Name, name)}
	switch manifest := target.Manifest; {
	case target.CreationPolicy == esv1.CreatePolicyNone:
		return events.Source{}
	case manifest == nil && bound != "":
		written.Name = bound
	case manifest == nil, manifest.APIVersion == "v1" && manifest.Kind == "Secret":
	case manifest.APIVersion == "v1" && manifest.Kind == "ConfigMap":
		written.Kind = events.KindConfigMap
	default:
		return events.Source{}
	}
	return written
}
