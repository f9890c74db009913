package workload

import (
	"crypto/sha256"

	corev1 "k8s.io/api/core/v1"
)

// After copies to w what is known from having seen an earlier state of the same workload, and returns w. Exact means that w is the result
// of one write.
func (w *Workload) After(earlier *Workload, exact bool) *Workload {
	switch {
	case earlier != nil && earlier.ID.UID == w.ID.UID && earlier.template == w.template:
		w.TemplateVersion = earlier.TemplateVersion
		if w.ServingSince != "" && earlier.ServingSince != "" {
			w.ServingSince = earlier.ServingSince
		}
	case exact:
		w.TemplateVersion = w.Version
	}
	return w
}

// digest returns what differs when pod templates differ.
func digest(template *corev1.PodTemplateSpec) [sha256.Size]byte {
	// The encoding of the API is deterministic, and cannot fail for a template that was decoded.
	encoded, err := template.Marshal()
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(encoded)
}
