package rights

// Act has manifests of deploy whose rights are shown in use together, by one scene of tests/install.
type Act struct {
	Name string
	// Manifests are those whose rights must be used. The programs have those of Beside, too.
	Manifests, Beside []string
}

// Acts has each manifest of needs but that of the keys, whose rights TestEachRightOfTheJobOfTheKeysIsUsed shows in use.
var Acts = []Act{
	{Name: "for a cluster", Manifests: []string{"base/rbac.yaml"}},
	{Name: "for one namespace", Manifests: []string{"namespaced/rbac.yaml"}},
	{
		Name:      "with the components that need nothing else",
		Manifests: []string{"components/jobs/rbac.yaml", "components/reload-in-place/rbac.yaml", "components/namespace-selector/rbac.yaml"},
		Beside:    []string{"base/rbac.yaml"},
	},
	{
		Name:      "with workloads and sources of other projects",
		Manifests: []string{"components/argo-rollouts/rbac.yaml", "components/secret-provider-classes/watcher.yaml"},
		Beside:    []string{"base/rbac.yaml"},
	},
	{
		Name:      "with a target",
		Manifests: []string{"targets/prometheus-operator/rbac.yaml"},
		Beside:    []string{"base/rbac.yaml"},
	},
	{
		Name:      "with secret stores",
		Manifests: []string{"components/secret-stores/watcher.yaml", "components/secret-stores/actuator.yaml"},
		Beside:    []string{"base/rbac.yaml"},
	},
}
