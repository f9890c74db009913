package kinds

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// mountedPod is a pod's status, as the driver writes it. Without a version, none of its objects has one.
type mountedPod struct {
	uid, version                string
	generation, resourceVersion int
}

// status returns the SecretProviderClassPodStatus of the pod.
func (p mountedPod) status(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	first, second := canary, canary+p.version
	if p.version == "" {
		first, second = "", ""
	}
	status := customOf(t, `{"apiVersion": "secrets-store.csi.x-k8s.io/v1", "kind": "SecretProviderClassPodStatus",
		"metadata": {"namespace": "shop", "name": "`+name+`-shop-db", "uid": "s-`+name+`", "resourceVersion": "`+strconv.Itoa(p.resourceVersion)+`",
			"labels": {"internal.secrets-store.csi.k8s.io/node-name": "`+canary+`"},
			"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "`+name+`", "uid": "`+p.uid+`"}]},
		"status": {"podName": "`+name+`", "secretProviderClassName": "db", "mounted": true, "targetPath": "/`+canary+`",
			"objects": [{"id": "a", "version": "`+first+`"}, {"id": "b", "version": "`+second+`"}]}}`)
	status.SetGeneration(int64(p.generation))
	return status
}

// classPlay acts out what happens to the pods of a class.
type classPlay struct {
	testing.TB
	ring     *Keyring
	version  int
	class    *Object
	pods     map[string]mountedPod
	seen     map[string]*Object
	contents *PodContents
	before   *LastEvent
	names    map[string]string
}

var classOfPlay = events.Source{Kind: events.KindSecretProviderClass, Namespace: "shop", Name: "db"}

func newClassPlay(t testing.TB) *classPlay {
	p := &classPlay{TB: t, ring: keyringOf(1), pods: map[string]mountedPod{}, names: map[string]string{}}
	p.do("class back")
	p.do("restart")
	return p
}

// do does one thing: "+a v1" starts a pod, "a v2" gives it other versions and "a " none, "-a" ends it, "a=v2" is a new pod of that name for which the
// driver reuses the status, "touch a" writes metadata, "class gone" and "class back" delete and recreate the class, "restart" restarts the watcher,
// and "new key" and "lost key" change the key file. What follows "away:" is done while no watcher runs.
func (p *classPlay) do(action string) {
	p.Helper()
	p.version++
	text, away := strings.CutPrefix(action, "away: ")
	verb, rest, _ := strings.Cut(text, " ")
	switch {
	case text == "restart":
		p.contents, p.seen = NewPodContents(), map[string]*Object{}
		for name := range p.pods {
			p.see(name)
		}
		return
	case text == "class gone":
		p.class = nil
	case text == "class back":
		p.class = &Object{Source: classOfPlay, UID: types.UID("c" + strconv.Itoa(p.version)), ResourceVersion: strconv.Itoa(p.version)}
	case text == "new key":
		p.ring = keyringOf(2, 1)
	case text == "lost key":
		p.ring = keyringOf(3)
	case verb == "touch":
		p.write(rest, func(*mountedPod) {}, away)
	case verb[0] == '+':
		p.pods[verb[1:]] = mountedPod{uid: "p" + strconv.Itoa(p.version), version: rest}
		p.write(verb[1:], func(pod *mountedPod) { pod.generation = 1 }, away)
	case verb[0] == '-':
		delete(p.pods, verb[1:])
		if !away {
			p.contents.Removed(p.seen[verb[1:]])
			delete(p.seen, verb[1:])
		}
	case strings.Contains(verb, "="):
		name, version, _ := strings.Cut(verb, "=")
		p.write(name, func(pod *mountedPod) {
			pod.uid, pod.version, pod.generation = "p"+strconv.Itoa(p.version), version, pod.generation+1
		}, away)
	default:
		p.write(verb, func(pod *mountedPod) { pod.version, pod.generation = rest, pod.generation+1 }, away)
	}
}

func (p *classPlay) write(name string, change func(*mountedPod), away bool) {
	pod := p.pods[name]
	change(&pod)
	pod.resourceVersion = p.version
	p.pods[name] = pod
	if !away {
		p.see(name)
	}
}

// see hands the status of a pod to the watcher, as its informer does.
func (p *classPlay) see(name string) {
	now := newPodStatus(p.ring, p.pods[name].status(p, name))
	for _, under := range now.fingerprints {
		p.names[under.all.Text(under.keyID)] = p.pods[name].version
	}
	if before := p.seen[name]; before != nil {
		p.contents.Updated(before, now)
	} else {
		p.contents.Added(now)
	}
	p.seen[name] = now
}

// told publishes the event, if there is one, and returns it as text: "changed v2 of v1,v2".
func (p *classPlay) told() string {
	p.Helper()
	var all []string
	for range 3 {
		objects := slices.Collect(maps.Values(p.seen))
		if p.class != nil {
			objects = append(objects, p.class)
		}
		v := View{Cached: cacheOf(objects...), Contents: p.contents}
		change, ok := secretProviderClassKind{}.Assess(v, p.before, State{Now: p.class})
		if !ok {
			return strings.Join(all, ", then ")
		}
		change.Source = classOfPlay
		var recent []string
		for _, one := range change.Recent {
			recent = append(recent, p.names[one])
		}
		all = append(all, string(change.Verb)+" "+p.names[change.Fingerprint]+" of "+strings.Join(recent, ","))
		if (change.Verb == events.VerbChanged) != (change.ChangedAt == change.ResourceVersion) {
			p.Errorf("%s has changed at %q, and is of %s", change.Verb, change.ChangedAt, change.ResourceVersion)
		}
		p.before = mustLast(p, change)
	}
	return strings.Join(all, ", then ") + ", and so on"
}

