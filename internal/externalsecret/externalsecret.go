package externalsecret

import (
	"errors"
	"fmt"
	"slices"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// ExternalSecret contains the parts of an ExternalSecret that determine what it reads and whether it can be synced.
type ExternalSecret struct {
	metav1.ObjectMeta // as kept by metaOf
	Status
	Owner string // the name of the ClusterExternalSecret that it was created for, or empty if there is none
	// Templates are the Secrets and ConfigMaps in its template, unless a ClusterExternalSecret created it, as a sync of one is a sync of all.
	Templates []events.Source
	Unsteady  string // a function of its template whose result differs at each sync, such as bcrypt; empty if there is none
	// Problems lists the unreadable parts of the spec. The other parts still count.
	Problems []error

	references []reference
	policy     esv1.ExternalSecretRefreshPolicy
	noInterval bool // refreshInterval is zero
	generates  bool // a generator provides one of the entries
	fixed      bool // the Secret that it creates is immutable
	unwritten  bool // creationPolicy None
}

// Read reads an ExternalSecret. An object that does not fit the API reads nothing, and has the error in Problems.
func Read(obj *unstructured.Unstructured) *ExternalSecret {
	es := &ExternalSecret{ObjectMeta: metaOf(obj), Owner: owner(obj)}
	var typed esv1.ExternalSecret
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &typed); err != nil {
		es.Problems = append(es.Problems, err)
		return es
	}
	spec := &typed.Spec
	es.Status = newStatus(es.Namespace, es.Name, &spec.Target, &typed.Status)
	if es.Owner == "" {
		es.Templates = es.templates(spec.Target.Template)
	}
	es.Unsteady = unsteadyIn(spec.Target.Template)
	es.policy = spec.RefreshPolicy
	es.noInterval = spec.RefreshInterval != nil && spec.RefreshInterval.Duration <= 0
	es.fixed = spec.Target.Immutable && spec.Target.Manifest == nil // The operator applies this setting only to Secrets.
	es.unwritten = spec.Target.CreationPolicy == esv1.CreatePolicyNone
	for i := range spec.Data {
		var own *esv1.SecretStoreRef
		if source := spec.Data[i].SourceRef; source != nil {
			own = &source.SecretStoreRef
		}
		es.add(&spec.Data[i].RemoteRef, es.storeOf(own, spec.SecretStoreRef))
	}
	var names expressions
	for i := range spec.DataFrom {
		es.addFrom(&spec.DataFrom[i], spec.SecretStoreRef, &names)
	}
	return es
}

func (es *ExternalSecret) add(ref *esv1.ExternalSecretDataRemoteRef, store types.NamespacedName) {
	entry := reference{store: store, key: ref.Key, version: ref.Version}
	if ref.MetadataPolicy == esv1.ExternalSecretMetadataPolicyFetch {
		entry.metadata, entry.version = true, "" // Metadata has no versions.
	}
	es.references = append(es.references, entry)
}

func (es *ExternalSecret) addFrom(entry *esv1.ExternalSecretDataFromRemoteRef, fallback esv1.SecretStoreRef, names *expressions) {
	var own *esv1.SecretStoreRef
	if source := entry.SourceRef; source != nil {
		if source.GeneratorRef != nil {
			es.generates = true
			return
		}
		own = source.SecretStoreRef
	}
	store := es.storeOf(own, fallback)
	switch {
	case entry.Extract != nil:
		es.add(entry.Extract, store)
	case entry.Find != nil:
		f := &find{path: entry.Find.Path}
		if entry.Find.Name != nil {
			var err error
			if f.name, err = names.compile(entry.Find.Name.RegExp); err != nil {
				es.Problems = append(es.Problems, fmt.Errorf("find.name.regexp: %w", err))
			}
			if err != nil && !errors.Is(err, kube.ErrExpressionTooLarge) {
				return // the operator finds nothing, either
			}
		}
		es.references = append(es.references, reference{store: store, find: f})
	}
}

