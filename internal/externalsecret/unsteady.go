package externalsecret

import (
	"maps"
	"regexp"
	"slices"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
)

// unsteady are template functions whose results differ at each sync, because they depend on chance or the time.
var unsteady = map[string]bool{
	// Of Sprig.
	"ago": true, "now": true,
	"bcrypt": true, "encryptAES": true, "htpasswd": true,
	"genCA": true, "genCAWithKey": true, "genPrivateKey": true, "genSelfSignedCert": true, "genSelfSignedCertWithKey": true,
	"genSignedCert": true, "genSignedCertWithKey": true,
	"randAlpha": true, "randAlphaNum": true, "randAscii": true, "randBytes": true, "randInt": true, "randNumeric": true,
	"shuffle": true, "uuidv4": true,
	// Of the operator: a keystore has a salt.
	"fullPemToPkcs12": true, "fullPemToPkcs12Pass": true, "pemToPkcs12": true, "pemToPkcs12Pass": true,
	"pemTruststoreToPKCS12": true, "pemTruststoreToPKCS12Pass": true,
}

var (
	templateAction = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	// templateToken is a comment, a quoted text, or a word; that of a field or a variable begins with a dot or a dollar sign.
	templateToken = regexp.MustCompile("(?s)/\\*.*?\\*/|\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|[.$]?\\w+")
)

// unsteadyIn returns a function by which the data of a template differs at each sync, or "". Templates in other objects are unknown.
func unsteadyIn(template *esv1.ExternalSecretTemplate) string {
	if template == nil {
		return ""
	}
	texts := slices.Collect(maps.Values(template.Data))
	for _, from := range template.TemplateFrom {
		if from.Literal != nil && from.Target != esv1.TemplateTargetAnnotations && from.Target != esv1.TemplateTargetLabels {
			texts = append(texts, *from.Literal)
		}
	}
	var found []string
	for _, text := range texts {
		for _, action := range templateAction.FindAllString(text, -1) {
			for _, token := range templateToken.FindAllString(action, -1) {
				if unsteady[token] {
					found = append(found, token)
				}
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found) // Maps have no order.
}