func TestCompareSecretProviderClasses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps []string
	}{
		{"a class without pods is nothing, with the first one it is observed", []string{
			"class back", "+a v1 => observed v1 of v1", "+b v1",
		}},
		{"of pods that get other versions one after the other, the first makes a change", []string{
			"+a v1 => observed v1 of v1", "+b v1", "+c v1",
			"a v2 => changed v2 of v1,v2", "b v2", "c v2",
			"a v3 => changed v3 of v1,v2,v3", "b v3", "c v3",
		}},
		{"a pod that lags behind the others makes none", []string{
			"+a v1 => observed v1 of v1", "+b v1",
			"a v2 => changed v2 of v1,v2", "a v3 => changed v3 of v1,v2,v3", "b v2", "b v3",
		}},
		{"what goes back to what it was has changed, and so has what goes forth again", []string{
			"+a v1 => observed v1 of v1", "+b v1", "+c v1",
			"a v2 => changed v2 of v1,v2", "b v2",
			"a v1 => changed v1 of v2,v1", "b v1",
			"c v2 => changed v2 of v1,v2", "b v2", "a v2",
		}},
		{"a pod without versions has what it had", []string{
			"+a v1 => observed v1 of v1", "+b v1", "a ", "a v1", "b ", "touch b", "b v2 => changed v2 of v1,v2", "a ", "a v2",
		}},
		{"a pod that starts without versions has what others have had, or something else", []string{
			"+a v1 => observed v1 of v1", "+b ", "b v1", "+c ", "c v2 => changed v2 of v1,v2", "b ", "restart", "b v1", "b v2",
		}},
		{"pods that never have versions are nothing", []string{"+a ", "+b ", "a "}},
		{"one that mid-way is seen for the first time has changed before", []string{
			"away: +a v1", "away: +b v1", "away: a v2", "restart => observed v2 of v2", "b v2",
		}},
		{"a restart makes none", []string{
			"+a v1 => observed v1 of v1", "+b v1", "a v2 => changed v2 of v1,v2", "+c own", "restart", "b v2", "restart", "touch c", "restart",
		}},
		{"a change while nobody watched is found", []string{
			"+a v1 => observed v1 of v1", "+b v1", "away: a v2", "restart => changed v2 of v1,v2", "b v2", "restart",
		}},
		{"one that has gone back while nobody watched is not told from one that lags behind", []string{
			"+a v1 => observed v1 of v1", "a v2 => changed v2 of v1,v2", "away: a v1", "restart",
		}},
		{"two changes at once are one, with the later content", []string{
			"+a v1 => observed v1 of v1", "+b v1", "away: a v2", "away: b v3", "restart => changed v3 of v1,v2,v3", "a v3",
		}},
		{"a class that is gone was deleted, once", []string{
			"+a v1 => observed v1 of v1", "class gone => deleted v1 of v1", "touch a",
			"class back => observed v1 of v1", "touch a", "a v2 => changed v2 of v1,v2",
		}},
		{"a key that was added changes nothing, and carries over what pods have", []string{
			"+a v1 => observed v1 of v1", "+b v1", "a v2 => changed v2 of v1,v2",
			"new key", "restart", "a v3 => changed v3 of v1,v2,v3", "b v2", "b v3",
		}},
		{"after a key was removed, only what happens from then on counts", []string{
			"+a v1 => observed v1 of v1", "a v2 => changed v2 of v1,v2", "lost key", "away: a v3", "restart", "a v4 => changed v4 of v4",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newClassPlay(t)
			for i, step := range tt.steps {
				action, want, _ := strings.Cut(step, " => ")
				p.do(action)
				if strings.HasPrefix(action, "away: ") {
					continue
				}
				if got := p.told(); got != want {
					t.Fatalf("step %d, %s: event %q\n want %q", i, action, got, want)
				}
			}
		})
	}
}

func TestAnEventHasTheLastContentsOnly(t *testing.T) {
	p := newClassPlay(t)
	p.do("+a v0")
	p.do("+b v0")
	p.told()
	var want []string
	for i := range 2 * events.MaxRecent {
		p.do("a v" + strconv.Itoa(i+1))
		p.told()
		want = append(want, "v"+strconv.Itoa(i+1))
	}
	p.do("a last")
	want = append(want, "last")
	got := p.told()
	if want := "changed last of " + strings.Join(want[len(want)-events.MaxRecent:], ","); got != want {
		t.Errorf("event %q, want %q", got, want)
	}
}

func TestAnotherWatcherThatHasSeenMoreIsRight(t *testing.T) {
	p := newClassPlay(t)
	p.do("+a v1")
	p.told()
	p.do("a v2")
	// The other watcher has seen only the end.
	p.before = mustLast(t, events.Change{
		Verb: events.VerbChanged, Source: classOfPlay, UID: string(p.class.UID), ResourceVersion: strconv.Itoa(p.version + 1),
		Fingerprint: sum{1}.Text(p.before.KeyID()), Truncated: true, Recent: []string{p.before.Fingerprint(), sum{1}.Text(p.before.KeyID())},
	})
	if got := p.told(); got != "" {
		t.Errorf("event %q, want none", got)
	}
}
