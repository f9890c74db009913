package workload

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// startsPage is the page size of lists of Jobs.
const startsPage = 500

// Starts is what the Jobs of one CronJob were started for, according to those that still exist. Jobs say so if nothing may be written on the
// CronJob.
type Starts struct {
	rolled map[string]RolledFor
	// revision is that of the newest Job, and created is when that was created.
	revision string
	created  metav1.Time
	// rolledNow is the recorded value of AnnotationRollNow on the newest Job that has one, and asked is when that Job was created.
	rolledNow string
	asked     metav1.Time
}

// ReadStarts returns what the Jobs in a namespace were started for, by the UID of their CronJob. An empty namespace means all namespaces.
func ReadStarts(ctx context.Context, c Clients, namespace string) (map[string]Starts, error) {
	found, options := make(map[string]Starts), metav1.ListOptions{Limit: startsPage}
	for {
		list, err := c.Typed.BatchV1().Jobs(namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing jobs: %w", err)
		}
		for i := range list.Items {
			addStart(found, &list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return found, nil
		}
	}
}

// addStart adds what a Job was started for.
func addStart(found map[string]Starts, job *batchv1.Job) {
	record := parseRolled(job.Annotations[annotationRolled])
	owner := metav1.GetControllerOfNoCopy(job)
	if len(record) == 0 || owner == nil || owner.Kind != cronJobs.Title {
		return
	}
	starts, earlier := found[string(owner.UID)]
	if !earlier {
		starts.rolled = make(map[string]RolledFor, len(record))
	}
	for source, change := range record {
		if last, known := starts.rolled[source]; !known || events.Newer(change.Version, last.Version) {
			starts.rolled[source] = change
		}
	}
	if !job.CreationTimestamp.Before(&starts.created) {
		starts.revision, starts.created = job.Annotations[annotationRevision], job.CreationTimestamp
	}
	if done := job.Annotations[annotationRolledNow]; done != "" && !job.CreationTimestamp.Before(&starts.asked) {
		starts.rolledNow, starts.asked = done, job.CreationTimestamp
	}
	found[string(owner.UID)] = starts
}
