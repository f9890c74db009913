package externalsecret

import esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"

// Obstacle is why an ExternalSecret is not to be told to sync now.
type Obstacle int

// The obstacles.
const (
	// NoObstacle is none: it can be told.
	NoObstacle Obstacle = iota
	// CreatedOnce is a refreshPolicy by which the operator never syncs again.
	CreatedOnce
	// NoInterval is a refreshInterval of zero, with which the operator never syncs again either.
	NoInterval
	// Generates is an entry whose value is made afresh at every sync: a new password, another lease.
	Generates
)

// Obstacle says why the ExternalSecret is not to be told to sync now. One that was never synced is about to be, whatever
// its policy is.
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
