package externalsecret

import "testing"

func TestAClusterSecretStoreServesTheNamespacesThatItsConditionsChoose(t *testing.T) {
	for _, test := range []struct {
		name, conditions string
		want             bool
	}{
		{name: "all where there are none", conditions: "[]", want: true},
		{name: "one that is named", conditions: "[{namespaces: [mail, shop]}]", want: true},
		{name: "one that an expression matches", conditions: "[{namespaceRegexes: ['^sh']}]", want: true},
		{name: "none by an expression that is bad", conditions: "[{namespaceRegexes: ['(']}]"},
		{name: "one by an expression that is too large", conditions: "[{namespaceRegexes: ['(?:abcdefghijklmnopqrstuvwxyz){1000}']}]", want: true},
		{name: "one whose labels may be so", conditions: "[{namespaceSelector: {matchLabels: {team: a}}}]", want: true},
		{name: "one whose name is a label", conditions: "[{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}]", want: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := ReadStore(object(t, "metadata: {name: bao}\nspec: {provider: "+vaultSecret+", conditions: "+test.conditions+"}"))
			if got := store.serves("shop"); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestASecretStoreServesItsNamespaceAlone(t *testing.T) {
	store := ReadStore(object(t, "metadata: {name: bao, namespace: shop}\nspec: {provider: "+vaultSecret+"}"))
	if !store.serves("shop") || store.serves("mail") {
		t.Error("it does not")
	}
}

func TestAStoreThatIsNotOneIsReadFromNowhere(t *testing.T) {
	for _, spec := range []string{"{provider: {vault: 5}}", "{provider: " + vaultSecret + ", conditions: x}"} {
		store := ReadStore(object(t, "metadata: {name: bao}\nspec: "+spec))
		if store.provider != nil {
			t.Errorf("%s: got %+v", spec, store)
		}
	}
}

func TestWhatIsNewerAboutAnotherProviderIsNotInTheWay(t *testing.T) {
	store := ReadStore(object(t, "metadata: {name: bao}\nspec: {provider: {aws: 5, vault: {server: 'https://bao', auth: [new]}}, retrySettings: x}"))
	if store.provider == nil {
		t.Errorf("got %+v", store)
	}
}
