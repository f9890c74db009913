package externalsecret

import esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"

// Obstacle is the reason why an ExternalSecret must not be asked to sync now.
type Obstacle int

// The obstacles.
const (
	// NoObstacle means that the ExternalSecret can be asked to sync.
	NoObstacle Obstacle = iota
	// CreatedOnce is a refreshPolicy with which the operator never syncs again.
	CreatedOnce
	// NoInterval is a refreshInterval of zero, with which the operator never syncs again either.
	NoInterval
	// Generates is an entry with a new value at every sync, such as a generated password or a lease.
	Generates
)

// Obstacle returns the reason why the ExternalSecret must not be asked to sync now. The refresh policy is no obstacle before
// the first sync, which is about to happen anyway.
func (es *ExternalSecret) Obstacle() Obstacle {
	synced := es.SyncedVersion != ""
	switch {
	case es.generates:
		return Generates
	case synced && es.policy == esv1.RefreshPolicyCreatedOnce:
		return CreatedOnce
	case synced && es.noInterval && es.policy != esv1.RefreshPolicyOnChange:
		return NoInterval
	}
	return NoObstacle
}
