//go:build !race

package actuate_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/tests/testkit"
)

// These are how Kubernetes Events are written: one that comes alone at once, others after such a pause in which none comes. Then so many are written
// at once, and so many in each second after that. So many find a place in the queue.
const (
	noticePause = 250 * time.Millisecond
	noticeBurst = 10
	noticeRate  = 25
	noticeQueue = 4096
)

// So long may a rollout take until people are told of it, and so long until somebody looks at that, and until what is to be told then is.
const (
	slowRollout = time.Minute
	noticeLook  = 10 * time.Second
)

func TestAKubernetesEventSaysWhatIsTheMatter(t *testing.T) {
	const rolledForDB = "content-changed: rolled for secret/db (password)"
	for _, tt := range []struct {
		first, last string
		happens     func(*scene)
	}{
		{first: "web Normal RolloutCompleted ", last: rolledForDB, happens: dbChanges},
		{first: "web Normal Rolled ", last: rolledForDB, happens: func(s *scene) {
			s.stall("web")
			dbChanges(s)
			s.pass(slowRollout + noticeLook)
		}},
		{first: "web Warning RolloutFailed deadline-exceeded", last: "; " + rolledForDB, happens: func(s *scene) {
			s.stall("web")
			s.settled("secret/db", "password", "two")
			s.fail("web")
		}},
		{first: "web Warning NotRolled key-missing: ", last: plan.KeyMissing.Sentence(), happens: func(s *scene) { s.unset("secret/db", "password") }},
	} {
		playOf(t, tt.first, func(s *scene) {
			s.beginReading("secret/db#password")
			tt.happens(s)
			s.pass(noticeLook + 2*time.Second)
			written := s.kubernetesEvents()
			if len(written) != 1 || !strings.HasPrefix(textOf(written[0]), tt.first) || !strings.HasSuffix(written[0].Message, tt.last) {
				s.Errorf("written are %v, want %s... %s", written, tt.first, tt.last)
			}
		})
	}
}

func TestAKubernetesEventIsAboutTheWorkloadAndLeadsToTheTrace(t *testing.T) {
	play(t, func(s *scene) {
		s.instrument()
		s.workload("statefulset/db", auto, reads("secret/db"))
		s.begin("secret/db")
		s.stall("statefulset/db")
		s.set("secret/db", "password", "two")
		s.pass(2 * time.Minute)
		s.finish("statefulset/db")
		s.pass(10 * time.Second)
		outcomes, written := s.outcomesSoFar(), s.kubernetesEvents()
		if len(outcomes) != 2 || len(written) != 2 {
			s.Fatalf("there are %d outcomes and %d Kubernetes Events, want 2: it started, and completed late", len(outcomes), len(written))
		}
		for i, event := range written {
			about := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: namespace, Name: "db"}
			about.UID = metaOf(s.object("statefulset/db")).GetUID()
			testkit.WantEqual(s, "it is about", about, event.InvolvedObject)
			trace := outcomes[i].Trace.Parent
			if trace == "" || event.Annotations[events.AnnotationTraceparent] != trace || event.Namespace != namespace {
				s.Errorf("%s is in %s, with %v, want the trace %s", event.Reason, event.Namespace, event.Annotations, trace)
			}
		}
	})
}

