package tests

import (
	"context"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// kubeEvents lists the Kubernetes Events of a reason on a Deployment.
func (r *rig) kubeEvents(deployment, reason string) []corev1.Event {
	r.Helper()
	list, err := r.client.CoreV1().Events(r.namespace).List(r.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Deployment,involvedObject.name=" + deployment + ",reason=" + reason,
	})
	testkit.Must(r, err)
	return list.Items
}

// explain returns the output of explain for a workload, without the parts that differ each time.
func (r *rig) explain(workload string) string {
	r.Helper()
	text := r.ask("explain", workload, "-n", r.namespace)
	for pattern, replacement := range map[string]string{
		regexp.QuoteMeta(r.namespace):          "NAMESPACE",
		`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`: "TIME",
		` \((in )?\d[0-9a-z]*( ago)?\)`:        "",
		`  +`:                                  "  ",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, replacement)
	}
	return text
}

func TestExplainSaysWhatAWorkloadDependsOnAndWhatWouldHappen(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.configMap("app", map[string]string{"level": "info", "other": "one"})
	web := r.reading("web", "db", 1, nil)
	programs.ReadConfigMapKey(&web.Spec.Template, "app", "level")
	programs.ReadConfigMap(&web.Spec.Template, "missing")
	web.Spec.Template.Spec.Containers[0].EnvFrom[1].ConfigMapRef.Optional = new(true)
	r.deploy(web)
	silent := r.reading("silent", "db", 1, nil)
	silent.Annotations = nil
	r.deploy(silent)
	r.deploy(programs.NewDeployment(r.namespace, "nothing", 1, map[string]string{"keyturn.dev/roll-on": "auto"}))
	r.installed(nil, nil)
	r.start()

	head := "deployment/web in namespace NAMESPACE of cluster demo\n\n"
	table := "SOURCE  READ  ASKED BY  LAST CHANGE  LAST ROLLED FOR  NOW\n"
	const idle = "Nothing is pending: it rolls at the next change.\n\n"
	const auto = "keyturn.dev/roll-on: auto"
	const unknown = "the stream has no event of the source: it does not exist, or the watcher leaves it out or cannot publish it"
	want := head + "It was never rolled.\n\n" + idle + table +
		"configmap/app  level  " + auto + "  never  -  skip (up-to-date): the source has not changed since it was first seen\n" +
		"configmap/missing  all keys  " + auto + "  -  -  skip (unknown): " + unknown + "\n" +
		"secret/db  all keys  " + auto + "  never  -  skip (up-to-date): the source has not changed since it was first seen\n"
	r.eventually("the sources are known", func(context.Context) bool {
		return strings.Count(r.explain("deployment/web"), "first seen") == 2
	})
	testkit.WantEqual(t, "before a change", want, r.explain("deployment/web"))

	r.secret("db", map[string]string{"password": "two"})
	r.outcomeOf("web", events.VerbCompleted)
	r.configMap("app", map[string]string{"level": "info", "other": "two"})
	want = head + "It was last rolled at TIME for secret/db: completed (rolled-out)\n\n" + idle + table +
		"configmap/app  level  " + auto + "  TIME  -  skip (keys-not-consumed): no key that the pods read has changed\n" +
		"configmap/missing  all keys  " + auto + "  -  -  skip (unknown): " + unknown + "\n" +
		"secret/db  all keys  " + auto + "  TIME  TIME  skip (up-to-date): the workload was rolled for this change, or for a later one\n"
	r.eventually("the change of the ConfigMap is known", func(context.Context) bool {
		return strings.Contains(r.explain("deployment/web"), "no key that the pods read has changed")
	})
	testkit.WantEqual(t, "after a change", want, r.explain("deployment/web"))

	want = "deployment/silent in namespace NAMESPACE of cluster demo\n\nIt was never rolled.\n\n" +
		"It asks for nothing: annotate it, for example with keyturn.dev/roll-on: auto\n"
	testkit.WantEqual(t, "of a workload that has no annotation", want, r.explain("deployment/silent"))
	r.installed(map[string]string{"KEYTURN_ROLL_ALL": "true"}, nil)
	all := r.ask("explain", "deployment/silent", "-n", r.namespace)
	if !strings.Contains(all, "secret/db") || !strings.Contains(all, "roll (content-changed): content that the pods read has changed") {
		t.Errorf("of the same by an actuator with --roll-all: got\n%s", all)
	}
	want = "deployment/nothing in namespace NAMESPACE of cluster demo\n\nIt was never rolled.\n\nIt depends on no source.\n"
	testkit.WantEqual(t, "of a workload that reads nothing", want, r.explain("deployment/nothing"))
	r.command("explain", "deployment/none", "-n", r.namespace).run(t).refused(t, "there is no deployment/none in namespace "+r.namespace)
	r.command("explain").run(t).refused(t, "accepts 1 arg(s), received 0")
}
