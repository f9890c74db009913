package externalsecret

import (
	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// templates returns the Secrets and ConfigMaps that the template of a target names. What the ExternalSecret writes is left out, because each sync
// would lead to another one.
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