// Each step lets time pass, and wants what is written by then.
func TestARolloutHasOneKubernetesEventUnlessItIsSlow(t *testing.T) {
	type step struct {
		happens func(*scene)
		notices []string
	}
	changes := func(s *scene) { s.settled("secret/db", "password", s.elapsed().String()) }
	slow := func(s *scene) { s.pass(slowRollout + noticeLook) }
	finishes := func(s *scene) { s.finish("web") }
	restarts := func(s *scene) { s.restart() }
	for _, tt := range []struct {
		name string
		// fast says that its pods are ready at once.
		fast  bool
		steps []step
	}{
		{"one that is complete", true, []step{{changes, []string{"web RolloutCompleted"}}, {slow, nil}}},
		{"one that is complete soon", false, []step{{changes, nil}, {finishes, []string{"web RolloutCompleted"}}, {slow, nil}}},
		{"one that is complete late", false, []step{
			{changes, nil}, {slow, []string{"web Rolled"}}, {slow, nil}, {finishes, []string{"web RolloutCompleted"}},
		}},
		{"one that fails soon", false, []step{{changes, nil}, {func(s *scene) { s.fail("web") }, []string{"web RolloutFailed"}}, {slow, nil}}},
		{"one that hangs", false, []step{
			{changes, nil},
			{slow, []string{"web Rolled"}},
			{func(s *scene) { s.pass(s.options.RolloutTimeout) }, []string{"web RolloutFailed"}},
			{finishes, nil},
		}},
		{"one that a later change supersedes soon", false, []step{
			{changes, nil}, {changes, nil}, {finishes, []string{"web RolloutCompleted"}}, {slow, nil},
		}},
		{"one that a later change supersedes late", false, []step{
			{changes, nil}, {slow, []string{"web Rolled"}}, {changes, nil}, {slow, []string{"web Rolled"}}, {finishes, []string{"web RolloutCompleted"}},
		}},
		{"one that somebody holds", true, []step{
			{func(s *scene) {
				s.edit("web", onHold)
				changes(s)
			}, []string{"web RolloutHeld"}},
			{func(s *scene) { s.edit("web", letGo) }, []string{"web RolloutCompleted"}},
		}},
		{"one that outlives its leader", false, []step{
			{changes, nil}, {restarts, nil}, {slow, []string{"web Rolled"}}, {finishes, []string{"web RolloutCompleted"}},
		}},
		{"one that outlives its leader when it is slow", false, []step{
			{changes, nil}, {slow, []string{"web Rolled"}}, {restarts, nil}, {slow, nil}, {finishes, []string{"web RolloutCompleted"}},
		}},
		{"one that ends while nobody leads", false, []step{
			{changes, nil},
			{func(s *scene) {
				s.running[0].stop()
				s.finish("web")
				s.start()
			}, []string{"web RolloutCompleted"}},
		}},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.beginWeb()
			s.wantNotices()
			if !tt.fast {
				s.stall("web")
			}
			for _, step := range tt.steps {
				step.happens(s)
				s.pass(noticeLook)
				s.wantNotices(step.notices...)
			}
			if lines := s.logged("writing a kubernetes event failed"); lines > 0 {
				s.Errorf("%d lines say that one could not be written", lines)
			}
		})
	}
}

// Two leaders write the same, and two workloads do not, whatever they are called.
func TestAKubernetesEventAboutARolloutHasANameOfItsOwn(t *testing.T) {
	play(t, func(s *scene) {
		long := strings.Repeat("a", 199) + "-" + strings.Repeat("b", 53)
		workloads := []string{"web", "statefulset/web", long, "statefulset/" + long}
		for _, name := range workloads {
			s.workload(name, auto, reads("secret/db"))
		}
		s.begin("secret/db")
		s.settled("secret/db", "password", "two")
		s.pass(10 * time.Second)
		names := map[string]bool{}
		for _, event := range s.kubernetesEvents() {
			names[event.Name] = true
			if problems := validation.IsDNS1123Subdomain(event.Name); len(problems) > 0 {
				s.Errorf("it is called %s: %v", event.Name, problems)
			}
		}
		if len(names) != len(workloads) {
			s.Errorf("their names are %v, want one for each of %v", names, workloads)
		}
	})
}

// annoy makes web have another invalid annotation, for which there is a Kubernetes Event, so many times at once.
func (s *scene) annoy(times int) {
	s.Helper()
	for i := range times {
		s.edit("web", annotated("keyturn.dev/wave", "x"+strconv.Itoa(i)+"-"+s.elapsed().String()))
		s.pass(0)
	}
}

// tries is how many Kubernetes Events were written so far.
func (s *scene) tries() int {
	s.Helper()
	return len(s.kubernetesEvents())
}

func TestKubernetesEventsAreWrittenNoFasterThanAllowed(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web")
		s.begin()
		s.intercept("create", "events", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("one that is refused holds up no other")
		})
		s.annoy(noticeBurst + 2*noticeRate)
		if got := s.tries(); got != 1 {
			s.Errorf("at once %d are written, want the one that needs no pause", got)
		}
		s.pass(noticePause)
		if got := s.tries(); got != 1+noticeBurst {
			s.Errorf("after the pause %d are written, want one and a burst of %d", got, noticeBurst)
		}
		s.pass(time.Second)
		if got := s.tries(); got != 1+noticeBurst+noticeRate {
			s.Errorf("in the next second %d are written, want %d", got-1-noticeBurst, noticeRate)
		}
	})
}

func TestWhatFindsNoPlaceIsDroppedAndCounted(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.workload("web")
		s.begin()
		s.annoy(2 + noticeQueue + 3) // One is written, one waits for its turn.
		seen.want("keyturn.kubernetes.events.dropped", "", "", 3)
		s.pass((noticeQueue + noticeRate) * time.Second / noticeRate)
		if got := s.tries(); got != 2+noticeQueue {
			s.Errorf("%d are written, want %d", got, 2+noticeQueue)
		}
	})
}