// storeOf returns the name of an entry's own store, or of the default store of the ExternalSecret.
func (es *ExternalSecret) storeOf(own *esv1.SecretStoreRef, fallback esv1.SecretStoreRef) types.NamespacedName {
	ref := fallback
	if own != nil && own.Name != "" {
		ref = *own
	}
	if ref.Kind == esv1.ClusterSecretStoreKind {
		return types.NamespacedName{Name: ref.Name}
	}
	return types.NamespacedName{Namespace: es.Namespace, Name: ref.Name}
}

// Stores returns the stores that the ExternalSecret names, each once. SecretStores have its namespace, ClusterSecretStores none.
func (es *ExternalSecret) Stores() []types.NamespacedName {
	var names []types.NamespacedName
	for i := range es.references {
		if name := es.references[i].store; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Stores returns a SecretStore by its name, or a ClusterSecretStore by its name without a namespace. It returns nil if there is none.
type Stores func(types.NamespacedName) *Store

// Places returns the paths that the ExternalSecret reads in known stores of Vault and OpenBao, in the order of its spec.
func (es *ExternalSecret) Places(stores Stores) []Place {
	var places []Place
	for i := range es.references {
		ref := &es.references[i]
		store := stores(ref.store)
		if store == nil || store.provider == nil || !store.serves(es.Namespace) {
			continue
		}
		read := store.provider.named
		if ref.find != nil {
			read = store.provider.found
		}
		if place, ok := read(ref); ok {
			place.Server = store.provider.server
			places = append(places, place)
		}
	}
	return places
}

// Reads reports whether a sync of the ExternalSecret would read the rotated secret. If it would, but only from an address that the rotation's store
// does not have, Reads returns this address: it may be another store with the same path, or missing in the configuration.
func (es *ExternalSecret) Reads(stores Stores, r Rotation) (isRead bool, elsewhere string) {
	for _, place := range es.Places(stores) {
		switch {
		case !r.covers(place):
		case r.isAt(place.Server):
			return true, ""
		default:
			elsewhere = place.Server
		}
	}
	return false, elsewhere
}

// ReadsOnlyKV reports whether the ExternalSecret reads only from KV in Vault and OpenBao. Other engines may have other data in each response. A read
// as version 1 may be from any engine: it is from KV if a rotation shows that its mount is.
func (es *ExternalSecret) ReadsOnlyKV(stores Stores, rotations []Rotation) bool {
	for _, place := range es.Places(stores) {
		isIn := func(r Rotation) bool { return r.showsKV(place) }
		if place.v1 && !place.Below && !slices.ContainsFunc(rotations, isIn) {
			return false
		}
	}
	return true
}

// templates returns the Secrets and ConfigMaps in a template, without the target, whose changes would lead to endless syncs.
func (es *ExternalSecret) templates(template *esv1.ExternalSecretTemplate) []events.Source {
	if template == nil {
		return nil
	}
	var list []events.Source
	add := func(kind events.Kind, ref *esv1.TemplateRef) {
		if ref == nil {
			return
		}
		if source := (events.Source{Kind: kind, Namespace: es.Namespace, Name: ref.Name}); source != es.Target {
			list = append(list, source)
		}
	}
	for _, from := range template.TemplateFrom {
		add(events.KindSecret, from.Secret)
		add(events.KindConfigMap, from.ConfigMap)
	}
	return list
}

// Obstacle returns why the ExternalSecret must not be synced now. Settings that forbid another sync are no obstacle before the first one.
func (es *ExternalSecret) Obstacle() Obstacle {
	synced := es.SyncedVersion != ""
	switch {
	case es.generates:
		return Generates
	case es.unwritten:
		return NoTarget
	case synced && es.policy == esv1.RefreshPolicyCreatedOnce:
		return CreatedOnce
	case synced && es.noInterval && es.policy != esv1.RefreshPolicyOnChange:
		return NoInterval
	case synced && es.fixed:
		return Immutable
	}
	return es.GivenUp
}
