package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// floorCommand is the command that makes this program the floor, in a process of its own.
	floorCommand = "floor"
	// floorReady is the line that the floor writes when its list is complete.
	floorReady = "the floor is ready"
	// floorWorkers is the maximum number of concurrent patches without -limit, the same as in the actuator for one namespace.
	floorWorkers = 16
	// floorAnnotation, on the pod template, is the Secret's resourceVersion. Under the actuator's admission policy, the floor uses one that
	// Keyturn writes but does not read.
	floorAnnotation         = "bench.example.com/secret"
	confinedFloorAnnotation = "keyturn.dev/cause"
	// confinedManager is the field manager that the policy knows.
	confinedManager = "keyturn"
)

// floorPatches configures how the floor patches.
type floorPatches struct {
	client     kubernetes.Interface
	annotation string
	options    metav1.PatchOptions
}

// patchWork is a Deployment and its patch.
type patchWork struct {
	namespace, deployment, version string
}

// runFloor does the minimum: it watches the Secrets, knows in advance which Deployments read each of them, and sends one merge patch to each
// Deployment. It compares no content, keeps no state, reports nothing, and loses unfinished work when it ends. With a limit, it patches the next
// Deployment when a rollout is complete.
func runFloor(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(floorCommand, flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig `file`")
	limit := flags.Int("limit", 0, "how many rollouts may be in progress; 0 means no limit")
	confined := flags.String("confined", "", "kubeconfig `file` of the actuator, to patch with its account; empty patches with that of -kubeconfig")
	if err := flags.Parse(args); err != nil {
		return err
	}
	client, err := floorClient(*kubeconfig)
	if err != nil {
		return fmt.Errorf("-kubeconfig: %w", err)
	}
	patches := floorPatches{client: client, annotation: floorAnnotation}
	if *confined != "" {
		if patches.client, err = floorClient(*confined); err != nil {
			return fmt.Errorf("-confined: %w", err)
		}
		patches.annotation, patches.options.FieldManager = confinedFloorAnnotation, confinedManager
	}
	readers, err := readReaders(ctx, client)
	if err != nil {
		return err
	}
	return watchAndPatch(ctx, client, patches, readers, *limit)
}

// floorClient returns a client like those of the programs: without a request limit, and with protobuf.
func floorClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.ContentType = -1, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}

// readReaders returns which Deployments read each Secret, by the Secret's namespace and name.
func readReaders(ctx context.Context, client kubernetes.Interface) (map[string][]string, error) {
	list, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the deployments: %w", err)
	}
	readers := make(map[string][]string)
	for i := range list.Items {
		deployment := &list.Items[i]
		for _, from := range deployment.Spec.Template.Spec.Containers[0].EnvFrom {
			secret := deployment.Namespace + "/" + floorTwin(from.SecretRef.Name)
			readers[secret] = append(readers[secret], deployment.Name)
		}
	}
	return readers, nil
}

// floorTwin returns the name of the Secret that the floor uses instead of one that a pod reads. Each contender has its own
// Secrets, so that none changes while the contender is not running.
func floorTwin(secret string) string {
	return secretName(contenderFloor, strings.TrimPrefix(secret, secretName(contenderKeyturn, "")))
}

func watchAndPatch(
	ctx context.Context, client kubernetes.Interface, patches floorPatches, readers map[string][]string, limit int,
) error {
	work := make(chan patchWork, 100_000)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(list *metav1.ListOptions) {
		list.LabelSelector = contenderLabel + "=" + contenderFloor
	}))
	informer := factory.Core().V1().Secrets().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, after any) {
		secret, ok := after.(*corev1.Secret)
		if !ok {
			return
		}
		for _, deployment := range readers[secret.Namespace+"/"+secret.Name] {
			work <- patchWork{secret.Namespace, deployment, secret.ResourceVersion}
		}
	}})
	if err != nil {
		return fmt.Errorf("watching the secrets: %w", err)
	}
	watches, workers := []cache.SharedIndexInformer{informer}, floorWorkers
	var ends *endings
	if limit > 0 {
		ends, workers = newEndings(), limit
		deployments, err := ends.informer(client)
		if err != nil {
			return err
		}
		watches = append(watches, deployments)
	}
	var running sync.WaitGroup
	defer running.Wait()
	var synced []cache.InformerSynced
	for _, watch := range watches {
		running.Go(func() { watch.RunWithContext(ctx) })
		synced = append(synced, watch.HasSynced)
	}
	for range workers {
		running.Go(func() { patches.all(ctx, work, ends) })
	}
	if cache.WaitForCacheSync(ctx.Done(), synced...) {
		fmt.Println(floorReady)
	}
	<-ctx.Done()
	return nil
}

// all sends the patches that it receives. Unless ends is nil, it waits for the end of each rollout.
func (p floorPatches) all(ctx context.Context, work <-chan patchWork, ends *endings) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-work:
			patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, p.annotation, w.version)
			patched, err := p.client.AppsV1().Deployments(w.namespace).Patch(ctx, w.deployment, types.MergePatchType, patch, p.options)
			switch {
			case err == nil && ends != nil:
				ends.wait(ctx, patched)
			case err != nil && ctx.Err() == nil:
				fmt.Fprintln(os.Stderr, "patch:", err)
			}
		}
	}
}
